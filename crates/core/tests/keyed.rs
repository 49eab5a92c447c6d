//! Tables of keys: bounded, never a free burst by forgetting, administered key by key.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::keyed::{CellTable, Counters, DueTable, Key, MaxKeys, Override, Table};
use tidegate_core::rate::{FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
use tidegate_core::{Charge, Cost, Moment, Quota, Reason, Retry, Verdict};

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_790_000_000_000_000_000).plus(Duration::from_millis(millis))
}

fn per_second(units: u32) -> Quota {
    Quota::per_second(Cost::of(units)).expect("a positive rate")
}

fn keys(count: usize) -> MaxKeys {
    MaxKeys::new(count).expect("a positive number")
}

#[test]
fn a_table_tells_as_many_keys_apart_as_it_promises() {
    for count in [1, 10, 1_000, 50_000] {
        let table = DueTable::new(keys(count), 42);
        let rule = table.enrol(&TokenBucket::new(per_second(1))).unwrap();
        for name in 0..count {
            assert!(table.decide(&rule, table.key(&name), at(0), Cost::ONE).is_admit());
        }
        assert_eq!((table.overflowed(), table.active(at(0))), (0, count));
        for name in 0..count {
            assert!(!table.decide(&rule, table.key(&name), at(500), Cost::ONE).is_admit());
        }
        assert_eq!(table.active(at(1_000)), 0);
    }
}

#[test]
fn a_table_takes_sixteen_bytes_a_key() {
    let table = DueTable::new(keys(1_000_000), 42);
    assert!(table.bytes() < 16_010_000, "{} bytes", table.bytes());
}

#[test]
fn newcomers_of_a_full_table_share_the_quota_of_one_key() {
    let table = DueTable::new(keys(100), 42);
    let rule = table.enrol(&TokenBucket::new(per_second(3))).unwrap();
    let mut shared = 0;
    let mut refused = None;
    for name in 0..10_000 {
        match table.decide(&rule, table.key(&name), at(0), Cost::ONE) {
            Verdict::Admit(charge) => shared += u32::from(charge.is_overflow()),
            Verdict::Refuse(refusal) => refused = Some(refusal),
        }
    }
    assert_eq!(shared, 3);
    let refusal = refused.unwrap();
    assert_eq!(refusal.reason, Reason::OverflowSpent);
    assert!(matches!(refusal.retry, Retry::After(wait) if wait <= Duration::from_millis(334)));
    assert!(table.overflowed() > 9_000 && table.active(at(0)) < 200);
    // The known keys are not touched by the flood.
    assert!(table.decide(&rule, table.key(&0), at(0), Cost::of(2)).is_admit());
}

#[test]
fn a_charge_from_the_shared_counter_is_given_back_to_it() {
    let table = DueTable::new(keys(1), 42);
    let rule = table.enrol(&TokenBucket::new(per_second(1))).unwrap();
    let shared = (0..1_000).find_map(|name| {
        let key = table.key(&name);
        let charge = table.decide(&rule, key, at(0), Cost::ONE).admitted()?;
        charge.is_overflow().then_some((key, charge))
    });
    let (key, mut charge) = shared.unwrap();
    let newcomer = table.key("newcomer");
    assert!(!table.decide(&rule, newcomer, at(0), Cost::ONE).is_admit());
    table.refund(&rule, key, at(0), &mut charge);
    assert!(table.decide(&rule, newcomer, at(0), Cost::ONE).is_admit());
}

#[test]
fn idle_slots_serve_newcomers_without_end() {
    let table = DueTable::new(keys(20), 42);
    let rule = table.enrol(&TokenBucket::new(per_second(10))).unwrap();
    for name in 0..20_000_u64 {
        assert!(table.decide(&rule, table.key(&name), at(name * 10), Cost::ONE).is_admit());
    }
    assert_eq!(table.overflowed(), 0);
}

#[test]
fn a_key_idle_for_any_time_is_fresh() {
    // Due times are kept in 32 bits; whatever the gap, they must not come round again.
    let table = DueTable::new(keys(10), 42);
    let rule = table.enrol(&TokenBucket::new(per_second(4))).unwrap();
    let key = table.key("caller");
    let mut now = at(0);
    for bits in 20..52 {
        for extra in [0, 1, 999_999_937] {
            now = now.plus(Duration::from_nanos((1_u64 << bits) + extra + 1_000_000_000));
            let usage = table.usage(&rule, key, now);
            assert_eq!(usage.used, Cost::ZERO, "after 2^{bits} + {extra} ns");
            assert!(table.decide(&rule, key, now, Cost::of(4)).is_admit());
            assert!(!table.decide(&rule, key, now, Cost::ONE).is_admit());
        }
    }
}

#[test]
fn the_clock_set_back_leaves_a_key_spent_but_not_locked_out() {
    let table = DueTable::new(keys(10), 42);
    let rule = table.enrol(&TokenBucket::new(per_second(4))).unwrap();
    let key = table.key("caller");
    assert!(table.decide(&rule, key, at(7_200_000), Cost::of(4)).is_admit());
    let refusal = table.decide(&rule, key, at(3_600_000), Cost::ONE).refusal().unwrap();
    assert!(matches!(refusal.retry, Retry::After(wait) if wait <= Duration::from_secs(1)));
    assert!(table.decide(&rule, key, at(3_601_000), Cost::of(4)).is_admit());
}

#[test]
fn a_block_refuses_until_it_ends() {
    let table = DueTable::new(keys(10), 42);
    let rule = table.enrol(&TokenBucket::new(per_second(5))).unwrap();
    let (ann, bob) = (table.key("ann"), table.key("bob"));
    table.set_override(ann, Override::Block, at(0), at(60_000)).unwrap();
    let refusal = table.decide(&rule, ann, at(10_000), Cost::ONE).refusal().unwrap();
    assert_eq!((refusal.reason, refusal.retry), (Reason::Blocked, Retry::After(Duration::from_secs(50))));
    assert_eq!(table.usage(&rule, ann, at(10_000)).remaining, Cost::ZERO);
    assert!(table.decide(&rule, bob, at(10_000), Cost::ONE).is_admit());
    assert!(table.decide(&rule, ann, at(60_000), Cost::ONE).is_admit());
}

#[test]
fn a_boost_multiplies_rate_and_burst_and_settles_by_the_same_measure() {
    let table = DueTable::new(keys(10), 42);
    let rule = table.enrol(&TokenBucket::new(per_second(5))).unwrap();
    let key = table.key("ann");
    table.set_override(key, Override::Boost(3), at(0), at(60_000)).unwrap();
    let mut charge = table.decide(&rule, key, at(0), Cost::of(15)).admitted().unwrap();
    assert_eq!(charge.cost(), Cost::of(15));
    assert!(!table.decide(&rule, key, at(0), Cost::ONE).is_admit());
    let usage = table.usage(&rule, key, at(0));
    assert_eq!((usage.limit, usage.used), (Cost::of(15), Cost::of(15)));
    assert!(table.peek(&rule, key, at(200), Cost::of(3)).is_admit());
    table.settle(&rule, key, at(0), &mut charge, Cost::of(6));
    assert_eq!(table.usage(&rule, key, at(0)).used, Cost::of(6));
    table.clear_override(key);
    assert_eq!(table.usage(&rule, key, at(0)).used, Cost::of(2));
    assert_eq!(table.set_override(key, Override::Boost(0), at(0), at(1)).unwrap_err().field, "boost");
}

#[test]
fn the_thousand_and_twenty_fifth_order_is_refused_not_dropped() {
    let table = DueTable::new(keys(10), 42);
    for name in 0..1_024 {
        table.set_override(table.key(&name), Override::Block, at(0), at(1_000)).unwrap();
    }
    let one_more = table.key("one more");
    assert!(table.set_override(one_more, Override::Block, at(0), at(1_000)).is_err());
    // Orders that have ended make room.
    assert!(table.set_override(one_more, Override::Block, at(2_000), at(3_000)).is_ok());
}

#[test]
fn one_key_can_be_read_and_reset_and_found_among_all() {
    let table = DueTable::new(keys(1_000), 42);
    let rule = table.enrol(&TokenBucket::new(per_second(5))).unwrap();
    for name in 0..700 {
        assert!(table.decide(&rule, table.key(&name), at(0), Cost::of(1 + name % 5)).is_admit());
    }
    let key = table.key(&123);
    let mut found = Vec::new();
    table.each(at(0), |counter| {
        if counter.fingerprint == table.fingerprint(key) {
            found.push(counter.usage);
        }
    });
    assert_eq!(found, [table.usage(&rule, key, at(0))]);
    assert_eq!(found[0].used, Cost::of(4));
    table.reset(&rule, key, at(0));
    assert_eq!(table.usage(&rule, key, at(0)).used, Cost::ZERO);
    assert_eq!(table.usage(&rule, table.key(&124), at(0)).used, Cost::of(5));
}

#[test]
fn a_rule_can_be_replaced_while_charges_are_open() {
    let table = DueTable::new(keys(1_000), 42);
    let old = table.enrol(&TokenBucket::new(per_second(10))).unwrap();
    let key = table.key("ann");
    let mut charge = table.decide(&old, key, at(0), Cost::of(8)).admitted().unwrap();
    let new = table.enrol(&TokenBucket::new(per_second(20))).unwrap();
    assert_eq!(table.usage(&new, key, at(0)).used, Cost::of(8));
    table.settle(&new, key, at(0), &mut charge, Cost::of(3));
    let used = table.usage(&new, key, at(0)).used.micros();
    assert!(used.abs_diff(3_000_000) <= 1, "{used}");
    // Whoever still holds the old rule sees the same units.
    let used = table.usage(&old, key, at(0)).used.micros();
    assert!(used.abs_diff(3_000_000) <= 2, "{used}");

    let mut late = table.decide(&old, key, at(0), Cost::ONE).admitted().unwrap();
    table.retire(old, &new, at(0));
    let next = table.enrol(&TokenBucket::new(per_second(40))).unwrap();
    assert!(table.usage(&next, key, at(0)).used.micros().abs_diff(4_000_000) <= 4);
    // The rule of this charge is gone, so nothing is given back; a larger cost would still be taken.
    table.refund(&next, key, at(0), &mut late);
    assert!(table.usage(&next, key, at(0)).used.micros().abs_diff(4_000_000) <= 4);
}

#[test]
fn sixteen_rules_can_be_enrolled_and_not_one_more() {
    let table = DueTable::new(keys(10), 42);
    let rules: Vec<_> = (1..=16).map(|n| table.enrol(&TokenBucket::new(per_second(n))).unwrap()).collect();
    let key = table.key("ann");
    for rule in &rules {
        assert!(table.decide(rule, key, at(0), Cost::from_micros(10_000)).is_admit());
    }
    let problem = table.enrol(&TokenBucket::new(per_second(17))).unwrap_err();
    assert!(problem.to_string().contains("at most 16"), "{problem}");
}

#[test]
fn cells_serve_any_algorithm_with_the_same_rules() {
    let table = CellTable::new(keys(100), 42);
    let rule = table.enrol(SlidingLog::new(per_second(2)).unwrap()).unwrap();
    let (ann, bob) = (table.key("ann"), table.key("bob"));
    let mut charge = table.decide(&rule, ann, at(0), Cost::of(2)).admitted().unwrap();
    assert!(!table.decide(&rule, ann, at(999), Cost::ONE).is_admit());
    assert!(table.decide(&rule, bob, at(0), Cost::ONE).is_admit());
    assert_eq!(table.active(at(0)), 2);
    table.settle(&rule, ann, at(0), &mut charge, Cost::ONE);
    assert_eq!(table.usage(&rule, ann, at(0)).used, Cost::ONE);
    table.set_override(bob, Override::Boost(2), at(0), at(5_000)).unwrap();
    assert!(table.decide(&rule, bob, at(0), Cost::of(2)).is_admit());
    table.reset(&rule, ann, at(0));
    assert_eq!(table.active(at(0)), 1);
    let wider = table.enrol(SlidingLog::new(per_second(4)).unwrap()).unwrap();
    table.retire(rule, &wider, at(0));
    table.clear_override(bob);
    assert_eq!(table.usage(&wider, bob, at(0)).used, Cost::of(2));
}

/// Traffic of many keys over a table too small for them.
fn churn() -> impl Strategy<Value = Vec<(u64, u64, u32)>> {
    prop::collection::vec((0_u64..40, 0_u64..120, 1_u32..4), 1..400)
}

/// Admissions by key, with those from the shared counter under no key.
type Admitted = HashMap<Option<u64>, Vec<(Moment, Cost)>>;

fn run<C: Counters<Time = Moment>>(table: &Table<C>, rule: &C::Rule, churn: &[(u64, u64, u32)]) -> Admitted {
    let mut now = at(0);
    let mut admitted = Admitted::new();
    for &(step, name, cost) in churn {
        now = now.plus(Duration::from_millis(step));
        if let Verdict::Admit(charge) = table.decide(rule, table.key(&name), now, Cost::of(cost)) {
            let who = (!charge.is_overflow()).then_some(name);
            admitted.entry(who).or_default().push((now, charge.cost()));
        }
    }
    admitted
}

proptest! {
    #[test]
    fn forgetting_a_key_never_gives_it_a_new_burst(churn in churn()) {
        let table = DueTable::new(keys(20), 42);
        let rule = table.enrol(&TokenBucket::new(per_second(4))).unwrap();
        for (name, admitted) in run(&table, &rule, &churn) {
            for first in 0..admitted.len() {
                let mut sum = Cost::ZERO;
                for (moment, cost) in &admitted[first..] {
                    sum = sum.plus(*cost);
                    let millis = moment.since(admitted[first].0).as_millis();
                    prop_assert!(u128::from(sum.whole()) <= 4 + 4 * millis / 1_000, "{name:?}");
                }
            }
        }
    }

    #[test]
    fn forgetting_a_window_never_gives_it_a_new_one(churn in churn()) {
        let table = CellTable::new(keys(20), 42);
        let rule = table.enrol(FixedWindow::new(per_second(4)).unwrap()).unwrap();
        for (name, admitted) in run(&table, &rule, &churn) {
            let mut windows = HashMap::<u64, u64>::new();
            for (moment, cost) in admitted {
                let sum = windows.entry(moment.nanos() / 1_000_000_000).or_default();
                *sum += cost.whole();
                prop_assert!(*sum <= 4, "{name:?}");
            }
        }
    }

    #[test]
    fn a_table_with_room_answers_as_single_limiters_do(churn in churn()) {
        let table = CellTable::new(keys(1_000), 42);
        let rule = SlidingWindow::new(per_second(4)).unwrap();
        let enrolled = table.enrol(rule.clone()).unwrap();
        let mut states = HashMap::new();
        let mut now = at(0);
        for (step, name, cost) in churn {
            use tidegate_core::rate::Algorithm;
            now = now.plus(Duration::from_millis(step));
            let state = states.entry(name).or_insert_with(|| rule.fresh(now));
            let plain = rule.decide(state, now, Cost::of(cost)).refusal();
            prop_assert_eq!(table.decide(&enrolled, table.key(&name), now, Cost::of(cost)).refusal(), plain);
        }
    }
}

/// Has two threads ask for single units until `asks` are done; returns how many each key was admitted.
fn race<C>(table: &Table<C>, rule: &C::Rule, names: u64, asks: u64) -> HashMap<u64, u64>
where
    C: Counters<Time = Moment> + Sync,
    C::Rule: Sync,
{
    let thread = |seed: u64| {
        let mut admitted = HashMap::<u64, u64>::new();
        for ask in 0..asks {
            let name = (ask * 7 + seed) % names;
            let key: Key = table.key(&name);
            let verdict: Verdict<Charge> = table.decide(rule, key, at(0), Cost::ONE);
            if verdict.admitted().is_some_and(|charge| !charge.is_overflow()) {
                *admitted.entry(name).or_default() += 1;
            }
        }
        admitted
    };
    std::thread::scope(|scope| {
        let handles = [0, 3].map(|seed| scope.spawn(move || thread(seed)));
        let mut sum = HashMap::new();
        for (name, count) in handles.into_iter().flat_map(|handle| handle.join().expect("no thread panics")) {
            *sum.entry(name).or_default() += count;
        }
        sum
    })
}

#[test]
fn racing_threads_take_exactly_the_burst_of_every_key() {
    let due = DueTable::new(keys(500), 42);
    let rule = due.enrol(&TokenBucket::new(per_second(50))).unwrap();
    let cells = CellTable::new(keys(500), 42);
    let window = cells.enrol(FixedWindow::new(per_second(50)).unwrap()).unwrap();
    for admitted in [race(&due, &rule, 500, 60_000), race(&cells, &window, 500, 60_000)] {
        assert_eq!(admitted.len(), 500);
        assert!(admitted.values().all(|&count| count == 50), "{admitted:?}");
    }
    assert_eq!(due.overflowed() + cells.overflowed(), 0);
}
