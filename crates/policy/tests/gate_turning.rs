//! What the rules admitted and an upstream then turned away.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must fail")]

#[path = "support/policies.rs"]
mod policies;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use policies::*;
use tidegate_core::heavy::Ranking;
use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Criticality, Reason, Refusal, Retry};
use tidegate_policy::policy::Settle;
use tidegate_policy::{Admitted, Cause, Gate, ReasonWord, Refused, Source, Turned, read};

const POLICY: &str = r#"
[caller]
from = ["header:x-api-key"]

[rule.rate]
key   = "caller"
quota = "10/hour"

[rule.work]
key   = "caller"
quota = "100/hour"
cost  = { estimate = 10, settle = "bytes:response" }

[rule.slots]
key   = "caller"
limit = 2

[rule.next]
key   = "caller"
quota = "5/hour"
mode  = "shadow"

[upstream.orders]
endpoints = ["http://127.0.0.1:3000"]

[upstream.search]
endpoints = ["http://127.0.0.1:3001"]

[[route]]
name     = "everything"
match    = { path = "/**" }
upstream = "orders"
rules    = ["rate", "work", "slots", "next"]
"#;

const RULES: [&str; 4] = ["rate", "work", "slots", "next"];

fn turning_gate() -> Gate {
    let (policy, _) = read(Source::named("turning.toml", POLICY.as_bytes()), None).unwrap();
    gate(policy)
}

fn admitted(gate: &Gate, millis: u64) -> Admitted {
    ask(gate, at(millis), "ann").admitted().unwrap()
}

fn turn(gate: &Gate, millis: u64, reason: Reason) -> Refused {
    let refusal = Refusal { reason, retry: Retry::After(Duration::ZERO) };
    gate.turn_away(at(millis), admitted(gate, millis), Turned { upstream: "orders", refusal })
}

fn used(gate: &Gate) -> [Cost; 4] {
    RULES.map(|rule| gate.counter(rule, "ann", at(0)).unwrap().used)
}

#[test]
fn everything_it_took_comes_back() {
    let gate = turning_gate();
    let _held = admitted(&gate, 0);
    let before = used(&gate);
    assert_eq!(before, [1, 10, 1, 1].map(Cost::of));
    for _ in 0..100 {
        let refused = turn(&gate, 0, Reason::QueueFull);
        assert_eq!((refused.by().name(), &refused.cause), ("upstream:orders", &Cause::Overload));
        assert!(refused.by().rule().is_none() && refused.standings(at(0)).is_empty());
        assert_eq!(refused.route().name, "everything");
    }
    assert_eq!(used(&gate), before);
}

#[test]
fn what_was_settled_before_stays_settled() {
    let gate = turning_gate();
    let mut yes = admitted(&gate, 0);
    yes.settle(at(0), &Settle::ResponseBytes, Cost::of(3));
    let refusal = Refusal { reason: Reason::Shed, retry: Retry::Never };
    let refused = gate.turn_away(at(0), yes, Turned { upstream: "orders", refusal });
    assert_eq!((refused.refusal, used(&gate)), (refusal, [0, 3, 0, 0].map(Cost::of)));
}

#[test]
fn it_is_counted_once_as_refused_by_its_upstream() {
    let gate = turning_gate();
    admitted(&gate, 0).complete(at(0), Outcome::Ok);
    for reason in [Reason::QueueFull, Reason::WaitTooLong, Reason::LimitReached, Reason::DeadlinePassed] {
        drop(turn(&gate, 0, reason));
    }
    let refusal = Refusal { reason: Reason::Shed, retry: Retry::Never };
    let unknown = Turned { upstream: "gone", refusal };
    assert_eq!(gate.turn_away(at(0), admitted(&gate, 0), unknown).by().name(), "upstream:gone");

    let statistics = gate.statistics(at(0));
    assert_eq!((statistics.admitted, statistics.refused, statistics.ended), (1, 5, [1, 0, 0, 0]));
    let rate = &statistics.rules[0];
    assert_eq!((rate.admitted, rate.refused), (6, 0), "its rules let it pass");
    let names: Vec<_> =
        statistics.upstreams.iter().map(|upstream| (&*upstream.name, upstream.total())).collect();
    assert_eq!(names, [("upstream:orders", 4), ("upstream:search", 0)]);
    let level = Criticality::Critical.index();
    let by_word: Vec<_> = ReasonWord::ALL
        .into_iter()
        .zip(statistics.upstreams[0].refused)
        .filter(|(_, levels)| levels[level] > 0)
        .map(|(word, levels)| (word.as_str(), levels[level]))
        .collect();
    assert_eq!(by_word, [("concurrency", 1), ("queue", 2), ("deadline", 1)]);
    let refusals: Vec<_> = gate.refusals().into_iter().map(|rule| (rule.rule, rule.refused)).collect();
    assert_eq!(refusals.last().unwrap(), &("upstream:orders".to_owned(), 4));
    let by_reason = gate.refusals_by_reason();
    assert!(by_reason.iter().all(|count| count.rule == "upstream:orders"), "{by_reason:?}");
    let by_reason: Vec<_> = by_reason.iter().map(|count| (count.reason, count.refused)).collect();
    assert_eq!(by_reason, by_word);
}

#[test]
fn the_decision_is_a_refusal_from_then_on() {
    let gate = turning_gate();
    let yes = admitted(&gate, 0);
    let id = yes.id();
    assert!(gate.decision(id).unwrap().is_admitted());
    let refusal = Refusal { reason: Reason::WaitTooLong, retry: Retry::After(Duration::from_millis(5)) };
    let refused = gate.turn_away(at(50), yes, Turned { upstream: "orders", refusal });
    assert_eq!(refused.id, id);
    let record = gate.decision(id).unwrap();
    assert!(!record.is_admitted());
    assert_eq!(record.rule.as_deref(), Some("upstream:orders"));
    assert_eq!(record.reason.as_deref(), Some("wait_too_long"));
    assert_eq!((record.retry, record.duration), (Some(refusal.retry), Some(Duration::from_millis(50))));
    assert_eq!(gate.recent(true), std::slice::from_ref(&record), "once, among the refused");
    assert_eq!(gate.recent(false).len(), 1);
    let logged = refused.record(&get("/", &Field(Some("ann"))));
    assert_eq!((logged.id, logged.rule, logged.reason), (Some(id), record.rule, record.reason));
    assert_eq!((logged.time, logged.caller), (record.time, record.caller));
}

#[test]
fn one_that_waited_through_a_flood_is_remembered_too() {
    let gate = turning_gate();
    let mut remembered = [true, false].map(|is_kept| {
        let mut waiting = admitted(&gate, 0);
        if is_kept {
            gate.keep_note(&mut waiting);
        }
        for millis in 1..1_000 {
            drop(turn(&gate, millis, Reason::QueueFull));
        }
        let refusal = Refusal { reason: Reason::WaitTooLong, retry: Retry::Never };
        let refused = gate.turn_away(at(1_000), waiting, Turned { upstream: "orders", refusal });
        gate.decision(refused.id)
    });
    let waited = remembered[0].take().unwrap();
    assert_eq!((waited.is_admitted(), waited.caller.as_deref()), (false, Some("ann")));
    assert_eq!((waited.path.as_str(), waited.duration), ("/", Some(Duration::from_secs(1))));
    assert!(remembered[1].is_none(), "others took the place of its note");
}

#[test]
fn one_that_a_shadow_would_have_refused_is_noted_once_too() {
    let gate = turning_gate();
    let held: Vec<_> =
        (0..5).map(|_| admitted(&gate, 0)).map(|yes| yes.complete(at(0), Outcome::Ok)).collect();
    assert_eq!(held.len(), 5);
    let yes = admitted(&gate, 0);
    assert_eq!(yes.shadow_refusals().count(), 1);
    let id = yes.id();
    let refusal = Refusal { reason: Reason::Shed, retry: Retry::Never };
    drop(gate.turn_away(at(0), yes, Turned { upstream: "orders", refusal }));
    let refused = gate.recent(true);
    assert_eq!((refused.len(), refused[0].id, refused[0].shadow_refusals.len()), (1, Some(id), 0));
}

#[test]
fn all_refusals_are_put_down_to_their_caller_in_a_flood_too() {
    let gate = turning_gate();
    for _ in 0..1_000 {
        drop(turn(&gate, 0, Reason::QueueFull));
    }
    drop(turn(&gate, 1_000, Reason::QueueFull));
    let callers = gate.callers(Ranking::Refusals, 5);
    assert_eq!(callers.len(), 1);
    assert_eq!((callers[0].name.as_str(), callers[0].weight), ("ann", 1_001));
}

#[test]
fn threads_that_are_turned_away_leave_nothing_behind() {
    let gate = turning_gate();
    let (passed, turned) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (gate, passed, turned) = (&gate, &passed, &turned);
            scope.spawn(move || {
                for number in 0..2_000 {
                    let Some(yes) = ask(gate, at(0), "ann").admitted() else { continue };
                    if passed.load(Ordering::Relaxed) < 4 && (number + thread) % 500 == 0 {
                        yes.complete(at(0), Outcome::Ok);
                        passed.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let refusal = Refusal { reason: Reason::Shed, retry: Retry::Never };
                    drop(gate.turn_away(at(0), yes, Turned { upstream: "orders", refusal }));
                    turned.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (passed, turned) = (passed.into_inner(), turned.into_inner());
    let [rate, work, slots, _] = used(&gate).map(Cost::whole);
    assert_eq!((rate, work, slots), (passed, 10 * passed, 0));
    let statistics = gate.statistics(at(0));
    assert_eq!((statistics.admitted, statistics.upstreams[0].total()), (passed, turned));
    assert_eq!(statistics.ended, [passed, 0, 0, 0]);
}
