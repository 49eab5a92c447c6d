//! What a run showed: the measures by which a scenario passes or fails.
//!
//! | measure | meaning here |
//! |---|---|
//! | G [`goodput`](Record::goodput) | answers that were right and in time, divided by what the service can do |
//! | P [`slowest_percent`](Record::slowest_percent) | p99 of the accepted; divide by that of an unloaded run |
//! | R [`recovery`](Record::recovery) | from the end of a disturbance until G ≥ .95·min(1, offered) for ten seconds |
//! | A [`amplification`](Record::amplification) | attempts at the last service ÷ requests of users |
//! | S [`success`](Record::success) | share of the requests of one criticality that were answered right and in time |
//! | F [`refused`](Record::refused) | refusals; while the load is .7 or less each of them is false |
//! | sign changes [`turns`](Record::turns) | how often the shed rate turned from rising to falling or back |
//!
//! A request counts for the tenth of a second in which it *arrived*, whenever it ended: so the success of
//! a second never depends on what an earlier second left behind in a queue. Goodput alone counts answers
//! when they are given, since it is a rate of work done.

use std::ops::Range;
use std::time::Duration;

use tidegate_core::{Criticality, Moment};

/// How a user's request ended.
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

/// One user's request from beginning to end.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// When it arrived.
    pub arrived: Moment,
    /// When it ended.
    pub ended: Moment,
    /// How urgent it was.
    pub criticality: Criticality,
    /// How it ended.
    pub ending: Ending,
}

/// The length of a bin. Ten make the second over which recovery is judged.
const BIN: Duration = Duration::from_millis(100);

/// How many bins are smoothed into one shed rate before looking for turns: five seconds. In shorter
/// stretches the chance in the arrivals alone makes the rate go up and down.
const RATE_BINS: usize = 50;

#[derive(Clone, Debug, Default)]
struct Bin {
    arrived: [u32; 4],
    good_of_arrived: [u32; 4],
    good_now: u32,
    refusals: u32,
    bottom_attempts: u32,
    /// The most that were inside the last service at once, seen at an arrival there.
    peak_inside: u32,
    /// How often breakers had tripped by then.
    trips: u64,
    dont_retry: u32,
}

/// Everything that was counted in a run.
#[derive(Clone, Debug)]
pub struct Record {
    capacity: f64,
    bins: Vec<Bin>,
    /// Arrival and latency of everything that was not refused.
    accepted: Vec<(Moment, Duration)>,
    /// The limits of the first service's gates, added up, once a second.
    limits: Vec<f64>,
    /// In which of those seconds the gates put the latency down to what the service calls.
    elsewhere: Vec<bool>,
    /// Request-seconds spent inside the last service, and since when how many are there.
    spent_inside: f64,
    inside: (Moment, u32),
    fingerprint: u64,
    ended: u64,
}

impl Record {
    /// Nothing yet, of a service that can do this many requests a second.
    #[must_use]
    pub const fn new(capacity: f64) -> Self {
        Self {
            capacity,
            bins: Vec::new(),
            accepted: Vec::new(),
            limits: Vec::new(),
            elsewhere: Vec::new(),
            spent_inside: 0.0,
            inside: (Moment::ORIGIN, 0),
            // The offset basis of FNV-1a.
            fingerprint: 0xcbf2_9ce4_8422_2325,
            ended: 0,
        }
    }

    pub(crate) fn arrived(&mut self, at: Moment, level: Criticality) {
        self.bin(at).arrived[level.index()] += 1;
    }

    pub(crate) fn ended(&mut self, told: Told) {
        let took = told.ended.since(told.arrived);
        match told.ending {
            Ending::Good => {
                self.bin(told.arrived).good_of_arrived[told.criticality.index()] += 1;
                self.bin(told.ended).good_now += 1;
                self.accepted.push((told.arrived, took));
            }
            Ending::Late | Ending::Failed => self.accepted.push((told.arrived, took)),
            Ending::Refused => {}
        }
        self.ended += 1;
        for word in [told.arrived.nanos(), told.ended.nanos(), told.ending as u64] {
            // FNV-1a, a word at a time: any difference between two runs shows.
            self.fingerprint = (self.fingerprint ^ word).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn refusal(&mut self, at: Moment) {
        self.bin(at).refusals += 1;
    }

    pub(crate) fn dont_retry(&mut self, at: Moment) {
        self.bin(at).dont_retry += 1;
    }

    pub(crate) fn trips(&mut self, at: Moment, trips: u64) {
        self.bin(at).trips = trips;
    }

    pub(crate) fn bottom_attempt(&mut self, at: Moment) {
        self.bin(at).bottom_attempts += 1;
    }

    pub(crate) fn limit(&mut self, limit: f64, is_elsewhere: bool) {
        self.limits.push(limit);
        self.elsewhere.push(is_elsewhere);
    }

    /// So many are inside the last service from now on.
    pub(crate) fn inside(&mut self, now: Moment, count: u32) {
        let (since, before) = std::mem::replace(&mut self.inside, (now, count));
        self.spent_inside += now.since(since).as_secs_f64() * f64::from(before);
        let bin = self.bin(now);
        bin.peak_inside = bin.peak_inside.max(count);
    }

    fn bin(&mut self, at: Moment) -> &mut Bin {
        let index = index(at);
        if index >= self.bins.len() {
            self.bins.resize_with(index + 1, Bin::default);
        }
        &mut self.bins[index]
    }

    fn within(&self, time: &Range<Moment>) -> &[Bin] {
        let end = index(time.end).min(self.bins.len());
        &self.bins[index(time.start).min(end)..end]
    }
}

/// Reading.
impl Record {
    /// G: right answers in time, given in this stretch, as a share of what the service can do.
    #[must_use]
    pub fn goodput(&self, time: &Range<Moment>) -> f64 {
        let good: u32 = self.within(time).iter().map(|bin| bin.good_now).sum();
        f64::from(good) / (self.capacity * time.end.since(time.start).as_secs_f64())
    }

    /// Requests of users that arrived in this stretch, as a share of what the service can do.
    #[must_use]
    pub fn offered(&self, time: &Range<Moment>) -> f64 {
        f64::from(total(self.within(time))) / (self.capacity * time.end.since(time.start).as_secs_f64())
    }

    /// S: of the requests of these levels that arrived in this stretch, the share answered right and in time.
    #[must_use]
    pub fn success(&self, levels: &[Criticality], time: &Range<Moment>) -> f64 {
        let sum = |count: fn(&Bin) -> &[u32; 4]| -> u32 {
            let bins = self.within(time).iter();
            bins.map(|bin| levels.iter().map(|level| count(bin)[level.index()]).sum::<u32>()).sum()
        };
        f64::from(sum(|bin| &bin.good_of_arrived)) / f64::from(sum(|bin| &bin.arrived)).max(1.0)
    }

    /// The latency that 99 of 100 accepted requests of this stretch did not exceed. Those whose callers
    /// gave up count with the time they waited.
    #[must_use]
    pub fn slowest_percent(&self, time: &Range<Moment>) -> Duration {
        let arrived = self.accepted.iter().filter(|(arrived, _)| time.contains(arrived));
        let mut latencies: Vec<Duration> = arrived.map(|(_, took)| *took).collect();
        let Some(last) = latencies.len().checked_sub(1) else { return Duration::ZERO };
        let rank = (latencies.len() * 99).div_ceil(100).saturating_sub(1).min(last);
        *latencies.select_nth_unstable(rank).1
    }

    /// R: how long after `end` the goodput is back for ten seconds, or `None` if it never was.
    ///
    /// Back means that of every second in those ten, 95 % of the requests that arrived, or 95 % of what
    /// the service can do if that is less, were answered right and in time.
    #[must_use]
    pub fn recovery(&self, end: Moment) -> Option<Duration> {
        const SECOND: usize = 10;
        const KEPT: usize = 100;
        let first = index(end);
        let is_back = |second: &[Bin]| {
            let arrived = f64::from(total(second));
            let good: u32 = second.iter().flat_map(|bin| bin.good_of_arrived).sum();
            f64::from(good) >= 0.95 * arrived.min(self.capacity)
        };
        let last = self.bins.len().checked_sub(KEPT)?;
        let kept = |start: &usize| self.bins[*start..start + KEPT].windows(SECOND).all(is_back);
        let start = (first..=last).find(kept)?;
        Some(BIN * u32::try_from(start - first).ok()?)
    }

    /// A: attempts that reached the last service, for each request of a user in this stretch.
    #[must_use]
    pub fn amplification(&self, time: &Range<Moment>) -> f64 {
        let bins = self.within(time);
        let attempts: u32 = bins.iter().map(|bin| bin.bottom_attempts).sum();
        f64::from(attempts) / f64::from(total(bins)).max(1.0)
    }

    /// How many attempts were refused in this stretch, by a gate or on the caller's side.
    #[must_use]
    pub fn refused(&self, time: &Range<Moment>) -> u32 {
        self.within(time).iter().map(|bin| bin.refusals).sum()
    }

    /// How often a minute the shed rate turned from rising to falling or back.
    ///
    /// The rate is taken over five seconds. A step counts only if it is larger than chance: four standard
    /// deviations of the number refused, and at least 2 % of the capacity.
    #[must_use]
    pub fn turns(&self, time: &Range<Moment>) -> f64 {
        let rates: Vec<f64> = (self.within(time).chunks_exact(RATE_BINS))
            .map(|bins| f64::from(bins.iter().map(|bin| bin.refusals).sum::<u32>()))
            .collect();
        let floor = 0.02 * self.capacity * BIN.as_secs_f64() * RATE_BINS as f64;
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
        f64::from(turns) * 60.0 / time.end.since(time.start).as_secs_f64()
    }

    /// The limits of the first service's gates, added up, at the end of each second.
    #[must_use]
    pub fn limits(&self) -> &[f64] {
        &self.limits
    }

    /// In which share of these seconds the first service's gates put the latency down to what it calls.
    #[must_use]
    pub fn blamed_elsewhere(&self, seconds: Range<usize>) -> f64 {
        let seconds = self.elsewhere.get(seconds).unwrap_or_default();
        let blamed = seconds.iter().filter(|is_elsewhere| **is_elsewhere).count();
        blamed as f64 / seconds.len().max(1) as f64
    }

    /// The share of the refusals of this stretch that said not to try again.
    #[must_use]
    pub fn dont_retry_share(&self, time: &Range<Moment>) -> f64 {
        let said: u32 = self.within(time).iter().map(|bin| bin.dont_retry).sum();
        f64::from(said) / f64::from(self.refused(time)).max(1.0)
    }

    /// How often breakers tripped in this stretch.
    #[must_use]
    pub fn tripped(&self, time: &Range<Moment>) -> u64 {
        let by = |end: usize| self.bins.iter().take(end).map(|bin| bin.trips).max().unwrap_or(0);
        by(index(time.end)) - by(index(time.start))
    }

    /// The most attempts that were inside the last service at once in this stretch.
    #[must_use]
    pub fn peak_inside(&self, time: &Range<Moment>) -> u32 {
        self.within(time).iter().map(|bin| bin.peak_inside).max().unwrap_or(0)
    }

    /// How many attempts were inside the last service on average, from the origin to the last change.
    #[must_use]
    pub fn mean_inside(&self) -> f64 {
        self.spent_inside / self.inside.0.since(Moment::ORIGIN).as_secs_f64()
    }

    /// How long accepted requests took on average.
    #[must_use]
    pub fn mean_latency(&self) -> Duration {
        let count = u32::try_from(self.accepted.len()).unwrap_or(u32::MAX).max(1);
        self.accepted.iter().map(|(_, took)| *took).sum::<Duration>() / count
    }

    /// How many requests ended, and a number that any difference in when and how would change.
    #[must_use]
    pub const fn fingerprint(&self) -> (u64, u64) {
        (self.ended, self.fingerprint)
    }
}

fn total(bins: &[Bin]) -> u32 {
    bins.iter().flat_map(|bin| bin.arrived).sum()
}

fn index(at: Moment) -> usize {
    usize::try_from(at.nanos() / 100_000_000).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
