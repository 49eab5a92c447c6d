//! What the operator chose for a breaker, checked.

use std::time::Duration;

use crate::units::share::{WHOLE, between, millionths, share_of};
use crate::units::{Invalid, LONGEST, Ratio, Roll};

/// Which results count towards a trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The last so many, however old they are.
    Last(u32),
    /// Those of the last so long, in ten buckets.
    Over(Duration),
}

/// How long it takes until a result counts as slow, and which share of slow results trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// Longer than this is slow.
    pub above: Duration,
    /// This share of slow results trips the breaker, inclusive.
    pub ratio: Ratio,
}

/// How long a breaker stays open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenTime {
    /// The first time.
    pub first: Duration,
    /// Each further time, without having closed in between, this many times as long.
    pub growth: u32,
    /// But never longer than this.
    pub longest: Duration,
    /// Each wait is moved by up to this share, up or down, so that instances do not probe together.
    pub jitter: Ratio,
}

/// How a half-open breaker finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// How many probes are sent, and judged together.
    pub probes: u32,
    /// A probe without a result after this long has failed. Its place is free when it comes back, or after ten times as
    /// long: whatever an attempt's time-out up to that, there are never more than `probes` of them on their way.
    pub limit: Duration,
}

/// How traffic comes back after the probes went well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// The share that is admitted at first.
    pub first: Ratio,
    /// The share doubles after each interval that went well.
    pub interval: Duration,
    /// Failures are judged from this many results on.
    pub min_requests: u32,
}

/// Everything that can be chosen for a breaker. Each default has its reason beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerTerms {
    /// Which results count.
    pub window: Window,
    /// No trip before this many results are in the window.
    pub min_requests: u32,
    /// This share of failures trips the breaker, inclusive.
    pub failure_ratio: Ratio,
    /// Whether slowness trips it too.
    pub slow: Option<Slow>,
    /// How long it then stays open.
    pub open: OpenTime,
    /// How it finds out whether all is well again.
    pub probing: Probing,
    /// How traffic comes back; `None` for all at once.
    pub recovery: Option<Recovery>,
}

impl Default for BreakerTerms {
    fn default() -> Self {
        Self {
            // Long enough to see enough, short enough that an outage shows within seconds.
            window: Window::Over(Duration::from_secs(10)),
            // A dependency that fails one request in five shows a half of 20 failing once an hour, by chance
            // alone; a half of 50, once in years.
            min_requests: 50,
            // At a tenth, as one library ships it, a dependency that answers 85 % is made to answer nothing.
            failure_ratio: Ratio::new(0.5).unwrap_or(Ratio::ONE),
            // What is slow depends on who waits, so there is no number to ship.
            slow: None,
            open: OpenTime {
                first: Duration::from_secs(5),
                growth: 2,
                // A dependency that came back waits at most a minute to be noticed.
                longest: Duration::from_secs(60),
                jitter: Ratio::new(0.1).unwrap_or(Ratio::ZERO),
            },
            // One probe is a coin toss; four can outvote one bad result.
            probing: Probing { probes: 4, limit: Duration::from_secs(10) },
            recovery: Some(Recovery {
                // 10, 20, 40, 80, 100 %: full traffic after four good seconds.
                first: Ratio::new(0.1).unwrap_or(Ratio::ONE),
                interval: Duration::from_secs(1),
                min_requests: 10,
            }),
        }
    }
}

/// A breaker's terms, checked: values that contradict each other cannot be in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerRule {
    terms: BreakerTerms,
    failure: u64,
    slow: u64,
    jitter: u64,
}

/// Memory for the last results is taken once, a byte each.
const MOST_RESULTS: u32 = 10_000;
const MOST_PROBES: u32 = 1_000;

impl BreakerRule {
    /// The rule with these terms.
    ///
    /// # Errors
    /// When a term is out of its range, or such that the breaker could never trip.
    pub fn new(terms: BreakerTerms) -> Result<Self, Invalid> {
        check_window(&terms)?;
        share("failure_ratio", terms.failure_ratio)?;
        if let Some(slow) = terms.slow {
            length("slow.above", slow.above)?;
            share("slow.ratio", slow.ratio)?;
        }
        check_open(&terms.open)?;
        count("probing.probes", terms.probing.probes, MOST_PROBES, "from 1 to 1000")?;
        length("probing.limit", terms.probing.limit)?;
        if let Some(recovery) = terms.recovery {
            share("recovery.first", recovery.first)?;
            length("recovery.interval", recovery.interval)?;
            count("recovery.min_requests", recovery.min_requests, u32::MAX, "at least 1")?;
        }
        let failure = millionths(terms.failure_ratio);
        let slow = terms.slow.map_or(WHOLE, |slow| millionths(slow.ratio));
        Ok(Self { terms, failure, slow, jitter: millionths(terms.open.jitter) })
    }

    /// What it was made of.
    #[must_use]
    pub const fn terms(&self) -> &BreakerTerms {
        &self.terms
    }

    /// The failure ratio in millionths.
    pub(super) const fn failure(&self) -> u64 {
        self.failure
    }

    /// The slow ratio in millionths.
    pub(super) const fn slow(&self) -> u64 {
        self.slow
    }

    pub(super) fn is_slow(&self, took: Duration) -> bool {
        self.terms.slow.is_some_and(|slow| took > slow.above)
    }

    /// How long to stay open the `trips`-th time in a row.
    pub(super) fn wait(&self, trips: u32, roll: Roll) -> Duration {
        let OpenTime { first, growth, longest, .. } = self.terms.open;
        let times = growth.checked_pow(trips.saturating_sub(1)).unwrap_or(u32::MAX);
        let wait = first.saturating_mul(times).min(longest);
        let swing = share_of(wait, self.jitter);
        between(wait.saturating_sub(swing), wait.saturating_add(swing), roll)
    }
}

impl Default for BreakerRule {
    fn default() -> Self {
        Self::new(BreakerTerms::default()).expect("the defaults are in their ranges; a test makes them")
    }
}

fn check_window(terms: &BreakerTerms) -> Result<(), Invalid> {
    count("min_requests", terms.min_requests, u32::MAX, "at least 1")?;
    match terms.window {
        Window::Over(window) => length("window", window),
        Window::Last(results) => {
            count("window", results, MOST_RESULTS, "from 1 to 10000 results")?;
            if terms.min_requests > results {
                return Err(Invalid::new("min_requests", terms.min_requests, "at most the window's results"));
            }
            Ok(())
        }
    }
}

fn check_open(open: &OpenTime) -> Result<(), Invalid> {
    length("open.first", open.first)?;
    count("open.growth", open.growth, 100, "from 1 to 100")?;
    length("open.longest", open.longest)?;
    if open.longest < open.first {
        return Err(Invalid::new("open.longest", format!("{:?}", open.longest), "at least open.first"));
    }
    if open.jitter > Ratio::new(0.5)? {
        return Err(Invalid::new("open.jitter", open.jitter.value(), "from 0 to 0.5"));
    }
    Ok(())
}

fn count(field: &'static str, value: u32, most: u32, allowed: &'static str) -> Result<(), Invalid> {
    if value == 0 || value > most { Err(Invalid::new(field, value, allowed)) } else { Ok(()) }
}

fn share(field: &'static str, ratio: Ratio) -> Result<(), Invalid> {
    let is_none = millionths(ratio) == 0;
    if is_none {
        Err(Invalid::new(field, ratio.value(), "at least a millionth and at most 1"))
    } else {
        Ok(())
    }
}

fn length(field: &'static str, length: Duration) -> Result<(), Invalid> {
    if length < Duration::from_micros(1) || length > LONGEST {
        return Err(Invalid::new(field, format!("{length:?}"), "from 1 microsecond to 400 days"));
    }
    Ok(())
}
