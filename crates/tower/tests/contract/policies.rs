//! Rules as they are written, and what they compile to.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Criticality, Ratio};
use tidegate_policy::gate::Readings;
use tidegate_policy::policy::{Capacity, KeySpec, Limit, Mode, Reserve, Rule, Shed, SignalName};
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

/// A busy processor, for rules that shed by it.
pub fn busy() -> Readings {
    Readings { signals: vec![(SignalName::Cpu, 1.0)], ..Readings::default() }
}

/// Half of two places kept for what is critical_plus.
pub fn reserve() -> Limit {
    let kept = Ratio::new(0.5).unwrap();
    Limit::Reserve(Reserve { capacity: Capacity::Places(2), level: Criticality::CriticalPlus, kept })
}

/// Everything but what is critical_plus, by the processor, a level in a second.
pub fn shed() -> Limit {
    let (targets, order) = (vec![(SignalName::Cpu, 0.85)], Criticality::ALL[..3].to_vec());
    Limit::Shed(Shed { targets, order, ramp: Duration::from_secs(1) })
}

/// The policy with one more rule on all its routes.
pub fn protected(mut policy: Policy, name: &str, limit: Limit, mode: Mode) -> Policy {
    let template = &policy.rules[0];
    let rule = Rule { name: name.to_owned(), key: KeySpec(Vec::new()), limit, mode, ..Rule::clone(template) };
    let index = policy.rules.len();
    policy.rules.push(Arc::new(rule));
    policy.routes.iter_mut().for_each(|route| route.rules.push(index));
    policy
}
