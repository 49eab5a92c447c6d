//! Any bytes are a policy or problems, and problems can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_policy::{Source, effective, problem, read};

fuzz_target!(|text: &[u8]| {
    let source = Source::named("fuzz.toml", text);
    match read(source, None) {
        Ok(_) => assert!(effective(source, None).is_ok(), "what can be read can be printed"),
        Err(problems) => assert!(!problem::render(source, None, &problems).is_empty()),
    }
});
