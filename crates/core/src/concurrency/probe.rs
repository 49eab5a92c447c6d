//! When to try more places although nothing asks for it.
//!
//! The [`Baseline`](super::Baseline) learns from movements of the limit. A limit that rests teaches it
//! nothing, and it may rest for the wrong reason: the service has become slower, Vegas takes the difference
//! for a queue, shrinks the limit until that queue looks short, and stays. So a limit that has not moved
//! for a while, although requests take longer than the baseline, is raised by a quarter for one window:
//!
//! | after the probe | so |
//! |---|---|
//! | a quarter more throughput, the latency as before | nobody waited: that latency is the baseline |
//! | the same throughput, a quarter more latency | there is a queue: back, and wait twice as long before the next probe |
//!
//! Others probe by letting next to nobody in for a while, and refuse the rest (envoy#8337). Trying *more*
//! refuses nobody, and costs a few requests a quarter of their latency when it was wrong.

/// Watches for a limit that rests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    anchor: f64,
    still: u32,
    patience: u32,
}

/// Windows without a movement before the first probe: at a window a second, long enough to be sure of it.
const PATIENCE: u32 = 20;
/// After futile probes the next one waits longer, up to this many windows: four minutes at a window a second.
const LONGEST: u32 = 240;
/// Movements smaller than this are the algorithm's breathing; a probe is twice as large.
const STILL: f64 = 0.125;
/// How much a probe tries: what the comparison of throughput needs to be clear.
const MORE: f64 = 1.25;

impl Default for Probe {
    fn default() -> Self {
        Self { anchor: 0.0, still: 0, patience: PATIENCE }
    }
}

impl Probe {
    /// The limit to try, if it is time to.
    pub(crate) fn due(&mut self, limit: f64) -> Option<f64> {
        if (limit - self.anchor).abs() > STILL * self.anchor {
            self.anchor = limit;
            self.still = 0;
            return None;
        }
        self.still = self.still.saturating_add(1);
        if self.still < self.patience {
            return None;
        }
        self.still = 0;
        self.patience = (self.patience * 2).min(LONGEST);
        Some((limit * MORE).ceil())
    }

    /// More places brought more answers: the next rest is watched as closely as the first.
    pub(crate) const fn paid(&mut self) {
        self.patience = PATIENCE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows until the next probe at a limit that does not move.
    fn windows_until_due(probe: &mut Probe) -> usize {
        (1..1_000).find(|_| probe.due(20.0).is_some()).unwrap()
    }

    #[test]
    fn a_limit_that_rests_is_probed_ever_less_often_until_a_probe_pays() {
        let mut probe = Probe::default();
        assert_eq!(probe.due(20.0), None);
        assert_eq!([(); 5].map(|()| windows_until_due(&mut probe)), [20, 40, 80, 160, 240]);
        probe.paid();
        assert_eq!(windows_until_due(&mut probe), 20);
    }

    #[test]
    fn a_limit_that_moves_is_not_probed() {
        let mut probe = Probe::default();
        for round in 0..1_000 {
            assert_eq!(probe.due(if round % 10 < 5 { 20.0 } else { 24.0 }), None);
        }
        assert_eq!(Probe { anchor: 20.0, still: 19, patience: 20 }.due(22.0), Some(28.0));
    }
}
