//! The policy of the examples, and a layer that decides by it.

use std::error::Error;

use tidegate_policy::{Source, read};
use tidegate_tower::{Clock, GateLayer};

/// 10 requests a second for each API key, 20 of them at once.
const POLICY: &str = r#"
[rule.per_key]
key   = "header:x-api-key"
quota = "10/s"
burst = 20
"#;

pub(crate) fn layer(clock: impl Clock + 'static) -> Result<GateLayer, Box<dyn Error>> {
    let source = Source::named("policy.toml", POLICY.as_bytes());
    let (policy, _warnings) = read(source, None).map_err(|problems| format!("{problems:?}"))?;
    Ok(GateLayer::for_policy(policy, clock)?)
}
