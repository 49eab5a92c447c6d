//! What the machine's cores did, as the kernel counts it.
//!
//! A figure that was taken while somebody else had the cores says nothing about what was measured. Two shares tell: how
//! much of the time cores worked, of which others have what is not ours; and on a virtual machine how much of it the
//! hypervisor gave away although there was work to do, which the kernel calls *stolen*. The kernel counts both in
//! hundredths of a second, so shorter thefts come to light only in sum.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// Time of all cores together, since the machine was started.
///
/// ```
/// use tidegate_load::machine::CoreTime;
///
/// let before = CoreTime::so_far()?;
/// // measure
/// let stolen = CoreTime::so_far()?.stolen - before.stolen;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreTime {
    /// Everything but idling and waiting for disks; what was stolen is in it.
    pub busy: Duration,
    /// What a hypervisor gave to others.
    pub stolen: Duration,
    /// How many cores that is the time of, whether we may use them or not.
    pub cores: u32,
}

impl CoreTime {
    /// What the kernel has counted up to now.
    ///
    /// # Errors
    /// Where there is no `/proc/stat`, or it does not read as Linux writes it.
    pub fn so_far() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        Self::read(&stat).ok_or_else(|| io::Error::other("/proc/stat has no line for all cores"))
    }

    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
        // What guests of this machine used follows, and is in user and nice already.
        let [user, nice, system, _idle, _iowait, irq, softirq, stolen] = *fields.first_chunk()?;
        let busy = user + nice + system + irq + softirq + stolen;
        let span = |hundredths: u64| Duration::from_millis(hundredths * 10);
        let is_core = |line: &&str| {
            let number = line.strip_prefix("cpu").and_then(|rest| rest.chars().next());
            number.is_some_and(|first| first.is_ascii_digit())
        };
        let cores = u32::try_from(stat.lines().filter(is_core).count()).ok()?;
        Some(Self { busy: span(busy), stolen: span(stolen), cores })
    }
}

/// A stretch of time, from its beginning on.
///
/// ```
/// use tidegate_load::machine::Stretch;
///
/// let stretch = Stretch::begin()?;
/// // measure
/// let share = stretch.stolen()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    began: Instant,
    before: CoreTime,
}

impl Stretch {
    /// It begins now.
    ///
    /// # Errors
    /// As [`CoreTime::so_far`].
    pub fn begin() -> io::Result<Self> {
        Ok(Self { began: Instant::now(), before: CoreTime::so_far()? })
    }

    /// How long it has lasted.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.began.elapsed()
    }

    /// The share of all cores' time that a hypervisor has given to others since then, although there was work to do.
    ///
    /// # Errors
    /// As [`CoreTime::so_far`].
    pub fn stolen(&self) -> io::Result<f64> {
        let now = CoreTime::so_far()?;
        let stolen = now.stolen.saturating_sub(self.before.stolen);
        Ok(stolen.div_duration_f64(self.length()) / f64::from(now.cores.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_everything_but_idle_and_waiting_for_disks() {
        let stat = "cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 9 9 9 9 9 9 9 9 9 9\n";
        let busy = Duration::from_millis(10 * (1 + 2 + 4 + 8 + 16 + 32));
        let stolen = Duration::from_millis(320);
        assert_eq!(CoreTime::read(stat), Some(CoreTime { busy, stolen, cores: 1 }));
        assert_eq!(CoreTime::read("cpu  1 2 3\n"), None);
        assert_eq!(CoreTime::read("cpu0 1 2 4 1000 2000 8 16 32\n"), None);
    }
}
