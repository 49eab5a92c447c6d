//! Cells that pass from key to key while others decide. Loom's tables have two cells for one key.

use loom::sync::Arc;
use loom::thread;
use tidegate_core::keyed::{CellTable, MaxKeys};
use tidegate_core::rate::FixedWindow;
use tidegate_core::shell::Enrolled;
use tidegate_core::{Cost, Quota, Reason};

use super::{at, explore};

type Made = (Arc<CellTable<FixedWindow>>, Arc<Enrolled<FixedWindow>>);

/// A table with two cells, and a rule of so many a second.
fn table(units: u32) -> Made {
    let table = Arc::new(CellTable::new(MaxKeys::new(1).unwrap(), 1));
    let quota = Quota::per_second(Cost::of(units)).unwrap();
    let rule = Arc::new(table.enrol(FixedWindow::new(quota).unwrap()).unwrap());
    (table, rule)
}

#[test]
fn an_idle_cell_goes_to_its_key_or_to_a_newcomer_and_the_other_shares() {
    explore(|| {
        let (table, rule) = table(1);
        let [ann, cid, bob] = ["ann", "cid", "bob"].map(|name| table.key(name));
        // Both have a cell. A second later ann's is idle and cid's is not.
        for (key, millis) in [(ann, 0), (cid, 0), (cid, 1_000)] {
            assert!(table.decide(&rule, key, at(millis), Cost::ONE).is_admit());
        }
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, ann, at(1_000), Cost::ONE).admitted().unwrap())
        };
        let newcomers = table.decide(&rule, bob, at(1_000), Cost::ONE).admitted().unwrap();
        let own = other.join().unwrap();
        assert!(own.is_overflow() ^ newcomers.is_overflow());
        assert_eq!(table.overflowed(), 1);
        for key in [ann, bob, cid] {
            assert!(!table.decide(&rule, key, at(1_000), Cost::ONE).is_admit());
        }
    });
}

#[test]
fn a_newcomer_of_a_full_table_takes_nothing_from_those_who_are_in_it() {
    explore(|| {
        let (table, rule) = table(2);
        let [ann, cid, bob] = ["ann", "cid", "bob"].map(|name| table.key(name));
        for key in [ann, cid] {
            assert!(table.decide(&rule, key, at(0), Cost::ONE).is_admit());
        }
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, bob, at(0), Cost::of(2)).admitted().unwrap())
        };
        let own = table.decide(&rule, ann, at(0), Cost::ONE).admitted().unwrap();
        assert!(!own.is_overflow() && other.join().unwrap().is_overflow());
        assert!(!table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
        let refusal = table.decide(&rule, bob, at(0), Cost::ONE).refusal().unwrap();
        assert_eq!(refusal.reason, Reason::OverflowSpent);
        assert_eq!(table.usage(&rule, cid, at(0)).used, Cost::ONE);
    });
}

#[test]
fn a_refund_beside_a_reset_gives_back_nothing_that_was_taken_after() {
    explore(|| {
        let (table, rule) = table(2);
        let ann = table.key("ann");
        let mut charge = table.decide(&rule, ann, at(0), Cost::of(2)).admitted().unwrap();
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || {
                table.reset(&rule, ann, at(0));
                assert!(table.decide(&rule, ann, at(0), Cost::of(2)).is_admit());
            })
        };
        table.refund(&rule, ann, at(0), &mut charge);
        other.join().unwrap();
        assert_eq!(table.usage(&rule, ann, at(0)).used, Cost::of(2));
    });
}
