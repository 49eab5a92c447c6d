//! Tables of counters by key: slots, groups and places.

use loom::sync::Arc;
use loom::thread;
use tidegate_core::keyed::{CellTable, DueTable, InFlightTable, MaxKeys, Override};
use tidegate_core::rate::{FixedWindow, TokenBucket};
use tidegate_core::shell::{Enrolled, Packed};
use tidegate_core::{Cost, Quota, Verdict};

use crate::{at, bucket, explore};

/// A table of one group, and its rule.
fn table(units: u32) -> (Arc<DueTable>, Arc<Enrolled<Packed>>) {
    let table = DueTable::new(MaxKeys::new(1).unwrap(), 1);
    let rule = table.enrol(&bucket(units)).unwrap();
    (Arc::new(table), Arc::new(rule))
}

#[test]
fn two_threads_bring_the_same_key_in_once() {
    explore(|| {
        let (table, rule) = table(1);
        let key = table.key("ann");
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, key, at(0), Cost::ONE).is_admit())
        };
        let mine = table.decide(&rule, key, at(0), Cost::ONE).is_admit();
        assert!(mine ^ other.join().unwrap());
        assert_eq!(table.active(at(0)), 1);
    });
}

#[test]
fn an_idle_slot_is_reused_or_charged_but_not_both() {
    explore(|| {
        let (table, rule) = table(1);
        let (ann, bob, cid) = (table.key("ann"), table.key("bob"), table.key("cid"));
        for key in [ann, bob] {
            assert!(table.decide(&rule, key, at(0), Cost::ONE).is_admit());
        }
        // Both slots are idle at 1000 ms. Ann comes back while Cid needs a slot.
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(table.decide(&rule, cid, at(1_000), Cost::ONE).is_admit()))
        };
        assert!(table.decide(&rule, ann, at(1_000), Cost::ONE).is_admit());
        other.join().unwrap();
        for key in [ann, cid] {
            assert!(!table.decide(&rule, key, at(1_000), Cost::ONE).is_admit());
        }
        assert_eq!(table.overflowed(), 0);
    });
}

/// A table whose only group was tidied at 1 s. Ticks of its rule are 16 ns, so it must be tidied again from
/// 26 770 ms on.
fn tidied_table(units: u32) -> (Arc<DueTable>, Arc<Enrolled<Packed>>) {
    let (table, rule) = table(units);
    assert!(table.decide(&rule, table.key("ann"), at(1_000), Cost::ONE).is_admit());
    (table, rule)
}

#[test]
fn a_group_is_tidied_while_a_slower_thread_charges_an_active_key() {
    explore(|| {
        let (table, rule) = tidied_table(2);
        let (ann, bob) = (table.key("ann"), table.key("bob"));
        assert!(table.decide(&rule, ann, at(26_700), Cost::ONE).is_admit());
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(table.decide(&rule, bob, at(26_780), Cost::of(2)).is_admit()))
        };
        assert!(table.decide(&rule, ann, at(26_760), Cost::ONE).is_admit());
        other.join().unwrap();
        for key in [ann, bob] {
            assert!(!table.decide(&rule, key, at(26_790), Cost::ONE).is_admit());
            assert!(table.decide(&rule, key, at(27_800), Cost::of(2)).is_admit());
        }
    });
}

#[test]
fn a_group_is_tidied_while_a_slower_thread_charges_an_idle_key() {
    explore(|| {
        let (table, rule) = tidied_table(1);
        let (ann, bob) = (table.key("ann"), table.key("bob"));
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(table.decide(&rule, bob, at(26_780), Cost::ONE).is_admit()))
        };
        assert!(table.decide(&rule, ann, at(26_760), Cost::ONE).is_admit());
        other.join().unwrap();
        assert!(!table.decide(&rule, ann, at(26_790), Cost::ONE).is_admit());
        assert!(!table.decide(&rule, bob, at(26_790), Cost::ONE).is_admit());
    });
}

#[test]
fn a_group_is_tidied_while_a_thread_that_comes_seconds_late_asks() {
    explore(|| {
        let (table, rule) = tidied_table(1);
        let (ann, bob) = (table.key("ann"), table.key("bob"));
        assert!(table.decide(&rule, ann, at(26_700), Cost::ONE).is_admit());
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(table.decide(&rule, bob, at(26_780), Cost::ONE).is_admit()))
        };
        assert!(!table.decide(&rule, ann, at(21_000), Cost::ONE).is_admit());
        other.join().unwrap();
        assert!(!table.decide(&rule, ann, at(21_000), Cost::ONE).is_admit());
        for key in [ann, bob] {
            assert!(!table.decide(&rule, key, at(26_790), Cost::ONE).is_admit());
            assert!(table.decide(&rule, key, at(27_800), Cost::ONE).is_admit());
        }
    });
}

#[test]
fn a_group_is_moved_back_by_two_threads_at_once() {
    explore(|| {
        // Moved twice, a due time of 22 490 ms would read as one just before 100 s, when the group was tidied,
        // because nine times 2^32 ticks lie between: as idle.
        let table = Arc::new(DueTable::new(MaxKeys::new(1).unwrap(), 1));
        let quota = Quota::per_second(Cost::of(10)).unwrap().with_burst(Cost::ONE).unwrap();
        let rule = Arc::new(table.enrol(&TokenBucket::new(quota)).unwrap());
        let ann = table.key("ann");
        assert!(table.decide(&rule, ann, at(100_000), Cost::ONE).is_admit());
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(!table.decide(&rule, ann, at(22_390), Cost::ONE).is_admit()))
        };
        assert!(!table.decide(&rule, ann, at(22_390), Cost::ONE).is_admit());
        other.join().unwrap();
        assert!(table.decide(&rule, ann, at(22_490), Cost::ONE).is_admit());
    });
}

#[test]
fn a_group_is_moved_back_while_a_thread_of_the_old_time_decides() {
    explore(|| {
        // Ann has one of two left. One thread takes it at the old time while the other moves her slot to the
        // new one. Read or written with the wrong time, 78 s or nine times 2^31 ticks away, the slot would look idle.
        let table = Arc::new(DueTable::new(MaxKeys::new(1).unwrap(), 1));
        let quota = Quota::per_second(Cost::of(10)).unwrap().with_burst(Cost::of(2)).unwrap();
        let rule = Arc::new(table.enrol(&TokenBucket::new(quota)).unwrap());
        let ann = table.key("ann");
        assert!(table.decide(&rule, ann, at(100_000), Cost::ONE).is_admit());
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, ann, at(22_390), Cost::ONE).is_admit())
        };
        let _ = table.decide(&rule, ann, at(100_010), Cost::ONE);
        other.join().unwrap();
        assert!(!table.decide(&rule, ann, at(22_430), Cost::of(2)).is_admit());
    });
}

#[test]
fn a_refund_beside_a_reset_of_its_key_gives_back_nothing_of_what_is_taken_after_it() {
    explore(|| {
        let (table, rule) = table(1);
        let ann = table.key("ann");
        let mut charge = table.decide(&rule, ann, at(0), Cost::ONE).admitted().unwrap();
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || {
                table.reset(&rule, ann, at(0));
                assert!(table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
            })
        };
        table.refund(&rule, ann, at(0), &mut charge);
        other.join().unwrap();
        assert!(!table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
    });
}

#[test]
fn what_two_threads_foresee_is_taken_once() {
    explore(|| {
        let (table, rule) = table(2);
        let ann = table.key("ann");
        assert!(table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
        let take = || {
            let (table, rule) = (table.clone(), rule.clone());
            move || match table.foresee(&rule, ann, at(0), Cost::ONE).unwrap() {
                Verdict::Admit(foreseen) => foreseen.take().is_some(),
                Verdict::Refuse(_) => false,
            }
        };
        let other = thread::spawn(take());
        assert!(take()() ^ other.join().unwrap());
        assert_eq!(table.usage(&rule, ann, at(0)).used, Cost::of(2));
    });
}

#[test]
fn what_was_foreseen_before_a_group_is_moved_back_is_not_taken_after() {
    explore(|| {
        // Ann has one of two left. She foresees that at the old time; the other thread moves her slot to the new one.
        let table = Arc::new(DueTable::new(MaxKeys::new(1).unwrap(), 1));
        let quota = Quota::per_second(Cost::of(10)).unwrap().with_burst(Cost::of(2)).unwrap();
        let rule = Arc::new(table.enrol(&TokenBucket::new(quota)).unwrap());
        let ann = table.key("ann");
        assert!(table.decide(&rule, ann, at(100_000), Cost::ONE).is_admit());
        let foreseen = table.foresee(&rule, ann, at(100_010), Cost::ONE).unwrap().admitted().unwrap();
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, ann, at(22_390), Cost::ONE).is_admit())
        };
        let is_taken = foreseen.take().is_some();
        assert!(!(is_taken && other.join().unwrap()));
        assert!(!table.decide(&rule, ann, at(22_430), Cost::of(2)).is_admit());
    });
}

#[test]
fn a_place_that_two_threads_foresee_is_taken_once() {
    explore(|| {
        let table = std::sync::Arc::new(InFlightTable::new(MaxKeys::new(1).unwrap(), 7));
        let ann = table.key("ann");
        let held = table.take(ann, 2).admitted().unwrap();
        let take = || {
            let table = std::sync::Arc::clone(&table);
            move || match table.foresee(ann, 2).unwrap() {
                Verdict::Admit(foreseen) => foreseen.take(),
                Verdict::Refuse(_) => None,
            }
        };
        let other = thread::spawn(take());
        let taken = [take()(), other.join().unwrap()];
        assert_eq!((taken.iter().flatten().count(), table.total()), (1, 2));
        for place in taken.into_iter().flatten().chain([held]) {
            table.give_back(place);
        }
        assert_eq!(table.total(), 0);
    });
}

#[test]
fn a_block_takes_effect_or_not_yet_and_never_half() {
    explore(|| {
        let (table, rule) = table(5);
        let ann = table.key("ann");
        let other = {
            let table = table.clone();
            thread::spawn(move || table.set_override(ann, Override::Block, at(0), at(9)).unwrap())
        };
        let admitted = u32::from(table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
        other.join().unwrap();
        assert!(!table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
        table.clear_override(ann);
        assert_eq!(table.usage(&rule, ann, at(0)).used, Cost::of(admitted));
    });
}

#[test]
fn two_threads_give_a_key_one_cell() {
    explore(|| {
        let table = Arc::new(CellTable::new(MaxKeys::new(1).unwrap(), 1));
        let quota = Quota::per_second(Cost::ONE).unwrap();
        let rule = Arc::new(table.enrol(FixedWindow::new(quota).unwrap()).unwrap());
        let key = table.key("ann");
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, key, at(0), Cost::ONE).is_admit())
        };
        let mine = table.decide(&rule, key, at(0), Cost::ONE).is_admit();
        assert!(mine ^ other.join().unwrap());
    });
}

#[test]
fn a_newcomer_of_two_threads_gets_one_slot_and_never_more_than_its_limit() {
    explore(|| {
        let table = std::sync::Arc::new(InFlightTable::new(MaxKeys::new(1).unwrap(), 7));
        let key = table.key("ann");
        let enter = || {
            let table = std::sync::Arc::clone(&table);
            move || {
                let place = table.take(key, 1).admitted();
                assert!(table.total() <= 1);
                if let Some(place) = place {
                    table.give_back(place);
                    return 1;
                }
                0
            }
        };
        let other = thread::spawn(enter());
        let admitted = enter()() + other.join().unwrap();
        assert!(admitted >= 1);
        assert_eq!((table.total(), table.overflowed()), (0, 0));
    });
}

#[test]
fn a_slot_at_zero_goes_to_its_key_or_to_a_newcomer_but_never_to_both() {
    explore(|| {
        let table = std::sync::Arc::new(InFlightTable::new(MaxKeys::new(1).unwrap(), 7));
        // Loom's tables have two slots for one key: ann's, which she has just left, and cid's, who is there.
        let [ann, cid, bob] = ["ann", "cid", "bob"].map(|name| table.key(name));
        let left = table.take(ann, 1).admitted().unwrap();
        let stays = table.take(cid, 1).admitted().unwrap();
        table.give_back(left);
        let other = {
            let table = std::sync::Arc::clone(&table);
            thread::spawn(move || table.take(ann, 1).admitted())
        };
        let taken = [table.take(bob, 1).admitted(), other.join().unwrap()];
        let own = taken.iter().flatten().filter(|place| !place.is_overflow()).count();
        assert_eq!((own, taken.iter().flatten().count(), table.total()), (1, 2, 3));
        for place in taken.into_iter().flatten().chain([stays]) {
            table.give_back(place);
        }
        assert_eq!(table.total(), 0);
    });
}
