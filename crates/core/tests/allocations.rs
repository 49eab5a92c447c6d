//! A decision takes no memory from the heap, whatever limiter makes it. What does take some is counted here.

use std::time::Duration;

use allocation_counter::measure;
use tidegate_core::keyed::{CellTable, DueTable, InFlightTable, MaxKeys};
use tidegate_core::permit::Outcome;
use tidegate_core::rate::{
    Algorithm, Calendar, ColdFactor, DueRule, FixedWindow, LeakyBucket, Period, SlidingLog, SlidingWindow,
    Smooth, TokenBucket, UtcOffset, WarmUp,
};
use tidegate_core::shell::{AtomicDue, Locked};
use tidegate_core::together::{Ask, Joint, decide};
use tidegate_core::{Charge, Cost, Moment, Quota, Usage, Verdict, WallTime};

const ROOM: &str = "room for a rule";

fn quota(units: u32, millis: u64) -> Quota {
    Quota::new(Cost::of(units), Duration::from_millis(millis)).expect("a positive rate")
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_790_000_000_000_000_000).plus(Duration::from_millis(millis))
}

/// The wall clock, on which steps are of ten minutes and a walk of a thousand takes a week.
fn wall(step: u64) -> WallTime {
    WallTime::from_unix_nanos(at(step * 600_000).nanos())
}

fn max_keys() -> MaxKeys {
    MaxKeys::new(10).expect("ten keys")
}

/// A limiter by what it can be asked at a millisecond.
struct Asked<'a> {
    decide: &'a dyn Fn(u64) -> Verdict<Charge>,
    settle: &'a dyn Fn(u64, &mut Charge, Cost),
    look: &'a dyn Fn(u64) -> (Verdict<Duration>, Usage),
}

impl Asked<'_> {
    /// How many allocations a thousand decisions take from this millisecond on, some of them refunded, and some
    /// settled to less or more. Some are admitted and some refused.
    fn walk(&self, from: u64) -> u64 {
        let (mut admitted, mut refused) = (0, 0);
        let taken = measure(|| {
            for millis in from..from + 1_000 {
                let _ = (self.look)(millis);
                let Verdict::Admit(mut charge) = (self.decide)(millis) else {
                    refused += 1;
                    continue;
                };
                admitted += 1;
                match admitted % 4 {
                    0 => (self.settle)(millis, &mut charge, Cost::ZERO),
                    1 => (self.settle)(millis, &mut charge, Cost::from_micros(500_000)),
                    2 => (self.settle)(millis, &mut charge, Cost::of(2)),
                    _ => {}
                }
            }
        });
        assert!(admitted > 20 && refused > 20, "{admitted} {refused}");
        taken.count_total
    }
}

/// What the first thousand decisions about a key allocate, and the second, in each shell of the family.
fn of_due(rule: &impl DueRule) -> [[u64; 2]; 2] {
    let (limiter, table) = (AtomicDue::new(), DueTable::new(max_keys(), 7));
    let (fine, packed) = (limiter.enrol(rule).expect(ROOM), table.enrol(rule).expect(ROOM));
    let key = table.key("ann");
    let shared = Asked {
        decide: &|now| limiter.decide(&fine, at(now), Cost::ONE),
        settle: &|now, charge, true_cost| limiter.settle(&fine, at(now), charge, true_cost),
        look: &|now| (limiter.peek(&fine, at(now), Cost::ONE), limiter.usage(&fine, at(now))),
    };
    let tabled = Asked {
        decide: &|now| table.decide(&packed, key, at(now), Cost::ONE),
        settle: &|now, charge, true_cost| table.settle(&packed, key, at(now), charge, true_cost),
        look: &|now| (table.peek(&packed, key, at(now), Cost::ONE), table.usage(&packed, key, at(now))),
    };
    [shared, tabled].map(|asked| [asked.walk(0), asked.walk(1_000)])
}

/// The same behind a mutex and in a table of cells.
fn of_any<A: Algorithm + Clone>(rule: &A, time: fn(u64) -> A::Time) -> [[u64; 2]; 2] {
    let (limiter, table) = (Locked::new(), CellTable::new(max_keys(), 7));
    let (alone, celled) =
        (limiter.enrol(rule.clone(), time(0)).expect(ROOM), table.enrol(rule.clone()).expect(ROOM));
    let key = table.key("ann");
    let locked = Asked {
        decide: &|now| limiter.decide(&alone, time(now), Cost::ONE),
        settle: &|now, charge, true_cost| limiter.settle(&alone, time(now), charge, true_cost),
        look: &|now| (limiter.peek(&alone, time(now), Cost::ONE), limiter.usage(&alone, time(now))),
    };
    let tabled = Asked {
        decide: &|now| table.decide(&celled, key, time(now), Cost::ONE),
        settle: &|now, charge, true_cost| table.settle(&celled, key, time(now), charge, true_cost),
        look: &|now| (table.peek(&celled, key, time(now), Cost::ONE), table.usage(&celled, key, time(now))),
    };
    [locked, tabled].map(|asked| [asked.walk(0), asked.walk(1_000)])
}

#[test]
fn a_decision_by_one_due_number_allocates_nothing() {
    let (ten, two) = (quota(10, 100), quota(10, 100).with_burst(Cost::of(2)).unwrap());
    let leaky = LeakyBucket::new(ten, Cost::of(5)).unwrap();
    assert_eq!(of_due(&TokenBucket::new(two)), [[0; 2]; 2]);
    assert_eq!(of_due(&leaky), [[0; 2]; 2]);
    assert_eq!(of_due(&leaky.without_delay()), [[0; 2]; 2]);
    assert_eq!(of_due(&Smooth::new(two, Duration::from_millis(30)).unwrap()), [[0; 2]; 2]);
    assert_eq!(of_any(&TokenBucket::new(two), at), [[0; 2]; 2]);
}

#[test]
fn a_decision_by_a_few_numbers_behind_a_mutex_allocates_nothing() {
    let ten = quota(10, 100);
    let (warm_up, max_wait) = (Duration::from_millis(400), Duration::from_millis(30));
    let warm_up = WarmUp::new(ten, warm_up, ColdFactor::THREE, max_wait).unwrap();
    assert_eq!(of_any(&FixedWindow::new(ten).unwrap(), at), [[0; 2]; 2]);
    assert_eq!(of_any(&SlidingWindow::new(ten).unwrap(), at), [[0; 2]; 2]);
    assert_eq!(of_any(&warm_up, at), [[0; 2]; 2]);
    let daily = Calendar::new(Cost::of(20), Period::Day, UtcOffset::UTC).unwrap();
    assert_eq!(of_any(&daily, wall), [[0; 2]; 2]);
}

#[test]
fn buckets_allocate_with_the_first_cost_and_a_log_while_its_ring_grows() {
    let buckets = SlidingWindow::new(quota(10, 100)).unwrap().with_sub_buckets(10).unwrap();
    assert_eq!(of_any(&buckets, at), [[1, 0]; 2]);
    // 4, 8, 16, 32 and 50 places.
    assert_eq!(of_any(&SlidingLog::new(quota(50, 100)).unwrap(), at), [[5, 0]; 2]);
}

#[test]
fn a_ring_of_so_many_entries_took_one_allocation_a_doubling() {
    for (entries, allocations) in
        [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (512, 8), (513, 9), (1_000, 9)]
    {
        let table = CellTable::new(max_keys(), 7);
        let rule = table.enrol(SlidingLog::new(quota(1_000, 60_000)).unwrap()).unwrap();
        let key = table.key("ann");
        let taken = measure(|| {
            assert!(table.peek(&rule, key, at(0), Cost::ONE).is_admit());
            (0..entries).for_each(|now| assert!(table.decide(&rule, key, at(now), Cost::ONE).is_admit()));
        });
        assert_eq!(taken.count_total, allocations, "{entries} entries");
    }
}

#[test]
fn windows_of_another_length_take_one_box_a_key_and_change_of_rule() {
    let table = CellTable::new(max_keys(), 7);
    let rule = |units, millis| table.enrol(FixedWindow::new(quota(units, millis)).unwrap()).unwrap();
    let (second, larger, minute) = (rule(100, 1_000), rule(900, 1_000), rule(900, 60_000));
    let keys = ["ann", "bob", "cid"].map(|name| table.key(name));
    let walk = |rule| {
        let ask = |now| keys.iter().for_each(|key| drop(table.decide(rule, *key, at(now), Cost::ONE)));
        measure(|| (0..100).for_each(ask)).count_total
    };
    assert_eq!([&second, &larger].map(walk), [0, 0], "the same windows");
    assert_eq!([&minute, &minute, &second, &second].map(walk), [3, 0, 3, 0]);

    let warm_up = |units| {
        let rule = WarmUp::new(quota(units, 100), Duration::from_secs(1), ColdFactor::THREE, Duration::ZERO);
        rule.unwrap()
    };
    let limiter = Locked::new();
    let (ten, twenty) =
        (limiter.enrol(warm_up(10), at(0)).unwrap(), limiter.enrol(warm_up(20), at(0)).unwrap());
    let taken =
        measure(|| [&ten, &twenty].into_iter().for_each(|rule| drop(limiter.decide(rule, at(0), Cost::ONE))));
    assert_eq!(taken.count_total, 0, "its charges give nothing back, so there is nothing to remember");
}

#[test]
fn a_decision_of_several_limiters_together_allocates_nothing() {
    let (one, due) = (AtomicDue::new(), DueTable::new(max_keys(), 7));
    let (locked, cells) = (Locked::new(), CellTable::new(max_keys(), 7));
    let bucket = one.enrol(&TokenBucket::new(quota(500, 1_000))).unwrap();
    let shaped = due.enrol(&LeakyBucket::new(quota(400, 1_000), Cost::of(5)).unwrap()).unwrap();
    let window = locked.enrol(FixedWindow::new(quota(300, 1_000)).unwrap(), at(0)).unwrap();
    let cell = cells.enrol(SlidingWindow::new(quota(200, 1_000)).unwrap()).unwrap();
    let (due_key, cell_key) = (due.key("ann"), cells.key("ann"));
    let (mut admitted, mut refused) = (0, 0);
    let taken = measure(|| {
        for now in (0..1_000).map(at) {
            let (one, due) = (one.at(&bucket, now), due.at(&shaped, due_key, now));
            let (locked, cells) = (locked.at(&window, now), cells.at(&cell, cell_key, now));
            let mut asks = [
                Ask::new(&one, Cost::ONE),
                Ask::new(&due, Cost::ONE),
                Ask::new(&locked, Cost::ONE),
                Ask::new(&cells, Cost::ONE),
            ];
            match decide(&mut asks) {
                Joint::Admit { .. } => admitted += 1,
                Joint::Refuse { .. } => refused += 1,
            }
        }
    });
    assert!(admitted > 100 && refused > 100, "{admitted} {refused}");
    assert_eq!(taken.count_total, 0);
}

#[test]
fn a_place_in_flight_allocates_nothing() {
    let table = InFlightTable::new(max_keys(), 7);
    let (mut admitted, mut refused) = (0, 0);
    let taken = measure(|| {
        for round in 0..1_000 {
            let key = table.key(&(round % 100));
            let permits = [(); 3].map(|()| InFlightTable::admit(&table, key, 2, at(round)));
            for permit in permits {
                match permit {
                    Verdict::Admit(permit) => {
                        permit.complete(at(round), Outcome::Ok);
                        admitted += 1;
                    }
                    Verdict::Refuse(_) => refused += 1,
                }
            }
            if let Verdict::Admit(place) = table.take(key, 1) {
                table.give_back(place);
            }
        }
    });
    assert_eq!((admitted, refused, taken.count_total), (2_000, 1_000, 0));
}
