//! What holds when threads ask at once.

#[path = "support/policies.rs"]
mod policies;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use policies::*;
use proptest::prelude::*;
use tidegate_core::Cost;
use tidegate_core::permit::Outcome;
use tidegate_policy::policy::{KeySource, Limit, Rule, Settle};
use tidegate_policy::{Decision, Gate};

const CALLER: &[KeySource] = &[KeySource::Caller];
const KEYS: [&str; 4] = ["ann", "bob", "cid", "dan"];

/// Numbers that look drawn: the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn key(&mut self) -> &'static str {
        match self.roll(4) {
            0 => "ann",
            1 => "bob",
            2 => "cid",
            _ => "dan",
        }
    }
}

fn used(gate: &Gate, rule: &str, key: &str) -> u64 {
    gate.counter(rule, key, at(0)).map_or(u64::MAX, |usage| usage.used.whole())
}

fn spawn(threads: u64, work: impl Fn(Dice) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || work(Dice(thread * 7919 + 1)));
        }
    });
}

#[test]
fn a_request_is_charged_by_all_its_rules_or_by_none() {
    let gate = gate(policy(vec![
        rule("wide", CALLER, hourly(5_000)),
        rule("slots", CALLER, Limit::Concurrency(2)),
        rule("narrow", CALLER, hourly(1_000)),
        rule("all", &[], hourly(3_000)),
    ]));
    let admitted = KEYS.map(|_| AtomicU64::new(0));
    spawn(4, |mut dice| {
        let mut held = Vec::new();
        for _ in 0..3_000 {
            let key = dice.key();
            if let Decision::Admit(yes) = ask(&gate, at(0), key) {
                admitted[KEYS.iter().position(|k| *k == key).unwrap()].fetch_add(1, Ordering::Relaxed);
                held.push(yes);
            }
            if dice.roll(2) == 0 {
                held.pop();
            }
            if held.len() > 2 {
                held.clear();
            }
        }
    });
    let mut sum = 0;
    for (key, count) in KEYS.into_iter().zip(&admitted) {
        let count = count.load(Ordering::Relaxed);
        assert_eq!((used(&gate, "wide", key), used(&gate, "narrow", key)), (count, count), "{key}");
        assert_eq!(used(&gate, "slots", key), 0);
        assert!(count <= 1_000);
        sum += count;
    }
    assert_eq!(used(&gate, "all", ""), sum);
    assert!(sum <= 3_000);
}

#[test]
fn permits_and_charges_are_exact_after_any_mixture_of_endings() {
    let settle = Settle::ResponseBytes;
    let gate = gate(policy(vec![
        settled(rule("work", CALLER, hourly(1_000_000)), 10, settle.clone()),
        rule("slots", CALLER, Limit::Concurrency(5)),
        rule("all_slots", &[], Limit::Concurrency(12)),
        shadowed(rule("shadow_slots", CALLER, Limit::Concurrency(3))),
    ]));
    let spent = KEYS.map(|_| AtomicU64::new(0));
    let most = AtomicU64::new(0);
    spawn(4, |mut dice| {
        let mut held = Vec::new();
        for _ in 0..4_000 {
            let key = dice.key();
            if let Decision::Admit(yes) = ask(&gate, at(0), key) {
                most.fetch_max(used(&gate, "slots", key), Ordering::Relaxed);
                held.push((KEYS.iter().position(|k| *k == key).unwrap(), yes));
            }
            if held.len() < 6 && dice.roll(3) > 0 {
                continue;
            }
            let Some((index, mut yes)) = held.pop() else { continue };
            let cost = match dice.roll(4) {
                0 => {
                    yes.refund(at(0));
                    0
                }
                1 => {
                    drop(yes);
                    10
                }
                2 => {
                    yes.settle(at(0), &settle, Cost::of(3));
                    yes.settle(at(0), &settle, Cost::of(99));
                    yes.complete(at(0), Outcome::Ok);
                    3
                }
                _ => {
                    yes.settle(at(0), &settle, Cost::of(25));
                    yes.refund(at(0));
                    25
                }
            };
            spent[index].fetch_add(cost, Ordering::Relaxed);
        }
        for (index, _dropped) in held {
            spent[index].fetch_add(10, Ordering::Relaxed);
        }
    });
    assert!((1..=5).contains(&most.load(Ordering::Relaxed)));
    for (key, spent) in KEYS.into_iter().zip(&spent) {
        assert_eq!(used(&gate, "work", key), spent.load(Ordering::Relaxed), "{key}");
        assert_eq!(used(&gate, "slots", key) + used(&gate, "shadow_slots", key), 0);
    }
    assert_eq!(used(&gate, "all_slots", ""), 0);
}

#[test]
fn swaps_under_traffic_lose_no_charge() {
    let with = |amount: u32, places: u32| {
        policy(vec![
            rule("rate", CALLER, hourly(amount)),
            rule("window", CALLER, fixed(amount, std::time::Duration::from_secs(3600))),
            rule("slots", CALLER, Limit::Concurrency(places)),
        ])
    };
    let gate = gate(with(2_000, 3));
    let admitted = KEYS.map(|_| AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (gate, is_over, with) = (&gate, &is_over, &with);
        scope.spawn(move || {
            let mut amount = 2_000;
            while !is_over.load(Ordering::Relaxed) {
                amount = if amount == 2_000 { 1_900 } else { 2_000 };
                gate.swap(with(amount, 2 + amount % 1_000 / 900), at(0)).unwrap();
            }
        });
        spawn(2, |mut dice| {
            let mut held = Vec::new();
            for _ in 0..12_000 {
                let key = dice.key();
                if let Decision::Admit(yes) = ask(gate, at(0), key) {
                    admitted[KEYS.iter().position(|k| *k == key).unwrap()].fetch_add(1, Ordering::Relaxed);
                    held.truncate(1);
                    held.push(yes);
                }
                if dice.roll(3) == 0 {
                    held.clear();
                }
            }
        });
        is_over.store(true, Ordering::Relaxed);
    });
    gate.swap(with(2_000, 3), at(0)).unwrap();
    for (key, count) in KEYS.into_iter().zip(&admitted) {
        let count = count.load(Ordering::Relaxed);
        assert!(count <= 2_000, "{key}: {count}");
        assert_eq!((used(&gate, "window", key), used(&gate, "slots", key)), (count, 0), "{key}");
        // What is ahead is rounded up each time it is expressed in another quota, by a fraction of a unit.
        let rate = gate.counter("rate", key, at(0)).unwrap().used;
        assert!(rate >= Cost::of(u32::try_from(count).unwrap()), "{key}: {rate} of {count}");
    }
}

#[test]
fn what_is_settled_while_policies_replace_each_other_is_never_too_little() {
    let settle = Settle::ResponseBytes;
    let with = |amount: u32| policy(vec![settled(rule("work", CALLER, hourly(amount)), 10, settle.clone())]);
    let gate = gate(with(1_000_000));
    let (least, most) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (gate, is_over, with) = (&gate, &is_over, &with);
        scope.spawn(move || {
            for amount in (1_000_000..1_000_100).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                gate.swap(with(amount), at(0)).unwrap();
            }
        });
        spawn(2, |mut dice| {
            let mut held = Vec::new();
            for _ in 0..6_000 {
                held.extend(ask(gate, at(0), "ann").admitted());
                if held.len() < 20 {
                    continue;
                }
                // Charged some policies ago, so it may be settled under a limit that has left the table.
                let mut yes = held.remove(0);
                let cost = dice.roll(20);
                yes.settle(at(0), &settle, Cost::of(u32::try_from(cost).unwrap()));
                yes.complete(at(0), Outcome::Ok);
                least.fetch_add(cost, Ordering::Relaxed);
                most.fetch_add(cost.max(10), Ordering::Relaxed);
            }
            for count in [&least, &most] {
                count.fetch_add(10 * held.len() as u64, Ordering::Relaxed);
            }
        });
        is_over.store(true, Ordering::Relaxed);
    });
    let counted = used(&gate, "work", "ann");
    let (least, most) = (least.into_inner(), most.into_inner());
    // Each time it is expressed in another quota, what is used is rounded up by a fraction of a unit.
    assert!(least <= counted && counted <= most + most / 100, "{least} {counted} {most}");
}

/// One stream of requests: key, pause before it in milliseconds, and what happens to one that is held.
type Stream = Vec<(usize, u64, bool)>;

fn decisions(gate: &Gate, stream: &Stream) -> Vec<String> {
    let (mut now, mut held, mut seen) = (0, Vec::new(), Vec::new());
    for (key, pause, ends) in stream {
        now += pause;
        match ask(gate, at(now), KEYS[*key]) {
            Decision::Admit(yes) => {
                let told: Vec<_> =
                    yes.standings(at(now)).iter().map(|s| (s.used, s.remaining, s.reset)).collect();
                seen.push(format!("yes {:?} {told:?}", yes.wait()));
                held.push(yes);
            }
            Decision::Refuse(no) => {
                let told: Vec<_> = no.standings(at(now)).iter().map(|s| (s.used, s.retry)).collect();
                seen.push(format!("no {:?} {} {told:?}", no.refusal, no.by().name()));
            }
        }
        if *ends && !held.is_empty() {
            held.remove(0).refund(at(now));
        }
    }
    seen
}

fn enforced() -> Vec<Rule> {
    vec![
        rule("rate", CALLER, bucket_of(20, 4)),
        rule("slots", CALLER, Limit::Concurrency(3)),
        rule("paced", &[], leaky(50, 5)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn shadows_change_nothing(
        stream in prop::collection::vec((0_usize..4, 0_u64..40, any::<bool>()), 1..120),
    ) {
        let plain = gate(policy(enforced()));
        let mut rules = enforced();
        rules[0].shadow = Some(bucket_of(5, 2));
        rules[1].shadow = Some(Limit::Concurrency(1));
        rules.insert(0, shadowed(rule("first", CALLER, bucket_of(1, 1))));
        rules.push(shadowed(rule("last", &[], Limit::Concurrency(1))));
        rules.push(shadowed(rule("window", &[], fixed(3, std::time::Duration::from_secs(1)))));
        let shadowing = gate(policy(rules));
        prop_assert_eq!(decisions(&plain, &stream), decisions(&shadowing, &stream));
    }
}
