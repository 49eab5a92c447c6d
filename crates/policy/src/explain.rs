//! What would happen to a request, rule by rule, and why.
//!
//! An explanation takes the walk that a decision takes and charges nothing. It is data, so that a dashboard can lay it
//! out; written as text it reads like a colleague's answer; and [`Explanation::to_json`] is what the admin API
//! returns.

mod json;
mod protecting;
mod text;
mod upstream;

use std::time::Duration;

use tidegate_core::shed::Cohort;
use tidegate_core::{Cost, Criticality, Moment, Ratio, Refusal, Usage};

use crate::gate::{OPERATOR, SignalReading};
use crate::policy::{KeySource, Line, Mode, Variation};

pub use self::upstream::{UpstreamAnswer, UpstreamSeen};

/// What would happen to a request at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// The number of the policy that was asked.
    pub version: u64,
    /// The route it takes; none when none matches, and then a gateway answers 404.
    pub route: Option<RouteTaken>,
    /// How late it would be shed.
    pub criticality: Criticality,
    /// Why that late.
    pub because: Because,
    /// Who sent it; none where no rule asks.
    pub caller: Option<CallerSeen>,
    /// What its route says it costs.
    pub cost: Cost,
    /// The operator's order that keeps its caller out, if there is one.
    pub blocked: Option<BlockSeen>,
    /// Its rules, in order, those that do nothing included.
    pub rules: Vec<RuleExplanation>,
    /// What stands behind the rules; none where nobody knows, or the route has no upstream or is exempt.
    pub upstream: Option<UpstreamSeen>,
}

/// The route a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTaken {
    /// Its name.
    pub name: String,
    /// Where it stands in the file.
    pub line: Line,
    /// Whether its requests meet no rules.
    pub is_exempt: bool,
}

/// Where a criticality comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The policy's assignment with this number, counted from one.
    Assigned(usize),
    /// A trusted peer said so.
    Said,
    /// The policy's default.
    Default,
}

/// The caller, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerSeen {
    /// What it is known by, shortened where it may be a secret; none when no source is present.
    pub shown: Option<String>,
    /// The hash it is known by in logs.
    pub fingerprint: Option<u64>,
    /// Its plan, by the callers table.
    pub plan: Option<String>,
    /// The header field with several lines, when that is why it is not known.
    pub repeated: Option<String>,
    /// The header field whose value stands in no table, when that is why another source counts.
    pub passed_over: Option<String>,
}

/// An operator's order that keeps a caller out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSeen {
    /// The rule it is for; none for all that the caller sends.
    pub rule: Option<String>,
    /// How long it stands; none for until it is ended.
    pub left: Option<Duration>,
}

impl BlockSeen {
    /// What is named as refusing.
    #[must_use]
    pub fn by(&self) -> &str {
        self.rule.as_deref().unwrap_or(OPERATOR)
    }
}

/// What one rule says.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleExplanation {
    /// Its name.
    pub rule: String,
    /// Where it stands in the file.
    pub line: Line,
    /// Its mode.
    pub mode: Mode,
    /// Until when an operator switched it to that mode, if an end was given.
    pub until: Option<Moment>,
    /// Whether an operator switched it to that mode.
    pub is_switched: bool,
    /// Whether this is about its shadow value.
    pub is_shadow_value: bool,
    /// What its key is made of.
    pub key: Vec<KeyPart>,
    /// Which of its limits applies.
    pub variation: Variation,
    /// The limit, as the operator wrote it.
    pub written: String,
    /// What kind of rule it is.
    pub kind: RuleKind,
    /// What the request costs here.
    pub cost: Cost,
    /// How much is used before it.
    pub usage: Usage,
    /// What it says.
    pub answer: Answer,
}

/// What kind of rule it is, and what only that kind has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleKind {
    /// It counts cost in a length of time.
    Rate,
    /// It counts places in flight.
    Concurrency,
    /// It keeps a share of the places in flight.
    Reserve {
        /// How late the request would be shed.
        criticality: Criticality,
        /// How many of them may be taken before a request below the level gets none.
        open: u32,
        /// From which criticality on nobody is refused.
        kept_for: Criticality,
    },
    /// It sheds.
    Shed {
        /// How late the request would be shed.
        criticality: Criticality,
        /// The share of callers of this criticality that is refused.
        refused: Ratio,
        /// The caller's own cohort; the lower, the earlier refused.
        cohort: Cohort,
        /// The lowest criticality that this caller would pass with.
        passes_as: Option<Criticality>,
        /// The signals, in the order of the policy.
        signals: Vec<SignalReading>,
    },
}

/// One part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Where it comes from.
    pub source: KeySource,
    /// What it is, shortened where it may be a secret; none when it is missing.
    pub value: Option<String>,
}

/// What a rule says about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may pass, after a wait.
    Pass {
        /// How long.
        wait: Duration,
    },
    /// It may not pass now.
    Refuse(Refusal),
    /// It may not pass: a header field that is a key has several lines.
    BadKey {
        /// The field's name.
        header: String,
    },
    /// Nothing: the rule is disabled.
    Nothing,
}

impl Explanation {
    /// The rule that would refuse: of several, the one with the longest way back. None when the request would pass.
    #[must_use]
    pub fn refused_by(&self) -> Option<&RuleExplanation> {
        let refusing = self.rules.iter().filter(|rule| rule.is_enforced());
        if let Some(bad) = refusing.clone().find(|rule| matches!(rule.answer, Answer::BadKey { .. })) {
            return Some(bad);
        }
        let way_back = |rule: &RuleExplanation| match rule.answer {
            Answer::Refuse(Refusal { retry: tidegate_core::Retry::After(wait), .. }) => Some((false, wait)),
            Answer::Refuse(Refusal { retry: tidegate_core::Retry::Never, .. }) => {
                Some((true, Duration::ZERO))
            }
            Answer::Pass { .. } | Answer::BadKey { .. } | Answer::Nothing => None,
        };
        let refusing = refusing.filter_map(|rule| Some((way_back(rule)?, rule)));
        refusing.reduce(|a, b| if b.0 > a.0 { b } else { a }).map(|(_, rule)| rule)
    }

    /// How long it would have to wait, if it would pass.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let waits = self.rules.iter().filter(|rule| rule.is_enforced()).map(|rule| match rule.answer {
            Answer::Pass { wait } => wait,
            Answer::Refuse(_) | Answer::BadKey { .. } | Answer::Nothing => Duration::ZERO,
        });
        waits.max().unwrap_or_default()
    }
}

impl RuleExplanation {
    /// Whether it may refuse.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.mode == Mode::Enforce && !self.is_shadow_value
    }
}
