use std::collections::BTreeMap;

use tidegate_core::keyed::MaxKeys;
use tidegate_core::{Cost, Criticality};

use super::{KeySpec, Limit, Line};

/// One limiter with its key and mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What it is called, in the file, in headers and in metrics.
    pub name: String,
    /// Where it stands in the file.
    pub line: Line,
    /// Whether it refuses.
    pub mode: Mode,
    /// What picks the counter.
    pub key: KeySpec,
    /// What it allows whoever has nothing else.
    pub limit: Limit,
    /// What it allows callers on a plan.
    pub plans: BTreeMap<String, Limit>,
    /// What it allows requests of a criticality.
    pub per_criticality: BTreeMap<Criticality, Limit>,
    /// The next value, counted beside the enforced one and never refusing.
    pub shadow: Option<Limit>,
    /// How many keys it can tell apart.
    pub max_keys: MaxKeys,
    /// What a request costs here, where that is not the route's cost.
    pub cost: Option<RuleCost>,
}

/// Whether a rule refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It refuses.
    #[default]
    Enforce,
    /// It decides and is counted, but never refuses.
    Shadow,
    /// It does nothing.
    Disabled,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Enforce, Self::Shadow, Self::Disabled];

    /// As it is written in policies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Disabled => "disabled",
        }
    }
}

/// What a request costs by one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCost {
    /// What is taken when the request comes.
    pub estimate: Cost,
    /// Where the true cost comes from.
    pub settle: Option<Settle>,
    /// What stays charged when that is never heard of; the estimate where it is not said.
    pub abandoned: Option<Cost>,
}

impl RuleCost {
    /// What a request costs at least whose true cost is not known to its end.
    #[must_use]
    pub fn unheard(&self) -> Cost {
        self.abandoned.unwrap_or(self.estimate)
    }
}

/// Where a true cost comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// A header field of the response, by its name in lower case.
    ResponseHeader(String),
    /// The bytes of the response body.
    ResponseBytes,
    /// The bytes of the request body.
    RequestBytes,
}

/// Which of a rule's limits applies to a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variation {
    /// The rule's own.
    Default,
    /// The one of a plan.
    Plan(String),
    /// The one of a criticality.
    Criticality(Criticality),
    /// The caller's own.
    Override(String),
}
