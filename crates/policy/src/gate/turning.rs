//! What the rules admitted and an upstream then turned away.
//!
//! The gate says whether a caller may; whether there is room at this moment is for the upstream to say, after the gate
//! and perhaps after a wait. Its no must leave nothing behind: whoever got nothing is charged nothing.
//!
//! | of a request that is turned away | becomes |
//! |---|---|
//! | charges, those of rules in shadow among them | refunded, all of them |
//! | places in flight | free |
//! | the decision, under the same number | a refusal by `upstream:NAME` |
//! | what the gate has admitted and refused | one less, one more |
//! | what its rules have let pass | stays: they did |
//! | how it ended | nothing: it never began |

use std::sync::Arc;

use tidegate_core::Refusal;

use super::{Gate, Now};
use crate::decision::{Admitted, Cause, Mets, Refused};

/// A no from an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turned<'a> {
    /// The upstream's name in the policy.
    pub upstream: &'a str,
    /// Why, and when it may work.
    pub refusal: Refusal,
}

impl Gate {
    /// Keeps what was noted of a request that must wait and may yet be turned away. In a flood, notes of admissions are
    /// washed away within a tenth of a second; this one lasts as long as the wait.
    pub fn keep_note(&self, admitted: &mut Admitted) {
        self.books.keep_note(admitted);
    }

    /// Makes a refusal of a request that was admitted and that an upstream has no room for. Everything it took comes
    /// back. An upstream that the policy does not have is named in the refusal and counted nowhere by itself.
    pub fn turn_away(&self, now: Now, mut admitted: Admitted, turned: Turned<'_>) -> Refused {
        admitted.undo(now);
        let plan = &admitted.plan;
        let mut upstreams = plan.policy.upstreams.iter().zip(&plan.upstreams);
        let upstream = upstreams.find(|(upstream, _)| upstream.name == turned.upstream);
        let (by, counts) = match upstream {
            Some((_, known)) => (Arc::clone(&known.refuses_as), Some(&*known.counts)),
            None => (refuses_as(turned.upstream), None),
        };
        self.books.turn_away(now, &admitted, turned.refusal, (&by, counts));
        Refused {
            id: admitted.id,
            refusal: turned.refusal,
            cause: Cause::Overload,
            upstream: Some(by),
            criticality: admitted.criticality,
            cost: admitted.cost,
            plan: Arc::clone(plan),
            route: admitted.route.unwrap_or(0),
            position: u16::MAX,
            at: admitted.began,
            caller: admitted.caller,
            mets: Mets::new(),
        }
    }
}

/// What an upstream is called where a rule would be named.
pub(super) fn refuses_as(upstream: &str) -> Arc<str> {
    format!("upstream:{upstream}").into()
}
