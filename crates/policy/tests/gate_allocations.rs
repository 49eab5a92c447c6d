//! A decision takes no memory from the heap, nor does its end.

#[path = "support/policies.rs"]
mod policies;

use std::time::Duration;

use policies::*;
use tidegate_core::keyed::MaxKeys;
use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Criticality, Ratio};
use tidegate_policy::gate::Readings;
use tidegate_policy::policy::{Caller, Capacity, KeySource, Limit, Reserve, Settle, Shed, SignalName};
use tidegate_policy::{Attributes, Decision, Gate, Now};

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

#[test]
fn nor_do_strangers_at_a_full_table_of_logs() {
    let mut logged = rule("logged", CALLER, log(4_000, Duration::from_secs(60)));
    logged.max_keys = MaxKeys::new(8).unwrap();
    let gate = gate(policy(vec![logged]));
    let names: Vec<&'static str> = (0..2_000).map(|name| &*name.to_string().leak()).collect();
    let (early, late) = names.split_at(1_000);
    early.iter().for_each(|name| assert!(ask(&gate, at(0), name).is_admit()));
    let taken = allocation_counter::measure(|| {
        late.iter().for_each(|name| assert!(ask(&gate, at(0), name).is_admit()));
    });
    // What newcomers share holds one entry for all of them.
    assert_eq!(taken.count_total, 0);
}

#[test]
fn nor_does_one_by_rules_that_protect_the_service() {
    let kept = Ratio::new(0.2).unwrap();
    let reserve = Reserve { capacity: Capacity::Places(10), level: Criticality::Critical, kept };
    let (targets, order) = (vec![(SignalName::Cpu, 0.85)], Criticality::ALL[..2].to_vec());
    let shed = Shed { targets, order, ramp: Duration::from_secs(10) };
    let gate = gate(policy(vec![
        rule("everybody", &[], bucket(100_000)),
        rule("reserve", &[], Limit::Reserve(reserve)),
        rule("shed", &[], Limit::Shed(shed)),
    ]));
    let readings = Readings { signals: vec![(SignalName::Cpu, 1.0)], ..Readings::default() };
    (0..16).for_each(|half| gate.steer(at(500 * half), &readings));
    let decide = |key, level| {
        let field = Field(Some(key));
        gate.decide(at(8_000), &Attributes { criticality: Some(level), ..get("/", &field) })
    };
    let keys = ["ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal"];
    let walk = || keys.iter().filter(|key| decide(key, Criticality::Sheddable).is_admit()).count();
    assert!((1..8).contains(&walk()), "some are shed");
    let held: Vec<_> = (0..9).map(|_| decide("ann", Criticality::Critical)).collect();
    assert!(!decide("hal", Criticality::SheddablePlus).is_admit(), "what is left is kept");
    let taken = allocation_counter::measure(|| {
        for _ in 0..100 {
            walk();
            assert!(!decide("hal", Criticality::SheddablePlus).is_admit());
            assert!(decide("hal", Criticality::Critical).is_admit());
        }
    });
    assert_eq!((taken.count_total, held.len()), (0, 9));
}
