//! No more passes than was promised, whatever the clock and the order of what comes.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{Charge, Cost, Moment, Verdict};

use crate::draw::{SLACK, jumps, late_traffic, promises, share, start, traffic};

proptest! {
    #[test]
    fn nothing_is_admitted_above_the_envelope_of_the_rule(promise in promises(), traffic in traffic()) {
        for key in &mut promise.kept() {
            let mut now = start();
            let mut admitted = Vec::new();
            for &(step, cost) in &traffic {
                now = now.plus(promise.time(step));
                let cost = promise.cost(cost);
                if key.decide(now, cost).is_admit() {
                    admitted.push((now, now, cost));
                }
            }
            promise.admissions().assert_holds(&admitted, key.slack());
        }
    }

    #[test]
    fn what_waits_leaves_no_faster_than_the_rate_and_waits_no_longer_than_promised(
        promise in promises(),
        traffic in traffic(),
    ) {
        for key in &mut promise.kept() {
            let mut now = start();
            let mut left = Vec::new();
            for &(step, cost) in &traffic {
                now = now.plus(promise.time(step));
                let cost = promise.cost(cost);
                let Verdict::Admit(charge) = key.decide(now, cost) else { continue };
                let leaves = now.plus(charge.wait());
                prop_assert!(charge.wait().as_nanos() <= promise.longest_wait().as_nanos() + key.slack());
                left.push((leaves, leaves, cost));
            }
            match promise.departures() {
                Some(departures) => departures.assert_holds(&left, key.slack()),
                None => promise.admissions().assert_holds(&left, key.slack()),
            }
        }
    }

    #[test]
    fn settling_the_last_first_never_grants_more_than_the_true_costs_allow(
        promise in promises(),
        requests in prop::collection::vec((0_u64..300, 1_u64..900, 0_u64..900, 0_u64..3), 1..40),
    ) {
        for key in &mut promise.kept() {
            let mut now = start();
            let mut open: Vec<(Charge, Cost)> = Vec::new();
            let mut spent = Vec::new();
            for &(step, estimate, true_cost, settled) in &requests {
                now = now.plus(promise.time(step));
                for _ in 0..settled {
                    let Some((mut charge, true_cost)) = open.pop() else { break };
                    key.settle(now, &mut charge, true_cost);
                }
                let estimate = promise.cost(estimate).max(Cost::from_micros(1));
                if let Verdict::Admit(charge) = key.decide(now, estimate) {
                    let smaller = Cost::from_micros(share(estimate.micros(), true_cost));
                    spent.push((now, now, smaller));
                    open.push((charge, smaller));
                }
            }
            promise.admissions().assert_holds(&spent, key.slack());
        }
    }

    #[test]
    fn settling_in_any_order_never_grants_more_in_all_than_the_true_costs_allow(
        promise in promises(),
        requests in prop::collection::vec((0_u64..300, 1_u64..900, 0_u64..900, 0_u64..600), 1..40),
    ) {
        // Giving back moves later charges forward in time, but not their marks. So one that is settled after an
        // earlier one may get back what has just passed, and an interval that begins in between may hold more.
        for key in &mut promise.kept() {
            let mut now = start();
            let mut open: Vec<(Moment, Charge, Cost)> = Vec::new();
            let mut spent = Vec::new();
            for &(step, estimate, true_cost, delay) in &requests {
                now = now.plus(promise.time(step));
                let (due, later): (Vec<_>, Vec<_>) = open.into_iter().partition(|(at, ..)| *at <= now);
                open = later;
                for (_, mut charge, true_cost) in due {
                    key.settle(now, &mut charge, true_cost);
                }
                let estimate = promise.cost(estimate).max(Cost::from_micros(1));
                if let Verdict::Admit(charge) = key.decide(now, estimate) {
                    let smaller = Cost::from_micros(share(estimate.micros(), true_cost));
                    spent.push((now, now, smaller));
                    open.push((now.plus(promise.time(delay)), charge, smaller));
                }
            }
            promise.admissions().assert_holds_from_the_first(&spent, key.slack());
        }
    }

    #[test]
    fn a_clock_that_goes_back_or_jumps_gives_no_free_burst_and_no_lock_out(
        promise in promises(),
        jumps in jumps(),
    ) {
        // The slack and eight times the extent is the longest that any wrong clock can cost.
        let longest = Duration::from_nanos(promise.extent().saturating_mul(8) + SLACK + 2_200_000_000);
        for key in &mut promise.kept() {
            let mut now = start();
            let (mut forward, mut admitted, mut borrowed) = (0, 0, 0);
            for &(jump, step, cost) in &jumps {
                let next = Moment::from_nanos(now.nanos().saturating_add_signed(jump)).plus(promise.time(step));
                forward += next.since(now).as_nanos();
                if next < now {
                    // A clock set back leaves nobody more than an extent ahead: what the last request borrowed
                    // beyond that is forgotten.
                    admitted -= borrowed;
                    borrowed = 0;
                }
                now = next;
                let cost = promise.cost(cost).max(Cost::from_micros(1));
                if key.decide(now, cost).is_admit() {
                    admitted += u128::from(cost.micros());
                    borrowed = if promise.borrowing.is_some() { cost.micros().into() } else { 0 };
                }
            }
            let granted = promise.granted(forward + 41 * key.slack()) + 1;
            prop_assert!(admitted - borrowed <= u128::from(promise.at_once()) + granted);
            prop_assert!(key.decide(now.plus(longest), promise.quota.burst()).is_admit(), "locked out");
        }
    }

    #[test]
    fn threads_that_come_late_are_granted_no_time_twice(promise in promises(), traffic in late_traffic()) {
        for key in &mut promise.kept() {
            let mut arrived = start();
            let mut admitted = Vec::new();
            for &(step, late, cost) in &traffic {
                arrived = arrived.plus(promise.time(step));
                let told = Moment::from_nanos(arrived.nanos() - late);
                let cost = promise.cost(cost).max(Cost::from_micros(1));
                if key.decide(told, cost).is_admit() {
                    admitted.push((told, arrived, cost));
                }
            }
            promise.admissions().assert_holds(&admitted, key.slack());
        }
    }
}
