//! Any pattern is refused or can be asked about any path; what it was written as matches by itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_policy::policy::PathPattern;

fuzz_target!(|texts: (&str, &str)| {
    let (pattern, path) = texts;
    let Ok(compiled) = PathPattern::new(pattern) else { return };
    let answer = compiled.matches(path);
    assert_eq!(answer, compiled.matches(path));
    if !pattern.contains('*') {
        assert_eq!(answer, pattern == path, "without stars it matches itself alone");
    }
    if pattern == "/**" {
        assert_eq!(answer, path.starts_with('/'));
    }
});
