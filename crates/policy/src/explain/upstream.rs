//! What an upstream would do with a request that no rule refuses. The gate does not know; whoever runs it does.

use std::fmt::{self, Display, Formatter};

use serde_json::{Value, json};
use tidegate_core::{Criticality, Ratio, Reason, Refusal};

use super::protecting::Percent;

/// An upstream as a request would find it.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSeen {
    /// Its name.
    pub upstream: String,
    /// How late the request would be shed.
    pub criticality: Criticality,
    /// The share of callers of this criticality that it refuses at once.
    pub shed: Ratio,
    /// How many may be in flight.
    pub limit: u32,
    /// How many are.
    pub in_flight: u64,
    /// How many wait for a place.
    pub waiting: u64,
    /// What it would do.
    pub answer: UpstreamAnswer,
}

/// What an upstream would do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamAnswer {
    /// Take it at once.
    Take,
    /// Let it wait for a place.
    Wait,
    /// Refuse it.
    Refuse(Refusal),
}

impl UpstreamSeen {
    /// Whether it would refuse.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        matches!(self.answer, UpstreamAnswer::Refuse(_))
    }

    /// What follows for the request, at the top of the answer; nothing where it just passes.
    pub(super) fn verdict(&self) -> Option<String> {
        let Self { upstream, criticality, shed, limit, .. } = self;
        match self.answer {
            UpstreamAnswer::Take => None,
            UpstreamAnswer::Wait => {
                Some(format!("would have to wait for a place at upstream `{upstream}`: {}.", Places(self)))
            }
            UpstreamAnswer::Refuse(Refusal { reason: Reason::Shed, .. }) => Some(format!(
                "would be refused by upstream `{upstream}`: it sheds {} of {criticality}, this caller included.",
                Share(*shed)
            )),
            UpstreamAnswer::Refuse(_) => Some(format!(
                "would be refused by upstream `{upstream}`: all {limit} places are taken, and nobody may wait."
            )),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let (answer, reason) = match self.answer {
            UpstreamAnswer::Take => ("take", None),
            UpstreamAnswer::Wait => ("wait", None),
            UpstreamAnswer::Refuse(refusal) => ("refuse", Some(refusal.reason.as_str())),
        };
        json!({
            "upstream": self.upstream,
            "answer": answer,
            "reason": reason,
            "refused_ratio": self.shed.value(),
            "limit": self.limit,
            "in_flight": self.in_flight,
            "waiting": self.waiting,
        })
    }
}

/// Writes `orders`, 64 of 64 in flight and 12 waiting; it sheds 40 % of sheddable.
impl Display for UpstreamSeen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, {}", self.upstream, Places(self))?;
        if self.shed == Ratio::ZERO {
            return Ok(());
        }
        write!(f, "; it sheds {} of {}", Share(self.shed), self.criticality)
    }
}

struct Places<'a>(&'a UpstreamSeen);

impl Display for Places<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let UpstreamSeen { limit, in_flight, waiting, .. } = self.0;
        write!(f, "{in_flight} of {limit} in flight and {waiting} waiting")
    }
}

struct Share(Ratio);

impl Display for Share {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ratio::ONE => f.write_str("all"),
            share => Percent(share.value()).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_core::Retry;

    use super::*;

    #[test]
    fn what_it_would_do_is_said_with_its_numbers() {
        let seen = |answer, shed| UpstreamSeen {
            upstream: "orders".to_owned(),
            criticality: Criticality::Sheddable,
            shed: Ratio::new(shed).unwrap(),
            limit: 64,
            in_flight: 64,
            waiting: 12,
            answer,
        };
        let refuse = |reason| UpstreamAnswer::Refuse(Refusal { reason, retry: Retry::After(Duration::ZERO) });
        let said = |answer, shed| {
            let seen = seen(answer, shed);
            (seen.verdict().unwrap_or_default(), seen.to_string())
        };
        let full = "`orders`, 64 of 64 in flight and 12 waiting";
        assert_eq!(said(UpstreamAnswer::Take, 0.0), (String::new(), full.to_owned()));
        assert_eq!(
            said(UpstreamAnswer::Wait, 0.4),
            (
                "would have to wait for a place at upstream `orders`: 64 of 64 in flight and 12 waiting."
                    .to_owned(),
                format!("{full}; it sheds 40 % of sheddable")
            )
        );
        assert_eq!(
            said(refuse(Reason::Shed), 1.0).0,
            "would be refused by upstream `orders`: it sheds all of sheddable, this caller included."
        );
        assert_eq!(
            said(refuse(Reason::LimitReached), 0.0).0,
            "would be refused by upstream `orders`: all 64 places are taken, and nobody may wait."
        );
    }
}
