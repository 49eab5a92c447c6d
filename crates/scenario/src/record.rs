//! What a run showed: the measures by which a scenario passes or fails.
//!
//! | measure | meaning here |
//! |---|---|
//! | G [`goodput`](Record::goodput) | answers that were right and in time, divided by what the service can do |
//! | S [`success`](Record::success) | share of the requests of some classes that were answered right and in time |
//! | P [`p99`](Record::p99) | latency of the accepted; divide by that of an unloaded run |
//! | R [`recovery`](Record::recovery) | from the end of a disturbance until G ≥ .95·min(1, offered) for ten seconds |
//! | A [`amplification`](Record::amplification) | attempts at the last service ÷ requests of callers |
//! | F [`refused`](Record::refused) | refusals; while the load is .7 or less each of them is false |
//! | order [`inversion`](Record::inversion) | share of a level that is served while a higher one is refused |
//! | sign changes [`turns`](Record::turns) | how often the shed rate turned from rising to falling or back |
//!
//! A request counts for the tenth of a second in which it *arrived*, whenever it ended: so the success of
//! a second never depends on what an earlier second left behind in a queue. Goodput alone counts answers
//! when they are given, since it is a rate of work done.

use std::ops::Range;
use std::time::Duration;

use tidegate_core::Criticality;

use crate::bins::{BIN, Bins, bins_in};
use crate::{Effort, MAX_CLASSES};

/// How a caller's request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Right and in time.
    Good,
    /// Right, but after the deadline.
    Late,
    /// No answer in time, or a wrong one.
    Failed,
    /// Somebody on the way said no.
    Refused,
}

/// One caller's request from beginning to end. Moments count from the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Its class.
    pub class: usize,
    /// When it arrived.
    pub arrived: Duration,
    /// When it ended.
    pub ended: Duration,
    /// How it ended.
    pub ending: Ending,
}

/// A level counts as refused when this share of its requests is: less is chance at the edge.
const IS_REFUSED: f64 = 0.01;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    arrived: u32,
    good: u32,
    refused: u32,
}

#[derive(Clone, Debug, Default)]
struct Bin {
    /// By class, of the requests that arrived then.
    classes: [Counts; MAX_CLASSES],
    good_now: u32,
    refusals: u32,
    /// Attempts that reached the last service.
    attempts: u32,
}

/// What was seen of the gate once a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// How many it lets in at a time, if it has such a limit.
    pub limit: Option<f64>,
    /// Whether it puts the latency down to what the service calls, if it tells.
    pub is_elsewhere: Option<bool>,
    /// Processor time it has used since it began, where that can be told.
    pub processor: Option<Duration>,
}

/// Everything that was counted in a run.
#[derive(Clone, Debug)]
pub struct Record {
    capacity: f64,
    levels: Vec<Criticality>,
    bins: Bins<Bin>,
    /// Everything that was not refused.
    accepted: Vec<Told>,
    looks: Vec<(Duration, Look)>,
}

/// Writing.
impl Record {
    /// Nothing yet, of a service that can do this many requests a second, for classes of these levels; there are
    /// at most [`MAX_CLASSES`], and what is told of others is left out.
    #[must_use]
    pub fn new(capacity: f64, levels: Vec<Criticality>) -> Self {
        Self { capacity, levels, bins: Bins::default(), accepted: Vec::new(), looks: Vec::new() }
    }

    /// A request arrived.
    pub fn arrived(&mut self, at: Duration, class: usize) {
        if let Some(counts) = self.bins.at(at).classes.get_mut(class) {
            counts.arrived += 1;
        }
    }

    /// A request that arrived has ended.
    pub fn ended(&mut self, told: Told) {
        match told.ending {
            Ending::Good => {
                if let Some(counts) = self.bins.at(told.arrived).classes.get_mut(told.class) {
                    counts.good += 1;
                }
                self.bins.at(told.ended).good_now += 1;
                self.accepted.push(told);
            }
            Ending::Late | Ending::Failed => self.accepted.push(told),
            Ending::Refused => {
                if let Some(counts) = self.bins.at(told.arrived).classes.get_mut(told.class) {
                    counts.refused += 1;
                }
            }
        }
    }

    /// An attempt was refused.
    pub fn refusal(&mut self, at: Duration) {
        self.bins.at(at).refusals += 1;
    }

    /// So many attempts reached the last service.
    pub fn attempts(&mut self, at: Duration, count: u32) {
        self.bins.at(at).attempts += count;
    }

    /// What the gate looked like, at the end of a second.
    pub fn look(&mut self, at: Duration, look: Look) {
        self.looks.push((at, look));
    }
}

/// Reading.
impl Record {
    /// What the service can do in this stretch.
    fn could(&self, time: &Range<Duration>) -> f64 {
        self.capacity * length(time).as_secs_f64()
    }

    /// G: right answers in time, given in this stretch, as a share of what the service can do.
    #[must_use]
    pub fn goodput(&self, time: &Range<Duration>) -> f64 {
        let good: u32 = self.bins.within(time).iter().map(|bin| bin.good_now).sum();
        f64::from(good) / self.could(time)
    }

    /// Requests of callers that arrived in this stretch, as a share of what the service can do.
    #[must_use]
    pub fn offered(&self, time: &Range<Duration>) -> f64 {
        f64::from(total(self.bins.within(time))) / self.could(time)
    }

    /// How many requests of these classes arrived in this stretch, and how many of those were answered right and in
    /// time.
    #[must_use]
    pub fn served(&self, classes: &[usize], time: &Range<Duration>) -> (u32, u32) {
        let counts =
            self.bins.within(time).iter().flat_map(|bin| classes.iter().map(|class| bin.classes[*class]));
        counts.fold((0, 0), |(arrived, good), counts| (arrived + counts.arrived, good + counts.good))
    }

    /// S: of the requests of these classes that arrived in this stretch, the share answered right and in time.
    #[must_use]
    pub fn success(&self, classes: &[usize], time: &Range<Duration>) -> f64 {
        let (arrived, good) = self.served(classes, time);
        f64::from(good) / f64::from(arrived).max(1.0)
    }

    /// The latency that 99 of 100 accepted requests of this stretch did not exceed. Those whose callers
    /// gave up count with the time they waited.
    #[must_use]
    pub fn p99(&self, classes: &[usize], time: &[Range<Duration>]) -> Duration {
        let is_meant = |told: &&Told| {
            classes.contains(&told.class) && time.iter().any(|time| time.contains(&told.arrived))
        };
        let meant = self.accepted.iter().filter(is_meant);
        let mut latencies: Vec<Duration> =
            meant.map(|told| told.ended.saturating_sub(told.arrived)).collect();
        let Some(last) = latencies.len().checked_sub(1) else { return Duration::ZERO };
        let rank = (latencies.len() * 99).div_ceil(100).saturating_sub(1).min(last);
        *latencies.select_nth_unstable(rank).1
    }

    /// How long accepted requests took on average.
    #[must_use]
    pub fn mean_latency(&self) -> Duration {
        let count = u32::try_from(self.accepted.len()).unwrap_or(u32::MAX).max(1);
        self.accepted.iter().map(|told| told.ended.saturating_sub(told.arrived)).sum::<Duration>() / count
    }

    /// R: how long after `end` the goodput is back for ten seconds, or `None` if it never was.
    ///
    /// Back means that of every second in those ten, 95 % of the requests that arrived, or 95 % of what
    /// the service can do if that is less, were answered right and in time.
    #[must_use]
    pub fn recovery(&self, end: Duration) -> Option<Duration> {
        const SECOND: usize = 10;
        const KEPT: usize = 100;
        let (bins, first) = (self.bins.all(), bins_in(end));
        let is_back = |second: &[Bin]| {
            let arrived = f64::from(total(second));
            let good: u32 = second.iter().flat_map(|bin| bin.classes).map(|counts| counts.good).sum();
            f64::from(good) >= 0.95 * arrived.min(self.capacity)
        };
        let last = bins.len().checked_sub(KEPT)?;
        let kept = |start: &usize| bins[*start..start + KEPT].windows(SECOND).all(is_back);
        let start = (first..=last).find(kept)?;
        Some(BIN * u32::try_from(start - first).ok()?)
    }

    /// A: attempts that reached the last service, for each request of a caller in this stretch.
    #[must_use]
    pub fn amplification(&self, time: &Range<Duration>) -> f64 {
        f64::from(self.attempts_in(time)) / f64::from(total(self.bins.within(time))).max(1.0)
    }

    /// Attempts that reached the last service in this stretch, as a share of what it can do.
    #[must_use]
    pub fn let_in(&self, time: &Range<Duration>) -> f64 {
        f64::from(self.attempts_in(time)) / self.could(time)
    }

    fn attempts_in(&self, time: &Range<Duration>) -> u32 {
        self.bins.within(time).iter().map(|bin| bin.attempts).sum()
    }

    /// How many attempts were refused in this stretch, by a gate or on the caller's side.
    #[must_use]
    pub fn refused(&self, time: &Range<Duration>) -> u32 {
        self.bins.within(time).iter().map(|bin| bin.refusals).sum()
    }

    /// How many requests of these classes that arrived in this stretch ended with a refusal.
    #[must_use]
    pub fn refused_of(&self, classes: &[usize], time: &Range<Duration>) -> u32 {
        let bins = self.bins.within(time).iter();
        bins.flat_map(|bin| classes.iter().map(|class| bin.classes[*class].refused)).sum()
    }

    /// The largest share of a level that is served although a higher level is refused.
    ///
    /// Not quite zero even where the order is strict: a place that nobody of the higher level wants at that moment goes to
    /// the lower one.
    #[must_use]
    pub fn inversion(&self, time: &Range<Duration>) -> f64 {
        let of = |level: Criticality| -> Vec<usize> {
            (0..).zip(&self.levels).filter(|(_, other)| **other == level).map(|(class, _)| class).collect()
        };
        let is_refused = |level: Criticality| {
            let (arrived, _) = self.served(&of(level), time);
            f64::from(self.refused_of(&of(level), time)) > IS_REFUSED * f64::from(arrived)
        };
        let refused = Criticality::ALL.into_iter().filter(|level| is_refused(*level));
        let Some(highest) = refused.max() else { return 0.0 };
        let lower = Criticality::ALL.into_iter().filter(|level| *level < highest);
        lower.map(|level| self.success(&of(level), time)).fold(0.0, f64::max)
    }

    /// How often a minute the shed rate turned from rising to falling or back.
    ///
    /// The rate is taken over stretches of `smooth`: in shorter ones the chance in the arrivals alone makes it go up and
    /// down. A step counts only if it is larger than chance: four standard deviations of the number refused, and at
    /// least 2 % of the capacity.
    #[must_use]
    pub fn turns(&self, time: &Range<Duration>, smooth: Duration) -> f64 {
        let bins = bins_in(smooth).max(1);
        let rates: Vec<f64> = (self.bins.within(time).chunks_exact(bins))
            .map(|bins| f64::from(bins.iter().map(|bin| bin.refusals).sum::<u32>()))
            .collect();
        let floor = 0.02 * self.capacity * BIN.as_secs_f64() * bins as f64;
        let Some(mut extreme) = rates.first().copied() else { return 0.0 };
        let (mut is_rising, mut turns) = (None, 0_u32);
        for rate in rates {
            let noise = floor.max(4.0 * rate.max(extreme).sqrt());
            let step = rate - extreme;
            match is_rising {
                // Still going the same way: the extreme moves along.
                Some(true) if step >= 0.0 => extreme = rate,
                Some(false) if step <= 0.0 => extreme = rate,
                Some(_) | None if step.abs() > noise => {
                    turns += u32::from(is_rising.is_some());
                    is_rising = Some(step > 0.0);
                    extreme = rate;
                }
                Some(_) | None => {}
            }
        }
        f64::from(turns) * 60.0 / length(time).as_secs_f64()
    }

    /// What the gate looked like in this stretch, second by second.
    pub fn looks(&self, time: &Range<Duration>) -> impl Iterator<Item = &Look> {
        let time = time.clone();
        // Noted at its end, a second belongs to what was before.
        let is_meant = move |at: Duration| time.start < at && at <= time.end;
        self.looks.iter().filter(move |(at, _)| is_meant(*at)).map(|(_, look)| look)
    }

    /// The limits that the gate had in this stretch.
    pub fn limits(&self, time: &Range<Duration>) -> impl Iterator<Item = f64> {
        self.looks(time).filter_map(|look| look.limit)
    }

    /// What the gate used in this stretch and for what, where its processor time was told at least twice.
    #[must_use]
    pub fn effort(&self, time: &Range<Duration>) -> Option<Effort> {
        // A clock that runs on: what it showed at the very beginning is what to count from.
        let is_meant = |at: &Duration| time.start <= *at && *at <= time.end;
        let looks = self.looks.iter().filter(|(at, _)| is_meant(at));
        let mut told = looks.filter_map(|(_, look)| look.processor);
        let first = told.next()?;
        let used = told.next_back()?.saturating_sub(first);
        let classes: Vec<usize> = (0..self.levels.len().min(MAX_CLASSES)).collect();
        let (_, forwarded) = self.served(&classes, time);
        Some(Effort { used, forwarded: forwarded.into(), refused: self.refused(time).into() })
    }
}

fn total(bins: &[Bin]) -> u32 {
    bins.iter().flat_map(|bin| bin.classes).map(|counts| counts.arrived).sum()
}

fn length(time: &Range<Duration>) -> Duration {
    time.end.saturating_sub(time.start)
}

#[cfg(test)]
mod tests;
