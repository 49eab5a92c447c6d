//! Processor time: how much was used, and how much there was.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::cgroup::Groups;
use super::texts::{Texts, number, word};

/// The processor time of all threads of this process since it started.
pub(super) fn time_used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanos)
}

/// Turns processor time since the start into a share since the last time.
#[derive(Debug, Default)]
pub(super) struct Meter {
    last: Option<(Instant, Duration)>,
}

impl Meter {
    /// The share of these processors that was used since the last time; none the first time.
    pub(super) fn share(&mut self, now: Instant, used: Duration, processors: f64) -> Option<f64> {
        let (then, used_then) = self.last.replace((now, used))?;
        let had = now.saturating_duration_since(then).as_secs_f64() * processors;
        // A quota is enforced over a tenth of a second and may be saved up, so a share can be above everything.
        (had > 0.0).then(|| (used.saturating_sub(used_then).as_secs_f64() / had).min(1.0))
    }
}

/// How many processors this process may use at once: those it may run on, or the quota of a group it is in.
pub(super) fn allowed(texts: &impl Texts, groups: &Groups) -> f64 {
    let quotas = groups.cpu.iter().filter_map(|level| quota(texts, level));
    quotas.fold(runs_on(texts), f64::min)
}

/// How many processors' time a group gets; none when it is not limited.
///
/// The second version writes `150000 100000` into `cpu.max`, microseconds in each period of so many; or `max 100000`. The
/// first has a file for each number, with a quota of -1 for none.
fn quota(texts: &impl Texts, level: &Path) -> Option<f64> {
    let (quota, period) = match texts.text(&level.join("cpu.max")) {
        Ok(text) => {
            let mut words = text.split_ascii_whitespace().map(str::parse);
            (words.next()?.ok()?, words.next()?.ok()?)
        }
        Err(_) => (
            number(texts, &level.join("cpu.cfs_quota_us"))?,
            number(texts, &level.join("cpu.cfs_period_us"))?,
        ),
    };
    (quota > 0 && period > 0).then(|| as_float(quota) / as_float(period))
}

/// How many processors the scheduler may put us on.
fn runs_on(texts: &impl Texts) -> f64 {
    let status = texts.text(Path::new("/proc/self/status")).unwrap_or_default();
    let listed = word(&status, "Cpus_allowed_list:").and_then(count);
    listed.unwrap_or_else(|| {
        let known = std::thread::available_parallelism();
        known.map_or(1.0, |count| as_float(u64::try_from(count.get()).unwrap_or(1)))
    })
}

/// 6 for `0-3,8,10`.
fn count(list: &str) -> Option<f64> {
    let ranges = list.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(u64::from(last.checked_sub(first)?) + 1)
    });
    ranges.sum::<Option<u64>>().map(as_float)
}

#[expect(clippy::cast_precision_loss, reason = "shares of what a machine has are exact enough in 53 bits")]
pub(super) const fn as_float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::texts::tests::Written;
    use super::*;

    fn allowed_to(texts: &Written) -> f64 {
        let cpu = vec![PathBuf::from("/c/pod/container"), PathBuf::from("/c/pod")];
        allowed(texts, &Groups { cpu, ..Groups::default() })
    }

    fn four() -> Written {
        Written::new([("/proc/self/status", "Name:\ttidegate\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n")])
    }

    #[track_caller]
    fn assert_is(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn the_example_of_the_module_holds() {
        let processors = allowed_to(&four().with("/c/pod/container/cpu.max", "150000 100000\n"));
        let (begin, used) = (Instant::now(), Duration::from_secs(7));
        let mut meter = Meter::default();
        assert_eq!(meter.share(begin, used, processors), None);
        let share =
            meter.share(begin + Duration::from_millis(500), used + Duration::from_millis(600), processors);
        assert_is(share.unwrap(), 0.8);
    }

    #[test]
    fn the_lowest_bound_counts() {
        assert_is(allowed_to(&four()), 4.0);
        let unlimited = four().with("/c/pod/container/cpu.max", "max 100000\n");
        assert_is(allowed_to(&unlimited), 4.0);
        let pod = unlimited.with("/c/pod/cpu.max", "50000 100000\n");
        assert_is(allowed_to(&pod), 0.5);
        let more_than_there_are = four().with("/c/pod/cpu.max", "6400000 100000\n");
        assert_is(allowed_to(&more_than_there_are), 4.0);
        let first = four().with("/c/pod/cpu.cfs_period_us", "100000\n");
        let first = first.with("/c/pod/cpu.cfs_quota_us", "250000\n");
        assert_is(allowed_to(&first), 2.5);
        let first = first.with("/c/pod/cpu.cfs_quota_us", "-1\n");
        assert_is(allowed_to(&first), 4.0);
    }

    #[test]
    fn odd_texts_limit_nothing() {
        for odd in ["", "max", "0 0", "0 100000", "100000 0", "x y", "-1 100000", "99999999999999999999999 1"]
        {
            assert_is(allowed_to(&four().with("/c/pod/cpu.max", odd)), 4.0);
        }
        for (list, expected) in
            [("0-3,8,10", Some(6.0)), ("7", Some(1.0)), ("0-4294967295", Some(4_294_967_296.0))]
        {
            assert_eq!(count(list), expected);
        }
        for odd in ["", "3-1", "a", "1,", "-", "1-2-3"] {
            assert_eq!(count(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_share_is_at_most_everything_and_needs_time_to_pass() {
        let (begin, mut meter) = (Instant::now(), Meter::default());
        meter.share(begin, Duration::ZERO, 2.0);
        assert_eq!(meter.share(begin, Duration::from_secs(1), 2.0), None);
        let share = meter.share(begin + Duration::from_millis(1), Duration::from_secs(9), 2.0);
        assert_is(share.unwrap(), 1.0);
        assert!(time_used() > Duration::ZERO);
    }
}
