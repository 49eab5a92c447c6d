//! Any bytes as a table of callers: a policy or problems, and nobody in it whose name is not what it looks like.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_policy::{Source, identity_fault, read};

const POLICY: &[u8] = br#"
caller = { from = "header:x-api-key", table = "callers.toml" }
[rule.rate]
key   = "caller"
quota = "10/s"
plans = { gold = { quota = "100/s" } }
[rule.places]
kind  = "concurrency"
key   = "caller"
limit = 5
"#;

fuzz_target!(|text: &[u8]| {
    let callers = Some(Source::named("callers.toml", text));
    if let Ok((policy, _)) = read(Source::named("tidegate.toml", POLICY), callers) {
        assert!(policy.callers.keys().all(|identity| identity_fault(identity).is_none()));
    }
});
