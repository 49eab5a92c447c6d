//! What the gateway makes of each scenario.

use crate::play::protected;

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o1_forty_percent_too_much_is_borne_and_forgotten() {
    protected("o1_step");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o2_in_a_flood_of_ten_what_is_critical_is_served_if_it_fits() {
    protected("o2a_flood_fits");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o6_bursts_are_served_at_capacity() {
    protected("o6_waves");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o9_a_greedy_caller_is_held_to_its_quota() {
    protected("o9_noisy_neighbour");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn m1_retries_do_not_outlive_the_cut_that_caused_them() {
    protected("m1_retry_storm");
}
