use tidegate_core::Cost;

use super::{Degrade, Line, Matcher};

/// Which requests go where, and which rules they meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// What it is called; `default` where the file has no routes.
    pub name: String,
    /// Where it stands in the file.
    pub line: Line,
    /// Which requests it takes.
    pub matcher: Matcher,
    /// The upstream they go to, where the file names any.
    pub upstream: Option<String>,
    /// The positions of its rules in the policy, at most [`MOST_RULES_A_ROUTE`](super::MOST_RULES_A_ROUTE).
    pub rules: Vec<usize>,
    /// What its requests cost.
    pub cost: MethodCosts,
    /// Whether its requests meet no rules and are never shed.
    pub is_exempt: bool,
    /// The protocols a connection may turn to, in lower case.
    pub upgrades: Vec<String>,
    /// A cheaper answer, where it has one; never of an exempt route.
    pub degrade: Option<Degrade>,
}

/// What requests cost, by method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodCosts {
    /// Methods with a cost of their own.
    pub by_method: Vec<(String, Cost)>,
    /// What all others cost.
    pub default: Cost,
}

impl MethodCosts {
    /// One for everything.
    pub const ONE: Self = Self { by_method: Vec::new(), default: Cost::ONE };

    /// What a request with this method costs.
    #[must_use]
    pub fn of(&self, method: &str) -> Cost {
        let own = self.by_method.iter().find(|(name, _)| name == method);
        own.map_or(self.default, |(_, cost)| *cost)
    }
}
