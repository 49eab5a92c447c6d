//! What the gateway makes of each scenario.

use crate::play::{protected, protected_twice_more};

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o2_in_a_flood_of_ten_no_level_is_shed_before_the_lower_ones() {
    protected("o2b_flood_does_not_fit");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o3_a_flood_of_one_class_does_not_drown_the_other() {
    protected("o3_low_class");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o4_saying_no_is_cheaper_than_saying_yes() {
    protected("o4_cheap_upstream");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o5_a_ramp_is_shed_without_oscillation() {
    protected("o5_ramp");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o6_bursts_are_served_at_capacity_in_two_more_runs() {
    protected_twice_more("o6_waves");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o6_bursts_before_a_slower_service_are_served_at_capacity() {
    protected("o6b_slow_waves");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o6_bursts_before_a_slower_service_are_served_at_capacity_in_two_more_runs() {
    protected_twice_more("o6b_slow_waves");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o7_two_kinds_of_work_are_not_taken_for_a_queue() {
    protected("o7_two_costs");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o12_health_checks_are_never_shed() {
    protected("o12_health_checks");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn m3_a_crowd_does_not_outlive_the_spike_that_brought_it() {
    protected("m3_spike");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn m4_those_who_waited_for_a_restart_do_not_run_it_over() {
    protected("m4_herd_after_restart");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn m6_responses_at_the_timeout_do_not_raise_the_limit() {
    protected("m6_ratchet");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn m7_a_slow_dependency_does_not_lower_the_limit() {
    protected("m7_slow_dependency");
}
