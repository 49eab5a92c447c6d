use super::*;

const CLASS: usize = 1;

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One hundred requests a second for `seconds`; `ending` says how each ends, 10 ms later.
fn told(seconds: u64, ending: impl Fn(u64) -> Ending) -> Record {
    let mut record = Record::new(100.0, vec![Criticality::Sheddable, Criticality::Critical]);
    for millis in (0..seconds * 1000).step_by(10) {
        let ending = ending(millis);
        record.arrived(at(millis), CLASS);
        if ending == Ending::Refused {
            record.refusal(at(millis));
        }
        record.ended(Told { arrived: at(millis), ended: at(millis + 10), class: CLASS, ending });
    }
    record
}

#[test]
fn goodput_counts_what_was_right_and_in_time() {
    let record = told(10, |millis| if millis < 5000 { Ending::Good } else { Ending::Late });
    assert!((record.goodput(&(at(0)..at(5000))) - 1.0).abs() < 0.003);
    assert!(record.goodput(&(at(5100)..at(10_000))) < 1e-9);
    assert!((record.success(&[CLASS], &(at(0)..at(10_000))) - 0.5).abs() < 1e-9);
    assert!((record.offered(&(at(0)..at(10_000))) - 1.0).abs() < 1e-9);
}

#[test]
fn recovery_begins_where_ten_good_seconds_begin() {
    let record =
        told(40, |millis| if (5000..12_300).contains(&millis) { Ending::Failed } else { Ending::Good });
    // A second with 4 % of failures is still good enough, so it may begin 40 ms early; bins are 100 ms.
    assert_eq!(record.recovery(at(10_000)), Some(Duration::from_millis(2300)));
    let relapse = told(40, |millis| if millis % 9000 < 500 { Ending::Failed } else { Ending::Good });
    assert_eq!(relapse.recovery(at(10_000)), None);
}

#[test]
fn the_slowest_percent_is_exact() {
    let mut record = Record::new(100.0, vec![Criticality::Sheddable, Criticality::Critical]);
    for millis in 1..=200 {
        record.ended(Told { arrived: at(0), ended: at(millis), class: CLASS, ending: Ending::Good });
    }
    assert_eq!(record.p99(&[CLASS], &[at(0)..at(1)]), Duration::from_millis(198));
    assert_eq!(record.p99(&[CLASS], &[at(1)..at(2)]), Duration::ZERO);
}

#[test]
fn a_rate_that_rises_and_falls_once_turns_once() {
    // Refuses nothing, then all, then nothing.
    let hill = told(60, |millis| if millis / 20_000 == 1 { Ending::Refused } else { Ending::Good });
    assert!((hill.turns(&(at(0)..at(60_000)), Duration::from_secs(5)) - 1.0).abs() < 1e-9);
    let saw = told(60, |millis| if millis / 5000 % 2 == 1 { Ending::Refused } else { Ending::Good });
    assert!(saw.turns(&(at(0)..at(60_000)), Duration::from_secs(5)) > 9.0);
}

#[test]
fn a_lower_level_that_is_served_while_a_higher_is_refused_is_an_inversion() {
    let served_below = |good_of_lower: u64| {
        let mut record = told(10, |millis| if millis % 100 == 0 { Ending::Good } else { Ending::Refused });
        for millis in (0..10_000).step_by(10) {
            let ending = if millis % 100 < good_of_lower * 10 { Ending::Good } else { Ending::Refused };
            record.arrived(at(millis), 0);
            record.ended(Told { arrived: at(millis), ended: at(millis), class: 0, ending });
        }
        record.inversion(&(at(0)..at(10_000)))
    };
    assert!(served_below(0) < 1e-9);
    assert!((served_below(3) - 0.3).abs() < 1e-9);
    let nobody_refused = told(10, |_| Ending::Good);
    assert!(nobody_refused.inversion(&(at(0)..at(10_000))) < 1e-9);
}

#[test]
fn processor_time_counts_from_what_was_told_when_a_stretch_began() {
    let mut record = told(3, |millis| if millis < 1000 { Ending::Good } else { Ending::Refused });
    for second in 0..4 {
        let processor = Some(at(100 * second));
        record.look(at(1000 * second), Look { processor, ..Look::default() });
    }
    let calm = Effort { used: at(100), forwarded: 100, refused: 0 };
    assert_eq!(record.effort(&(at(0)..at(1000))), Some(calm));
    let flood = Effort { used: at(200), forwarded: 0, refused: 200 };
    assert_eq!(record.effort(&(at(1000)..at(3000))), Some(flood));
}

#[test]
fn what_told_no_processor_time_made_no_effort_that_is_known() {
    let mut record = told(1, |_| Ending::Good);
    record.look(at(0), Look::default());
    record.look(at(1000), Look::default());
    assert_eq!(record.effort(&(at(0)..at(1000))), None);
}
