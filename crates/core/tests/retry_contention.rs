//! The result of the back-off example: what it says in the documentation must stay true.

#[path = "../examples/backoff/contention.rs"]
mod contention;

use contention::{Waiting, compete};
use tidegate_core::retry::Jitter;

#[test]
fn full_and_decorrelated_jitter_need_far_fewer_attempts() {
    for callers in [110, 150] {
        let attempts = |way| compete(callers, way).attempts;
        let [none, plain, equal, full, decorrelated] = Waiting::ALL.map(attempts);
        assert!(
            full * 2 < plain && decorrelated * 3 < plain * 2,
            "{callers}: {full}, {decorrelated}, {plain}"
        );
        assert!(
            full * 5 < none * 2 && decorrelated * 5 < none * 2,
            "{callers}: {full}, {decorrelated}, {none}"
        );
        assert!(equal < plain && full <= equal, "{callers}: {full}, {equal}, {plain}");
    }
}

#[test]
fn jitter_does_not_take_longer_than_waiting_without_it() {
    let took = |jitter| compete(100, Waiting::Exponential(jitter)).took;
    assert!(took(Jitter::Full) < took(Jitter::None));
    assert!(took(Jitter::Decorrelated) < took(Jitter::None));
}

#[test]
fn every_run_is_the_same() {
    for way in Waiting::ALL {
        let [one, other] = [compete(30, way), compete(30, way)];
        assert_eq!((one.attempts, one.took), (other.attempts, other.took), "{}", way.name());
    }
}
