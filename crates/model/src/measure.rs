//! What a run showed: what all runners count ([`tidegate_scenario::Record`]), and what only a model can see.

use std::ops::Range;
use std::time::Duration;

use tidegate_core::{Criticality, Moment};
use tidegate_scenario::bins::Bins;
use tidegate_scenario::record::Look;
use tidegate_scenario::{Ending, Told};

/// Everything that was counted in a run. Classes are criticalities here, in the order of [`Criticality::ALL`].
#[derive(Clone, Debug)]
pub struct Record {
    common: tidegate_scenario::Record,
    bins: Bins<Bin>,
    /// Request-seconds spent inside the last service, and since when how many are there.
    spent_inside: f64,
    inside: (Moment, u32),
    fingerprint: u64,
    ended: u64,
}

#[derive(Clone, Debug, Default)]
struct Bin {
    /// The most that were inside the last service at once, seen at an arrival there.
    peak_inside: u32,
    /// How often breakers had tripped by then.
    trips: u64,
    dont_retry: u32,
}

impl Record {
    /// Nothing yet, of a service that can do this many requests a second.
    #[must_use]
    pub fn new(capacity: f64) -> Self {
        Self {
            common: tidegate_scenario::Record::new(capacity, Criticality::ALL.to_vec()),
            bins: Bins::default(),
            spent_inside: 0.0,
            inside: (Moment::ORIGIN, 0),
            // The offset basis of FNV-1a.
            fingerprint: 0xcbf2_9ce4_8422_2325,
            ended: 0,
        }
    }

    pub(crate) fn arrived(&mut self, at: Moment, level: Criticality) {
        self.common.arrived(since_start(at), level.index());
    }

    pub(crate) fn ended(&mut self, arrived: Moment, ended: Moment, level: Criticality, ending: Ending) {
        let told =
            Told { class: level.index(), arrived: since_start(arrived), ended: since_start(ended), ending };
        self.common.ended(told);
        self.ended += 1;
        for word in [arrived.nanos(), ended.nanos(), ending as u64] {
            // FNV-1a, a word at a time: any difference between two runs shows.
            self.fingerprint = (self.fingerprint ^ word).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn refusal(&mut self, at: Moment) {
        self.common.refusal(since_start(at));
    }

    pub(crate) fn dont_retry(&mut self, at: Moment) {
        self.bin(at).dont_retry += 1;
    }

    pub(crate) fn trips(&mut self, at: Moment, trips: u64) {
        self.bin(at).trips = trips;
    }

    pub(crate) fn bottom_attempt(&mut self, at: Moment) {
        self.common.attempts(since_start(at), 1);
    }

    pub(crate) fn limit(&mut self, at: Moment, limit: f64, is_elsewhere: bool) {
        self.common.look(
            since_start(at),
            Look { limit: Some(limit), is_elsewhere: Some(is_elsewhere), processor: None },
        );
    }

    /// So many are inside the last service from now on.
    pub(crate) fn inside(&mut self, now: Moment, count: u32) {
        let (since, before) = std::mem::replace(&mut self.inside, (now, count));
        self.spent_inside += now.since(since).as_secs_f64() * f64::from(before);
        let bin = self.bin(now);
        bin.peak_inside = bin.peak_inside.max(count);
    }

    fn bin(&mut self, at: Moment) -> &mut Bin {
        self.bins.at(since_start(at))
    }
}

/// Reading.
impl Record {
    /// What every runner counts.
    #[must_use]
    pub const fn common(&self) -> &tidegate_scenario::Record {
        &self.common
    }

    /// The share of the refusals of this stretch that said not to try again.
    #[must_use]
    pub fn dont_retry_share(&self, time: &Range<Duration>) -> f64 {
        let said: u32 = self.bins.within(time).iter().map(|bin| bin.dont_retry).sum();
        f64::from(said) / f64::from(self.common.refused(time)).max(1.0)
    }

    /// How often breakers tripped in this stretch.
    #[must_use]
    pub fn tripped(&self, time: &Range<Duration>) -> u64 {
        let by =
            |end| self.bins.within(&(Duration::ZERO..end)).iter().map(|bin| bin.trips).max().unwrap_or(0);
        by(time.end) - by(time.start)
    }

    /// The most attempts that were inside the last service at once in this stretch.
    #[must_use]
    pub fn peak_inside(&self, time: &Range<Duration>) -> u32 {
        self.bins.within(time).iter().map(|bin| bin.peak_inside).max().unwrap_or(0)
    }

    /// How many attempts were inside the last service on average, from the origin to the last change.
    #[must_use]
    pub fn mean_inside(&self) -> f64 {
        self.spent_inside / since_start(self.inside.0).as_secs_f64()
    }

    /// How many requests ended, and a number that any difference in when and how would change.
    #[must_use]
    pub const fn fingerprint(&self) -> (u64, u64) {
        (self.ended, self.fingerprint)
    }
}

fn since_start(at: Moment) -> Duration {
    at.since(Moment::ORIGIN)
}
