//! The limit algorithms against published cases, and the failures of others replayed against ours.
//!
//! The cases are in `data/concurrency.txt`, which explains its words. A word nobody knows fails the test, and
//! so does a file of which too little was run.

use std::time::Duration;

use tidegate_core::concurrency::{
    Aimd, Baseline, Bounds, Change, Controller, Gradient, Latency, Objective, Sample, Surroundings, Vegas,
    VegasState, Why, Window,
};
use tidegate_core::permit::Outcome;

#[test]
fn aimd_and_vegas_step_as_netflix_published() {
    assert_eq!(run(include_str!("data/concurrency.txt")), Ok(23));
}

#[test]
fn what_is_misspelt_or_wrong_in_the_file_is_reported_with_its_line() {
    for (text, problem) in [
        ("sample 1 1 ok -> 1", "line 1: no limit yet"),
        ("vega start 1 bounds 1..2", "line 1: unknown word `vega`"),
        ("aimd start 5 bounds 1..9\nsample 1 5 fine -> 6", "line 2: unknown outcome `fine`"),
        ("aimd start 5 bounds 1..9\n\nsample 1 5 ok -> 7", "line 3: the limit is 6, expected 7"),
        ("aimd start 5 bounds 9..1", "line 1: min is 9, but must be at least 1 and at most max"),
    ] {
        assert_eq!(run(text), Err(problem.to_owned()));
    }
}

enum Limit {
    Aimd(u32),
    Vegas(VegasState),
}

/// Runs the file and returns how many samples were compared.
fn run(text: &str) -> Result<u32, String> {
    let mut state = None;
    let mut compared = 0;
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let step = match words.as_slice() {
            [] | ["#", ..] => Ok(()),
            [kind, "start", start, "bounds", bounds] => {
                limit(kind, start, bounds).map(|made| state = Some(made))
            }
            ["sample", millis, in_flight, outcome, "->", expected] => {
                compared += 1;
                sample(&mut state, [millis, in_flight, outcome, expected])
            }
            [first, ..] => Err(format!("unknown word `{first}`")),
        };
        step.map_err(|problem| format!("line {number}: {problem}"))?;
    }
    Ok(compared)
}

fn limit(kind: &str, start: &str, bounds: &str) -> Result<(Bounds, Limit), String> {
    let (min, max) = bounds.split_once("..").ok_or("no bounds")?;
    let bounds = Bounds::new(number(min)?..=number(max)?).map_err(|problem| problem.to_string())?;
    let limit = number(start)?;
    match kind {
        "aimd" => Ok((bounds, Limit::Aimd(limit))),
        "vegas" => Ok((bounds, Limit::Vegas(VegasState { limit, baseline: None }))),
        other => Err(format!("unknown word `{other}`")),
    }
}

fn sample(state: &mut Option<(Bounds, Limit)>, words: [&&str; 4]) -> Result<(), String> {
    let [millis, in_flight, outcome, expected] = words;
    let outcome = match *outcome {
        "ok" => Outcome::Ok,
        "failed" => Outcome::Failed,
        "overloaded" => Outcome::Overloaded,
        "abandoned" => Outcome::Abandoned,
        other => return Err(format!("unknown outcome `{other}`")),
    };
    let took = Some(Duration::from_millis(number(millis)?.into()));
    let sample = Sample { outcome, took, in_flight: number(in_flight)? };
    let (bounds, limit) = state.as_mut().ok_or("no limit yet")?;
    let limit = match limit {
        Limit::Aimd(limit) => {
            *limit = Aimd::default().step(bounds, *limit, &sample);
            *limit
        }
        Limit::Vegas(state) => {
            *state = Vegas::step(bounds, *state, &sample);
            state.limit
        }
    };
    let expected = number(expected)?;
    if limit == expected { Ok(()) } else { Err(format!("the limit is {limit}, expected {expected}")) }
}

fn number(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("no number: `{word}`"))
}

/// A window of so many seconds in which everything in flight took the same time.
fn window(seconds: u64, in_flight: u32, median: Duration) -> Window {
    let succeeded = f64::from(in_flight) * seconds as f64 / median.as_secs_f64();
    let succeeded: u32 = format!("{succeeded:.0}").parse().expect("a rounded count");
    Window {
        length: Duration::from_secs(seconds),
        latency: Some(Latency { min: median, median, mean: median }),
        succeeded,
        unheard: 0,
        failed: 0,
        overloaded: 0,
        abandoned: 0,
        max_in_flight: in_flight,
        sum_in_flight: u64::from(in_flight) * u64::from(succeeded),
        unloaded: None,
    }
}

const TIMEOUT: Duration = Duration::from_secs(5);

fn controllers() -> [Controller; 3] {
    let bounds = Bounds::new(5..=200).expect("in order");
    let objective = Objective::half_of(TIMEOUT).expect("not zero");
    [
        Controller::new(Aimd::default(), bounds, objective),
        Controller::new(Vegas, bounds, objective),
        Controller::new(Gradient::default(), bounds, objective),
    ]
}

/// Gradient2 with Netflix's defaults.
struct Gradient2 {
    limit: f64,
    long: f64,
    seen: u32,
}

impl Gradient2 {
    fn step(&mut self, latency: f64, in_flight: f64) {
        self.seen += 1;
        if self.seen <= 10 {
            self.long += (latency - self.long) / f64::from(self.seen);
        } else {
            self.long += 2.0 / 601.0 * (latency - self.long);
        }
        if self.long / latency > 2.0 {
            self.long *= 0.95;
        }
        if in_flight < self.limit / 2.0 {
            return;
        }
        let gradient = (1.5 * self.long / latency).clamp(0.5, 1.0);
        let target = self.limit * gradient + 4.0;
        self.limit = (0.8 * self.limit + 0.2 * target).clamp(20.0, 200.0);
    }
}

#[test]
fn responses_at_the_timeout_for_ten_minutes_never_grow_a_limit() {
    // M6, NCL#137. The naive formula climbs to its ceiling, as reported: within 225 windows.
    let mut naive = Gradient2 { limit: 20.0, long: 0.0, seen: 0 };
    let climbed = (1..=600).find(|_| {
        naive.step(5_000.0, naive.limit);
        naive.limit >= 200.0
    });
    assert_eq!(climbed, Some(225));

    // Ours, from the start and after an hour of health.
    for healthy in [0, 3_600] {
        for mut limit in controllers() {
            for _ in 0..healthy {
                let _ = limit
                    .update(&window(1, limit.limit(), Duration::from_millis(10)), Surroundings::default());
            }
            let before = limit.limit();
            for _ in 0..600 {
                let change = limit.update(&window(1, limit.limit(), TIMEOUT), Surroundings::default());
                assert!(change.to <= change.from, "{} {change}", limit.algorithm());
                assert!(change.to <= before);
            }
        }
    }
}

#[test]
fn callers_that_all_give_up_at_the_timeout_never_grow_a_limit() {
    // The same, when a timeout is reported as what it is.
    for spoil in [
        |window: Window| Window { latency: None, failed: window.succeeded, succeeded: 0, ..window },
        |window: Window| Window { latency: None, abandoned: window.succeeded, succeeded: 0, ..window },
    ] {
        for mut limit in controllers() {
            for _ in 0..600 {
                let change = limit.update(&spoil(window(1, 20, TIMEOUT)), Surroundings::default());
                assert_eq!(change, Change { from: 20, to: 20, why: Why::Unproven });
            }
        }
    }
}

#[test]
fn a_service_slower_than_its_target_without_load_keeps_its_places() {
    // Fewer places do not make it faster: it must neither grow nor be cut to nothing.
    for mut limit in controllers() {
        for _ in 0..600 {
            let change =
                limit.update(&window(10, limit.limit(), Duration::from_secs(3)), Surroundings::default());
            assert_eq!((change.to, change.why), (20, Why::Objective), "{}", limit.algorithm());
        }
    }
}

#[test]
fn one_lucky_request_is_not_the_baseline() {
    // NCL#37: requests take 300 ms, a rare one 150 ms. Taken for the baseline, half of the places seem to
    // queue.
    let mut limit =
        Controller::new(Vegas, Bounds::new(5..=200).unwrap(), Objective::half_of(TIMEOUT).unwrap());
    let usual = Duration::from_millis(300);
    let bounds = limit.bounds();
    let sample = |took, in_flight| Sample { outcome: Outcome::Ok, took: Some(took), in_flight };
    let mut naive = VegasState { limit: 20, baseline: None };
    for round in 0..400 {
        let mut lucky = window(1, limit.limit(), usual);
        if round % 50 == 7 {
            lucky.latency = Some(Latency { min: usual / 2, median: usual, mean: usual });
            naive = Vegas::step(&bounds, naive, &sample(usual / 2, naive.limit));
        }
        naive = Vegas::step(&bounds, naive, &sample(usual, naive.limit));
        let _ = limit.update(&lucky, Surroundings::default());
    }
    assert_eq!(limit.baseline(), Some(usual));
    assert_eq!(limit.limit(), 200);
    assert!(naive.limit < 15, "the naive limit is {}", naive.limit);
}

#[test]
fn an_overload_of_any_length_is_not_taken_for_the_baseline() {
    // NCL#165. 20 workers of 10 ms, and always as many in flight as the limit allows: what is above 20 waits.
    for mut limit in controllers() {
        let service = |in_flight: u32| Duration::from_micros(500) * in_flight.max(20);
        let _ = limit.update(&window(1, 10, service(10)), Surroundings::default());
        let _ = limit.set_bounds(Bounds::exactly(200).unwrap());
        for _ in 0..3_600 {
            let _ = limit.update(&window(1, 200, service(200)), Surroundings::default());
        }
        let _ = limit.set_bounds(Bounds::new(5..=200).unwrap());
        for _ in 0..300 {
            let _ = limit.update(&window(1, limit.limit(), service(limit.limit())), Surroundings::default());
        }
        assert_eq!(limit.baseline(), Some(Duration::from_millis(10)), "{}", limit.algorithm());
        // AIMD hears of no trouble here but the objective, 2.5 s; growing it would have been futile.
        let most = if limit.algorithm() == "aimd" { 200 } else { 30 };
        assert!(limit.limit() <= most, "{} is at {}", limit.algorithm(), limit.limit());
    }
}

#[test]
fn a_lucky_window_is_half_forgotten_by_the_next_cut() {
    // All requests of one window were cached: the baseline is too low until a cut proves that nobody waits.
    let mut baseline = Baseline::default();
    let ms = Duration::from_millis;
    baseline.observe(20, ms(10));
    baseline.observe(20, ms(2));
    assert_eq!(baseline.latency(), Some(ms(6)));
    baseline.observe(20, ms(10));
    assert_eq!(baseline.latency(), Some(ms(6)));
    baseline.observe(16, ms(10));
    assert_eq!(baseline.latency(), Some(ms(10)));
}
