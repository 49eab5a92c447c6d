use serde_json::{Map, Value, json};

use tidegate_core::shed::Cohort;

use super::{Answer, Because, Explanation, RuleExplanation, RuleKind, UpstreamSeen};
use crate::gate::SignalReading;
use crate::policy::Variation;
use crate::record::{cost_json, millis_json, retry_json};

impl Explanation {
    /// As JSON, version 1 of its schema.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let refusing = self.upstream.as_ref().filter(|upstream| upstream.refuses());
        let refusing = refusing.map(|upstream| format!("upstream:{}", upstream.upstream));
        let blocked_by = self.blocked.as_ref().map(|blocked| blocked.by().to_owned());
        let refused_by = blocked_by.or_else(|| self.refused_by().map(|rule| rule.rule.clone())).or(refusing);
        json!({
            "v": 1,
            "policy_version": self.version,
            "method": self.method,
            "path": self.path,
            "decision": match (&self.route, &refused_by) {
                (None, _) => "no_route",
                (Some(_), Some(_)) => "refused",
                (Some(_), None) => "admitted",
            },
            "refused_by": refused_by,
            "wait_ms": millis_json(self.wait()),
            "route": self.route.as_ref().map(|route| json!({
                "name": route.name,
                "line": route.line.written(),
                "exempt": route.is_exempt,
            })),
            "criticality": self.criticality.as_str(),
            "criticality_because": match self.because {
                Because::Assigned(number) => format!("assignment {number}"),
                Because::Said => "trusted_peer".to_owned(),
                Because::Default => "default".to_owned(),
            },
            "caller": self.caller.as_ref().map(|caller| json!({
                "shown": caller.shown,
                "fingerprint": caller.fingerprint.map(|hash| format!("{hash:016x}")),
                "plan": caller.plan,
                "repeated_header": caller.repeated,
                "unknown_header": caller.passed_over,
            })),
            "cost": cost_json(self.cost),
            "blocked": self.blocked.as_ref().map(|blocked| json!({
                "rule": blocked.rule,
                "left_ms": blocked.left.map(millis_json),
            })),
            "rules": self.rules.iter().map(RuleExplanation::to_json).collect::<Vec<_>>(),
            "upstream": self.upstream.as_ref().map(UpstreamSeen::to_json),
            "text": self.to_string(),
        })
    }
}

impl RuleExplanation {
    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("rule", self.rule.as_str().into());
        put("line", self.line.0.into());
        put("mode", self.mode.as_str().into());
        put("switched", self.is_switched.into());
        put("shadow_value", self.is_shadow_value.into());
        let key = self.key.iter().map(|part| json!({"source": part.source.to_string(), "value": part.value}));
        put("key", key.collect());
        put("limit_of", variation_name(&self.variation).into());
        put("written", self.written.as_str().into());
        put("kind", self.kind.as_str().into());
        put("cost", cost_json(self.cost));
        match &self.kind {
            RuleKind::Shed { refused, cohort, passes_as, signals, criticality: _ } => {
                put("refused_ratio", refused.value().into());
                put("cohort", cohort.number().into());
                put("cohorts", Cohort::COUNT.into());
                put("passes_as", passes_as.map(|level| level.as_str()).into());
                put("signals", signals.iter().map(signal_json).collect());
            }
            RuleKind::Rate | RuleKind::Concurrency | RuleKind::Reserve { .. } => {
                put("limit", cost_json(self.usage.limit));
                put("used", cost_json(self.usage.used));
                put("remaining", cost_json(self.usage.remaining));
                put("reset_ms", millis_json(self.usage.reset));
            }
        }
        if let RuleKind::Reserve { open, kept_for, criticality: _ } = self.kind {
            put("open", open.into());
            put("kept_for", kept_for.as_str().into());
        }
        match &self.answer {
            Answer::Pass { wait } => {
                put("answer", "pass".into());
                put("wait_ms", millis_json(*wait));
            }
            Answer::Refuse(refusal) => {
                put("answer", "refuse".into());
                put("reason", refusal.reason.as_str().into());
                put("retry_ms", retry_json(refusal.retry));
            }
            Answer::BadKey { header } => {
                put("answer", "refuse".into());
                put("reason", "ambiguous_key".into());
                put("header", header.as_str().into());
            }
            Answer::Nothing => {
                put("answer", "nothing".into());
            }
        }
        Value::Object(fields)
    }
}

impl RuleKind {
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Concurrency => "concurrency",
            Self::Reserve { .. } => "reserve",
            Self::Shed { .. } => "shed",
        }
    }
}

fn signal_json(signal: &SignalReading) -> Value {
    json!({"signal": signal.signal.as_str(), "value": signal.value, "target": signal.target})
}

fn variation_name(variation: &Variation) -> String {
    match variation {
        Variation::Default => "everybody".to_owned(),
        Variation::Plan(plan) => format!("plan:{plan}"),
        Variation::Criticality(level) => format!("criticality:{level}"),
        Variation::Override(caller) => format!("caller:{caller}"),
    }
}
