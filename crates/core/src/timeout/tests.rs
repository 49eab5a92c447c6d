use super::*;
use crate::units::Ratio;

fn at(millis: u64) -> Moment {
    Moment::ORIGIN.plus(Duration::from_millis(millis))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The rule of the example; an interval is 1 s, a span 10 s.
fn terms() -> TimeoutTerms {
    TimeoutTerms {
        false_ratio: Ratio::new(0.01).unwrap(),
        floor: ms(10),
        ceiling: ms(2_000),
        min_samples: 100,
        padding: 2,
        interval: ms(1_000),
        intervals: 10,
    }
}

struct Feed {
    timeout: AdaptiveTimeout,
    now: u64,
}

impl Feed {
    /// Starts late enough that every sample began after the time-out did.
    fn new() -> Self {
        let timeout = AdaptiveTimeout::new(TimeoutRule::new(terms()).unwrap(), at(0));
        Self { timeout, now: 10_000 }
    }

    /// Spreads these over a second, then looks what was learnt.
    fn second(&mut self, samples: &[(u64, Sample)]) -> Duration {
        for &(count, sample) in samples {
            (0..count).for_each(|_| self.timeout.record(at(self.now + 1), sample));
        }
        self.now += 1_000;
        self.timeout.turn(at(self.now + 1));
        self.timeout.timeout()
    }
}

const fn ok(millis: u64) -> Sample {
    Sample::Succeeded(Duration::from_millis(millis))
}

fn cut_off(feed: &Feed) -> Sample {
    Sample::TimedOut(feed.timeout.timeout())
}

fn micros(timeout: Duration) -> u128 {
    timeout.as_micros()
}

#[test]
fn the_time_out_is_as_in_the_example() {
    assert_eq!(Feed::new().second(&[(99, ok(20))]), ms(2_000));
    assert_eq!(micros(Feed::new().second(&[(985, ok(20)), (15, ok(100))])), 100_663);
    assert_eq!(micros(Feed::new().second(&[(1_000, ok(20))])), 40_894);
    assert_eq!(Feed::new().second(&[(1_000, ok(1))]), ms(10));
    let mut feed = Feed::new();
    let before = feed.second(&[(1_000, ok(20))]);
    let cut = cut_off(&feed);
    assert_eq!(feed.second(&[(150, cut)]), before * 2);
}

#[test]
fn a_quantile_leaves_the_accepted_share_beyond_it() {
    let mut feed = Feed::new();
    assert_eq!(micros(feed.second(&[(990, ok(50)), (10, ok(1_000))])), 100_663);
    let mut feed = Feed::new();
    assert!(feed.second(&[(989, ok(50)), (11, ok(1_000))]) >= ms(1_000));
}

#[test]
fn what_was_cut_off_does_not_pull_the_time_out_down() {
    let mut feed = Feed::new();
    feed.second(&[(980, ok(20)), (20, ok(400))]);
    let before = feed.timeout.timeout();
    // The slowest 2 % take longer now and are cut off. Without counting them, the quantile would be 20 ms.
    let cut = cut_off(&feed);
    for _ in 0..40 {
        assert!(feed.second(&[(980, ok(20)), (20, cut)]) >= before);
    }
}

#[test]
fn overload_teaches_nothing_while_frozen() {
    let mut feed = Feed::new();
    let calm = feed.second(&[(1_000, ok(20))]);
    // Half an interval of slow answers, until somebody notices.
    (0..500).for_each(|_| feed.timeout.record(at(feed.now + 500), ok(1_500)));
    feed.timeout.freeze();
    assert!(feed.timeout.is_frozen());
    for _ in 0..600 {
        let cut = cut_off(&feed);
        assert_eq!(feed.second(&[(500, ok(1_900)), (500, cut)]), calm);
    }
    feed.timeout.thaw(at(feed.now));
    // Answers to what began during the overload still come in.
    (0..500).for_each(|_| feed.timeout.record(at(feed.now + 900), ok(1_500)));
    assert_eq!(feed.second(&[(0, ok(0))]), calm);
    assert_eq!(feed.second(&[(1_000, ok(20))]), calm);
}

#[test]
fn a_dependency_that_became_slower_for_good_is_found_by_doubling() {
    let mut feed = Feed::new();
    let first = feed.second(&[(1_000, ok(20))]);
    let mut seen = vec![first];
    // From now on it takes 500 ms: everything is cut off until the time-out has doubled often enough.
    for _ in 0..100 {
        let sample = if feed.timeout.timeout() < ms(500) { cut_off(&feed) } else { ok(500) };
        let timeout = feed.second(&[(1_000, sample)]);
        if seen.last() != Some(&timeout) {
            seen.push(timeout);
        }
    }
    let doubled: Vec<_> = (0..5).map(|n| first * 2_u32.pow(n)).collect();
    assert_eq!(seen[..5], doubled);
    let last = *seen.last().unwrap();
    assert!(last >= ms(1_000) && last < ms(1_040), "twice the median: {seen:?}");
}

#[test]
fn doubling_takes_a_span_each_time() {
    let mut feed = Feed::new();
    let calm = feed.second(&[(1_000, ok(20))]);
    let after: Vec<_> = (0..30)
        .map(|_| {
            let cut = cut_off(&feed);
            feed.second(&[(1_000, cut)]).as_micros() / calm.as_micros()
        })
        .collect();
    assert!(after[8] <= 4 && after[18] <= 8 && after[28] <= 16, "{after:?}");
}

#[test]
fn even_overload_that_nobody_reports_ends_at_the_ceiling_and_fades() {
    let mut feed = Feed::new();
    let calm = feed.second(&[(1_000, ok(20))]);
    for _ in 0..600 {
        let cut = cut_off(&feed);
        assert!(feed.second(&[(1_000, cut)]) <= ms(2_000));
    }
    for _ in 0..25 {
        feed.second(&[(1_000, ok(20))]);
    }
    assert_eq!(feed.timeout.timeout(), calm);
}

#[test]
fn old_times_fade_within_two_spans() {
    let mut feed = Feed::new();
    let slow = feed.second(&[(1_000, ok(400))]);
    for _ in 0..22 {
        feed.second(&[(100, ok(20))]);
    }
    assert!(feed.timeout.timeout() < slow / 10);
}

#[test]
fn a_clock_set_back_stops_nothing() {
    let mut feed = Feed::new();
    feed.now = 3_600_000;
    feed.second(&[(1_000, ok(20))]);
    feed.now = 10_000;
    feed.second(&[(1_000, ok(100))]);
    let timeout = feed.second(&[(1_000, ok(100))]);
    assert!(timeout >= ms(100), "{timeout:?}");
}

#[test]
fn terms_without_sense_are_refused() {
    let field = |terms| TimeoutRule::new(terms).unwrap_err().field;
    assert_eq!(field(TimeoutTerms { false_ratio: Ratio::ZERO, ..terms() }), "false_ratio");
    assert_eq!(field(TimeoutTerms { min_samples: 99, ..terms() }), "min_samples");
    assert_eq!(field(TimeoutTerms { ceiling: ms(9), ..terms() }), "ceiling");
    assert_eq!(field(TimeoutTerms { padding: 0, ..terms() }), "padding");
    assert_eq!(TimeoutRule::default().terms(), &TimeoutTerms::default());
}
