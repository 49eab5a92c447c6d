//! How the service fails without it: a scenario that shows no failure proves nothing.

use crate::play::naive;

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o1_forty_percent_too_much_drowns_the_service() {
    naive("o1_step");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o2_a_flood_of_ten_drowns_what_is_critical() {
    naive("o2a_flood_fits");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o6_bursts_pile_up() {
    naive("o6_waves");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn o9_a_greedy_caller_takes_everything() {
    naive("o9_noisy_neighbour");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "measures: needs an optimised build")]
fn m1_retries_outlive_the_cut_that_caused_them() {
    naive("m1_retry_storm");
}
