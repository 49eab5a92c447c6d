//! Cells: what a charge may give back after a reset, an eviction or a change of windows, and what memory they take.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::keyed::{CellTable, Counters, Key, MaxKeys, Table};
use tidegate_core::rate::{
    Algorithm, Calendar, ColdFactor, FixedWindow, Period, SlidingLog, SlidingWindow, UtcOffset, WarmUp,
};
use tidegate_core::shell::Locked;
use tidegate_core::{Cost, Moment, Quota, Reason, Verdict, WallTime};

/// A moment in milliseconds after the start of an hour, and so of a minute and a second.
fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_789_999_200_000_000_000).plus(Duration::from_millis(millis))
}

fn quota(units: u32, seconds: u64) -> Quota {
    Quota::new(Cost::of(units), Duration::from_secs(seconds)).expect("a positive rate")
}

fn fixed(units: u32, seconds: u64) -> FixedWindow {
    FixedWindow::new(quota(units, seconds)).expect("no burst")
}

fn sliding(units: u32, seconds: u64, buckets: u32) -> SlidingWindow {
    SlidingWindow::new(quota(units, seconds)).expect("no burst").with_sub_buckets(buckets).expect("few")
}

fn log(units: u32, seconds: u64) -> SlidingLog {
    SlidingLog::new(quota(units, seconds)).expect("no burst")
}

fn table<A: Algorithm + Clone>(keys: usize) -> CellTable<A> {
    CellTable::new(MaxKeys::new(keys).expect("a positive number"), 42)
}

/// Takes ten of ten, resets, takes ten again and refunds the first.
fn nothing_comes_back_from_before_a_reset<A: Algorithm<Time = Moment> + Clone>(rule: A) {
    let table = table(10);
    let (enrolled, key) = (table.enrol(rule.clone()).expect("room for a rule"), table.key("ann"));
    let mut first = table.decide(&enrolled, key, at(0), Cost::of(10)).admitted().expect("as much as fits");
    table.reset(&enrolled, key, at(0));
    let mut second = table.decide(&enrolled, key, at(0), Cost::of(10)).admitted().expect("as much as fits");
    table.refund(&enrolled, key, at(0), &mut first);
    assert!(!table.decide(&enrolled, key, at(0), Cost::ONE).is_admit(), "{rule:?}");
    table.refund(&enrolled, key, at(0), &mut second);
    assert_eq!(table.usage(&enrolled, key, at(0)).used, Cost::ZERO, "{rule:?}");

    let locked = Locked::new();
    let enrolled = locked.enrol(rule.clone(), at(0)).expect("room for a rule");
    let mut first = locked.decide(&enrolled, at(0), Cost::of(10)).admitted().expect("as much as fits");
    locked.reset(&enrolled, at(0));
    let mut second = locked.decide(&enrolled, at(0), Cost::of(10)).admitted().expect("as much as fits");
    locked.refund(&enrolled, at(0), &mut first);
    assert!(!locked.decide(&enrolled, at(0), Cost::ONE).is_admit(), "{rule:?}");
    locked.refund(&enrolled, at(0), &mut second);
    assert_eq!(locked.usage(&enrolled, at(0)).used, Cost::ZERO, "{rule:?}");
}

#[test]
fn what_a_reset_forgot_is_not_given_back() {
    nothing_comes_back_from_before_a_reset(fixed(10, 60));
    nothing_comes_back_from_before_a_reset(sliding(10, 60, 1));
    nothing_comes_back_from_before_a_reset(sliding(10, 60, 6));
    nothing_comes_back_from_before_a_reset(log(10, 60));
    let second = Duration::from_secs(1);
    let warm_up = WarmUp::new(quota(10, 1), second, ColdFactor::THREE, second).unwrap();
    nothing_comes_back_from_before_a_reset(warm_up);
}

#[test]
fn a_true_cost_above_what_was_taken_is_owed_after_a_reset_too() {
    let table = table(10);
    let (rule, key) = (table.enrol(fixed(10, 60)).unwrap(), table.key("ann"));
    let mut charge = table.decide(&rule, key, at(0), Cost::ONE).admitted().unwrap();
    table.reset(&rule, key, at(0));
    table.settle(&rule, key, at(0), &mut charge, Cost::of(5));
    assert_eq!(table.usage(&rule, key, at(0)).used, Cost::of(4));
}

/// Strangers who take one each and have a cell of their own; then one who has none.
fn crowd<C: Counters<Time = Moment>>(table: &Table<C>, rule: &C::Rule, now: Moment) -> Key {
    let mut names = 0_u64..;
    names
        .find_map(|name| {
            let key = table.key(&name);
            let charge = table.decide(rule, key, now, Cost::ONE).admitted().expect("the first of ten");
            charge.is_overflow().then_some(key)
        })
        .expect("a table has an end")
}

#[test]
fn a_key_that_has_lost_its_cell_is_given_back_nothing_of_what_newcomers_share() {
    let table = table(1);
    let (rule, ann) = (table.enrol(fixed(10, 60)).unwrap(), table.key("ann"));
    let mut charge = table.decide(&rule, ann, at(0), Cost::of(9)).admitted().unwrap();
    table.reset(&rule, ann, at(0));
    let stranger = crowd(&table, &rule, at(0));
    assert!(table.decide(&rule, stranger, at(0), Cost::of(9)).is_admit());
    table.refund(&rule, ann, at(0), &mut charge);
    let refusal = table.decide(&rule, stranger, at(0), Cost::ONE).refusal().unwrap();
    assert_eq!(refusal.reason, Reason::OverflowSpent);
}

#[test]
fn a_key_that_has_lost_its_cell_still_owes() {
    let table = table(1);
    let (rule, ann) = (table.enrol(fixed(10, 60)).unwrap(), table.key("ann"));
    let mut charge = table.decide(&rule, ann, at(0), Cost::ONE).admitted().unwrap();
    table.reset(&rule, ann, at(0));
    let stranger = crowd(&table, &rule, at(0));
    assert!(table.peek(&rule, ann, at(0), Cost::of(10)).is_admit());
    table.settle(&rule, ann, at(0), &mut charge, Cost::of(10));
    assert!(!table.decide(&rule, stranger, at(0), Cost::ONE).is_admit());
}

#[test]
fn what_newcomers_share_is_given_back_to_it() {
    let table = table(1);
    let rule = table.enrol(fixed(10, 60)).unwrap();
    let stranger = crowd(&table, &rule, at(0));
    let mut charge = table.decide(&rule, stranger, at(0), Cost::of(9)).admitted().unwrap();
    assert!(charge.is_overflow());
    table.refund(&rule, stranger, at(0), &mut charge);
    assert!(table.decide(&rule, stranger, at(0), Cost::of(9)).is_admit());
}

/// Takes eight under `old` and settles it to three under `new`.
fn settles_across_a_change<A: Algorithm + Clone>(old: A, new: A, now: A::Time) {
    let table = table(10);
    let key = table.key("ann");
    let [old_rule, new_rule] = [&old, &new].map(|rule| table.enrol(rule.clone()).expect("room for a rule"));
    let mut charge = table.decide(&old_rule, key, now, Cost::of(8)).admitted().expect("as much as fits");
    assert_eq!(table.usage(&new_rule, key, now).used, Cost::of(8), "{old:?} to {new:?}");
    table.retire(old_rule, &new_rule, now);
    table.settle(&new_rule, key, now, &mut charge, Cost::of(3));
    assert_eq!(table.usage(&new_rule, key, now).used, Cost::of(3), "{old:?} to {new:?}");
    table.refund(&new_rule, key, now, &mut charge);
    assert_eq!(table.usage(&new_rule, key, now).used, Cost::of(3), "{old:?} to {new:?}");
}

#[test]
fn a_reservation_is_settled_under_whatever_windows_come_next() {
    for (old, new) in [((10, 1), (20, 1)), ((10, 1), (10, 60)), ((10, 60), (10, 1)), ((10, 60), (10, 3_600))]
    {
        settles_across_a_change(fixed(old.0, old.1), fixed(new.0, new.1), at(500));
        settles_across_a_change(log(old.0, old.1), log(new.0, new.1), at(500));
        for (before, after) in [(1, 1), (1, 6), (6, 1), (6, 7)] {
            settles_across_a_change(sliding(old.0, old.1, before), sliding(new.0, new.1, after), at(500));
        }
    }
    let calendar = |period| Calendar::new(Cost::of(10), period, UtcOffset::UTC).unwrap();
    let now = WallTime::from_unix_seconds(1_790_000_000);
    settles_across_a_change(calendar(Period::Month), calendar(Period::Day), now);
    settles_across_a_change(calendar(Period::Day), calendar(Period::Month), now);
}

#[test]
fn what_had_left_its_window_before_a_change_is_not_given_back_after_it() {
    // Of the first eight a second knows nothing any more when minutes begin to count.
    let now = at(2_500);
    fn check<A: Algorithm<Time = Moment> + Clone>(old: A, new: A, now: Moment) {
        let table = table(10);
        let key = table.key("ann");
        let [old_rule, new_rule] = [&old, &new].map(|rule| table.enrol(rule.clone()).unwrap());
        let mut first = table.decide(&old_rule, key, at(0), Cost::of(8)).admitted().unwrap();
        assert!(table.decide(&old_rule, key, now, Cost::of(7)).is_admit(), "{old:?}");
        assert_eq!(table.usage(&new_rule, key, now).used, Cost::of(7));
        table.refund(&new_rule, key, now, &mut first);
        assert_eq!(table.usage(&new_rule, key, now).used, Cost::of(7), "{old:?} to {new:?}");
    }
    check(fixed(10, 1), fixed(10, 60), now);
    check(log(10, 1), log(10, 60), now);
    check(sliding(10, 1, 1), sliding(10, 60, 1), now);
    check(sliding(10, 1, 6), sliding(10, 60, 6), now);
}

#[test]
fn windows_that_change_there_and_back_give_back_nothing_of_what_came_between() {
    fn check<A: Algorithm<Time = Moment> + Clone>(minutes: A, seconds: A) {
        let table = table(10);
        let key = table.key("ann");
        let [long, short] = [&minutes, &seconds].map(|rule| table.enrol(rule.clone()).unwrap());
        let mut first = table.decide(&long, key, at(0), Cost::of(8)).admitted().unwrap();
        assert_eq!(table.usage(&short, key, at(0)).used, Cost::of(8));
        // By now the seconds have forgotten the first eight.
        assert!(table.decide(&short, key, at(3_000), Cost::of(8)).is_admit(), "{seconds:?}");
        assert_eq!(table.usage(&long, key, at(3_000)).used, Cost::of(8));
        table.refund(&long, key, at(3_000), &mut first);
        assert_eq!(table.usage(&long, key, at(3_000)).used, Cost::of(8), "{minutes:?}");
    }
    check(fixed(10, 60), fixed(10, 1));
    check(log(10, 60), log(10, 1));
    check(sliding(10, 60, 6), sliding(10, 1, 6));
}

#[test]
fn a_cell_takes_32_bytes_and_its_state() {
    let slots = 1_500_000..1_500_200;
    let per_slot = 32 + size_of::<tidegate_core::rate::WindowCount>();
    let bytes = table::<FixedWindow>(1_000_000).bytes();
    assert!((slots.start * per_slot..slots.end * per_slot).contains(&bytes), "{bytes}");
}

#[test]
fn a_table_counts_the_memory_that_its_cells_may_come_to_take() {
    let logs = table::<SlidingLog>(1_000);
    let plain = logs.bytes();
    let rule = logs.enrol(log(100, 60)).unwrap();
    let most = CellTable::most_heap(&log(100, 60), MaxKeys::new(1_000).unwrap());
    // 16 bytes for each of 100 places, for half as many cells again as keys.
    assert!((2_400_000..2_450_000).contains(&most), "{most}");
    assert_eq!(logs.bytes(), plain + most);
    // A table has had its largest rule once it has had it.
    let smaller = logs.enrol(log(10, 60)).unwrap();
    logs.retire(rule, &smaller, at(0));
    // Whatever key is in use when windows change, what became of its charges is remembered: in 40 bytes.
    let cells = most / (16 * 100);
    assert_eq!(logs.bytes(), plain + most + 40 * cells);
    assert_eq!(CellTable::most_heap(&sliding(10, 60, 1), MaxKeys::new(1_000).unwrap()), 0);
    assert!(CellTable::most_heap(&sliding(10, 60, 6), MaxKeys::new(1_000).unwrap()) > 1_500 * 7 * 8);
}

#[test]
fn keys_that_come_and_go_count_exactly_in_memory_that_others_left() {
    let table = table(4);
    let rule = table.enrol(log(30, 1)).unwrap();
    for round in 0..200 {
        let (now, key) = (at(round * 2_000), table.key(&round));
        for step in 0..30 {
            let verdict = table.decide(&rule, key, now.plus(Duration::from_millis(step)), Cost::ONE);
            assert!(matches!(verdict, Verdict::Admit(charge) if !charge.is_overflow()), "{round} {step}");
        }
        assert!(!table.decide(&rule, key, now.plus(Duration::from_millis(999)), Cost::ONE).is_admit());
        assert!(table.decide(&rule, key, now.plus(Duration::from_millis(1_000)), Cost::ONE).is_admit());
    }
    assert_eq!(table.overflowed(), 0);
}

/// What one key has consumed, charge by charge, as nobody could afford to keep it.
struct Ledger {
    seconds: u64,
    window: u64,
    /// What each charge took, and what of it still counts.
    charges: Vec<(Cost, Cost)>,
}

impl Ledger {
    fn turn(&mut self, now: Moment, seconds: u64) {
        let window = now.nanos() / (self.seconds * 1_000_000_000);
        if window > self.window {
            self.forget();
        }
        (self.seconds, self.window) = (seconds, now.nanos() / (seconds * 1_000_000_000));
    }

    fn forget(&mut self) {
        self.charges.iter_mut().for_each(|(_, counts)| *counts = Cost::ZERO);
    }

    fn settle(&mut self, charge: usize, true_cost: Cost) {
        let (taken, counts) = &mut self.charges[charge];
        *counts = counts.minus(taken.minus(true_cost)).plus(true_cost.minus(*taken));
    }

    fn used(&self) -> Cost {
        self.charges.iter().fold(Cost::ZERO, |sum, (_, counts)| sum.plus(*counts))
    }
}

proptest! {
    #[test]
    fn whatever_is_reset_changed_and_settled_nothing_is_given_back_that_others_took(
        steps in prop::collection::vec((0_u64..800, 0_usize..3, 0_u8..8, 0_u32..6, 0_usize..40), 1..80),
    ) {
        let table = table(4);
        let (key, windows) = (table.key("ann"), [1, 3, 60]);
        let rules = windows.map(|seconds| table.enrol(fixed(10, seconds)).unwrap());
        let mut ledger = Ledger { seconds: 1, window: 0, charges: Vec::new() };
        let (mut open, mut now, mut rule, mut changes) = (Vec::new(), at(0), 0, 0);
        for (step, which, action, cost, chosen) in steps {
            now = now.plus(Duration::from_millis(step));
            // Rules change now and then.
            if action == 0 && which != rule {
                (rule, changes) = (which, changes + 1);
            }
            let (enrolled, cost) = (&rules[rule], Cost::of(cost));
            ledger.turn(now, windows[rule]);
            match action {
                0..4 => {
                    if let Some(charge) = table.decide(enrolled, key, now, cost).admitted() {
                        ledger.charges.push((cost, cost));
                        open.push((ledger.charges.len() - 1, charge));
                    }
                }
                4 => {
                    table.reset(enrolled, key, now);
                    ledger.forget();
                }
                _ if open.is_empty() => {}
                _ => {
                    let (number, mut charge) = open.swap_remove(chosen % open.len());
                    table.settle(enrolled, key, now, &mut charge, cost);
                    ledger.settle(number, cost);
                }
            }
            let used = table.usage(enrolled, key, now).used;
            prop_assert!(used >= ledger.used(), "{used} of {}", ledger.used());
            // Across one change a charge is settled exactly.
            prop_assert!(changes > 1 || used == ledger.used(), "{used} of {}", ledger.used());
        }
    }
}
