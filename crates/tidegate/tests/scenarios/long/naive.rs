//! How the service fails without it: a scenario that shows no failure proves nothing.

use crate::play::naive;

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o2_a_flood_of_ten_drowns_what_is_most_critical() {
    naive("o2b_flood_does_not_fit");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o3_a_flood_of_one_class_drowns_the_other() {
    naive("o3_low_class");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o5_a_ramp_ends_in_a_queue_that_stays() {
    naive("o5_ramp");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o6_bursts_pile_up_before_a_slower_service() {
    naive("o6b_slow_waves");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o12_health_checks_drown_with_the_rest() {
    naive("o12_health_checks");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn m3_a_crowd_outlives_the_spike_that_brought_it() {
    naive("m3_spike");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn m4_those_who_waited_for_a_restart_run_it_over() {
    naive("m4_herd_after_restart");
}
