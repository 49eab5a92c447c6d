//! Who is refused while a part of a level is shed.

use std::time::Instant;

use serde_json::Value;

use super::Guarded;
use super::rules::{BELIEVED, ROOM, get, tell};
use crate::support::{PATIENCE, Upstream};

/// A rule that takes eight seconds for a level, so that it can be caught half-way.
const SLOW: &str = "[signal.backlog]
    from = 'api'
    [rule.shedding]
    kind = 'shed'
    target = { backlog = 100 }
    order = ['sheddable', 'sheddable_plus']
    ramp = '8s'";

/// Just below the target, where the edge rests: it falls below 87.5.
const RESTING: f64 = 94.0;

/// The share of sheddable that the rule sheds.
fn share(guarded: &Guarded) -> f64 {
    guarded.ask("/api/v1/status").json()["shedding"]["shed"]["sheddable"].as_f64().unwrap()
}

/// Whether the signal is known and such that the edge rests.
fn is_at_rest(guarded: &Guarded) -> bool {
    let all = guarded.ask("/api/v1/signals").json();
    let mut all = all["signals"].as_array().unwrap().iter();
    let value = all.find(|signal| signal["signal"] == "backlog").map(|signal| &signal["value"]);
    value.and_then(Value::as_f64).is_some_and(|value| (88.0..100.0).contains(&value))
}

/// Sheds about a half, and stays there.
fn shed_half(guarded: &Guarded) {
    let begun = Instant::now();
    loop {
        match share(guarded) {
            // What is told is smoothed, so the edge goes on for a while.
            share if share < 0.4 => tell(guarded, 200.0),
            share if share > 0.6 => tell(guarded, 0.0),
            _ if is_at_rest(guarded) => return,
            _ => tell(guarded, RESTING),
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "{}", guarded.ask("/api/v1/status").text());
    }
}

/// Which of sixty callers are served, ten times.
fn rounds(guarded: &Guarded) -> Vec<Vec<bool>> {
    let is_served = |number| {
        let answer = get(guarded, "/", "sheddable", &format!("caller {number}"));
        assert!([200, 503].contains(&answer.status()), "{answer:?}");
        answer.status() == 200
    };
    let round = |_| {
        // Told again, since it is soon forgotten.
        tell(guarded, RESTING);
        (0..60).map(is_served).collect()
    };
    (0..10).map(round).collect()
}

#[test]
fn whoever_passes_a_rule_that_sheds_a_half_passes_each_time() {
    let upstream = Upstream::ok();
    let guarded = Guarded::before(&upstream, ROOM, &format!("{BELIEVED}\n{SLOW}"));
    shed_half(&guarded);
    let before = share(&guarded);
    let is_same_each_time = |rounds: &[Vec<bool>]| rounds.windows(2).all(|pair| pair[0] == pair[1]);
    let mut asked = rounds(&guarded);
    if !is_same_each_time(&asked) {
        // Callers are put into other cohorts at each full hour, which may just have come.
        asked = rounds(&guarded);
    }
    assert!(is_same_each_time(&asked), "{asked:?}");
    let served = asked[0].iter().filter(|is_served| **is_served).count();
    // A half, give or take what sixty drawn lots differ by: less than one in ten thousand draws is outside.
    assert!((8..=52).contains(&served), "{served} of 60 at {before}");
    for number in 0..60 {
        assert_eq!(get(&guarded, "/", "sheddable_plus", &format!("caller {number}")).status(), 200);
    }
    assert_eq!(share(&guarded).to_string(), before.to_string(), "the edge rests");
}
