//! A decision takes no memory from the heap, nor does its end.

#[path = "support/policies.rs"]
mod policies;

use policies::*;
use tidegate_core::Cost;
use tidegate_core::permit::Outcome;
use tidegate_policy::policy::{Caller, KeySource, Limit, Settle};
use tidegate_policy::{Decision, Gate, Now};

const CALLER: &[KeySource] = &[KeySource::Caller];

/// Decides, tells the caller where it stands, settles and ends.
fn walk(gate: &Gate, now: Now, key: &'static str) -> bool {
    match ask(gate, now, key) {
        Decision::Admit(mut admitted) => {
            assert!(!admitted.standings(now).is_empty());
            admitted.settle(now, &Settle::ResponseBytes, Cost::of(2));
            admitted.complete(now, Outcome::Ok);
            true
        }
        Decision::Refuse(refused) => {
            assert!(refused.standings(now).iter().any(|standing| standing.is_violated));
            false
        }
    }
}

#[test]
fn a_decision_takes_no_memory_from_the_heap() {
    let composite = [KeySource::Caller, KeySource::Path, KeySource::Route];
    let mut policy = policy(vec![
        settled(rule("second", CALLER, bucket_of(100, 200)), 1, Settle::ResponseBytes),
        rule("composite", &composite, bucket_of(1_000, 5_000)),
        rule("everybody", &[], bucket(100_000)),
        rule("in_flight", CALLER, Limit::Concurrency(20)),
        shadowed(rule("next", CALLER, bucket(1))),
    ]);
    policy.callers.insert("bob".to_owned(), Caller::default());
    let gate = gate(policy);
    for key in ["ann", "bob"] {
        let (mut admitted, mut refused) = (0, 0);
        // The lists of the heaviest callers were allocated with the gate; their first entries are not.
        walk(&gate, at(0), key);
        let taken = allocation_counter::measure(|| {
            for millis in 0..1_000 {
                if walk(&gate, at(millis), key) { admitted += 1 } else { refused += 1 }
            }
        });
        assert!(admitted > 100 && refused > 100, "{admitted} {refused}");
        assert_eq!(taken.count_total, 0);
    }
}
