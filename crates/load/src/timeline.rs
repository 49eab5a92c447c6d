//! What happened when: one entry a second, in bounded memory.
//!
//! When a run is longer than there are entries, neighbours are merged and each entry counts for twice as long. So
//! the first ten minutes are told by the second, an hour by eight seconds, a day by three minutes.

use std::time::Duration;

use crate::latencies::Coarse;

/// Entries of a time line.
const ENTRIES: usize = 600;

/// Entries of equal length, from the start.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// How many seconds an entry is for.
    seconds: u64,
    entries: Vec<Entry>,
}

/// Requests by the moment they were due, answers by the moment they ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) sent: u64,
    pub(crate) unsent: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) other: u64,
    pub(crate) failed: u64,
    pub(crate) latency: Coarse,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { seconds: 1, entries: Vec::new() }
    }
}

impl Timeline {
    /// The entry for this moment.
    pub(crate) fn at(&mut self, moment: Duration) -> &mut Entry {
        let mut index = self.index(moment);
        while index >= ENTRIES {
            self.halve();
            index = self.index(moment);
        }
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, Entry::default);
        }
        &mut self.entries[index]
    }

    /// How long each entry is.
    pub(crate) fn width(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.seconds < other.seconds {
            self.halve();
        }
        while other.seconds < self.seconds {
            other.halve();
        }
        if self.entries.len() < other.entries.len() {
            self.entries.resize_with(other.entries.len(), Entry::default);
        }
        for (mine, more) in self.entries.iter_mut().zip(&other.entries) {
            mine.absorb(more);
        }
    }

    fn index(&self, moment: Duration) -> usize {
        usize::try_from(moment.as_secs() / self.seconds).unwrap_or(usize::MAX)
    }

    fn halve(&mut self) {
        self.seconds = self.seconds.saturating_mul(2);
        let pairs = self.entries.chunks(2);
        self.entries = pairs
            .map(|pair| {
                let mut merged = Entry::default();
                pair.iter().for_each(|entry| merged.absorb(entry));
                merged
            })
            .collect();
    }
}

impl Entry {
    fn absorb(&mut self, other: &Self) {
        self.sent += other.sent;
        self.unsent += other.unsent;
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.other += other.other;
        self.failed += other.failed;
        self.latency.absorb(&other.latency);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_told_in_fewer_words_and_loses_nothing() {
        let mut timeline = Timeline::default();
        for second in 0..3600 {
            timeline.at(Duration::from_secs(second)).sent += 1;
        }
        assert_eq!((timeline.width().as_secs(), timeline.entries().len()), (8, 450));
        assert!(timeline.entries().iter().all(|entry| entry.sent == 8));
        timeline.at(Duration::MAX).sent += 1;
        assert!(timeline.entries().len() <= ENTRIES);
        assert_eq!(timeline.entries().iter().map(|entry| entry.sent).sum::<u64>(), 3601);
    }

    #[test]
    fn lines_of_different_width_add_up() {
        let (mut short, mut long) = (Timeline::default(), Timeline::default());
        short.at(Duration::from_secs(1)).refused += 1;
        long.at(Duration::from_secs(1000)).refused += 1;
        long.at(Duration::from_secs(0)).latency.record(Duration::from_millis(100));
        short.absorb(&long);
        assert_eq!(short.width().as_secs(), 2);
        assert_eq!((short.entries()[0].refused, short.entries()[500].refused), (1, 1));
        let median = short.entries()[0].latency.quantile(0.5).unwrap();
        assert!(median.abs_diff(Duration::from_millis(100)) < Duration::from_millis(7), "{median:?}");
    }
}
