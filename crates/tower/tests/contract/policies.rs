//! Rules as they are written, and what they compile to.

use tidegate_policy::{Policy, Source, read};

/// 10 a second by key, 20 of them at once.
pub const PER_KEY: &str = r#"
[rule.per_key]
key = "header:x-api-key"
quota = "10/s"
burst = 20
"#;

/// The same by path.
pub const PER_PATH: &str = r#"
[rule.per_path]
key = "path"
quota = "10/s"
burst = 20
"#;

/// 1 a second by key; three may wait.
pub const SHAPED: &str = r#"
[rule.shaped]
key = "header:x-api-key"
quota = "1/s"
burst = 3
algorithm = "leaky_bucket"
"#;

/// So many in flight, everybody together.
pub fn concurrent(limit: u32) -> String {
    format!("[rule.concurrent]\nkind = \"concurrency\"\nkey = \"global\"\nlimit = {limit}\n")
}

/// 1000 a second, everybody together, of which a request is taken to cost 10.
pub fn settled(source: &str) -> String {
    format!(
        "[rule.settled]\nkey = \"global\"\nquota = \"1000/s\"\n\
         cost = {{ estimate = 10, settle = \"{source}\" }}\n"
    )
}

/// The same rule, which never refuses.
pub fn in_shadow(rule: &str) -> String {
    format!("{rule}mode = \"shadow\"\n")
}

pub fn policy<const N: usize>(rules: [&str; N]) -> Policy {
    let text = rules.concat();
    let (policy, _warnings) = read(Source::named("policy.toml", text.as_bytes()), None).unwrap();
    policy
}
