//! Processor time: how much was used, and how much there was.

use std::path::{Path, PathBuf};
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

/// Processor time at a moment, each since a beginning of its own, and how many processors there are for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Used {
    /// Our own.
    own: Duration,
    /// How many processors we may run on.
    processors: f64,
    /// Of each group that we are in, from below; none where it has no quota.
    groups: Vec<Option<GroupUsed>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct GroupUsed {
    /// Of all that run in it; none where that is not told.
    all: Option<Duration>,
    /// How many processors' time it gets.
    quota: f64,
}

impl Used {
    /// As the texts tell it now, beside our own.
    pub(super) fn read(texts: &impl Texts, groups: &Groups, own: Duration) -> Self {
        let group =
            |level: &PathBuf| Some(GroupUsed { quota: quota(texts, level)?, all: all_used(texts, level) });
        Self { own, processors: runs_on(texts), groups: groups.cpu.iter().map(group).collect() }
    }

    /// The greatest share: ours of the processors, or a group's of its quota.
    fn share_since(&self, before: &Self, passed: Duration) -> Option<f64> {
        let own = self.own.saturating_sub(before.own);
        let of_quotas = self.groups.iter().zip(&before.groups).filter_map(|(group, before)| {
            let (group, before) = ((*group)?, (*before)?);
            let used = match (group.all, before.all) {
                (Some(all), Some(before)) => all.saturating_sub(before),
                (None, None) => own,
                // Told only once, it has nothing to be compared with.
                (Some(_), None) | (None, Some(_)) => return None,
            };
            Some((used, group.quota))
        });
        let share = |(used, of): (Duration, f64)| used.as_secs_f64() / (passed.as_secs_f64() * of);
        let greatest = of_quotas.chain([(own, self.processors)]).map(share).fold(0.0, f64::max);
        // A quota is enforced over a tenth of a second and may be saved up, so a share can be above everything.
        (!passed.is_zero()).then(|| greatest.min(1.0))
    }
}

/// Turns processor time into a share since the last time.
#[derive(Debug, Default)]
pub(super) struct Meter {
    last: Option<(Instant, Used)>,
}

impl Meter {
    /// The share that was used since the last time; none the first time.
    pub(super) fn share(&mut self, now: Instant, used: Used) -> Option<f64> {
        let last = self.last.as_ref();
        let share =
            last.and_then(|(then, before)| used.share_since(before, now.saturating_duration_since(*then)));
        self.last = Some((now, used));
        share
    }
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

/// The processor time of all that ran in a group: microseconds in a line of `cpu.stat`, or nanoseconds in a file of the
/// first version, where it counts in the same place as it limits.
fn all_used(texts: &impl Texts, level: &Path) -> Option<Duration> {
    let stat = texts.text(&level.join("cpu.stat")).unwrap_or_default();
    let micros = word(&stat, "usage_usec").and_then(|micros| micros.parse().ok());
    let nanos = || number(texts, &level.join("cpuacct.usage"));
    micros.map(Duration::from_micros).or_else(|| nanos().map(Duration::from_nanos))
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
    use super::super::texts::tests::Written;
    use super::*;

    fn used(texts: &Written, own: u64) -> Used {
        let cpu = vec![PathBuf::from("/c/pod/container"), PathBuf::from("/c/pod")];
        Used::read(texts, &Groups { cpu, ..Groups::default() }, Duration::from_millis(own))
    }

    fn four() -> Written {
        Written::new([("/proc/self/status", "Name:\ttidegate\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n")])
    }

    /// The share in half a second, given the milliseconds that were used ourselves.
    fn share(before: Used, after: Used) -> Option<f64> {
        let (begin, mut meter) = (Instant::now(), Meter::default());
        assert_eq!(meter.share(begin, before), None);
        meter.share(begin + Duration::from_millis(500), after)
    }

    #[track_caller]
    fn assert_is(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    /// Half a second in which we used a tenth of a second, with other texts at its end than at its beginning.
    #[track_caller]
    fn assert_share_between(before: &Written, after: &Written, expected: f64) {
        assert_is(share(used(before, 7_000), used(after, 7_100)).unwrap(), expected);
    }

    #[track_caller]
    fn assert_share(texts: &Written, expected: f64) {
        assert_share_between(texts, texts, expected);
    }

    #[test]
    fn the_example_of_the_module_holds() {
        let of_64 = || Written::new([("/proc/self/status", "Cpus_allowed_list:\t0-63\n")]);
        let limited = || of_64().with("/c/pod/container/cpu.max", "150000 100000\n");
        assert_is(share(used(&limited(), 7_000), used(&limited(), 7_200)).unwrap(), 0.2 / 0.75);
        let before = limited().with("/c/pod/container/cpu.stat", "usage_usec 90000000\nuser_usec 1\n");
        let after = limited().with("/c/pod/container/cpu.stat", "usage_usec 90600000\nuser_usec 2\n");
        assert_is(share(used(&before, 7_000), used(&after, 7_200)).unwrap(), 0.8);
        assert_is(share(used(&of_64(), 7_000), used(&of_64(), 7_200)).unwrap(), 0.2 / 32.0);
    }

    #[test]
    fn the_lowest_bound_counts() {
        assert_share(&four(), 0.05);
        let unlimited = four().with("/c/pod/container/cpu.max", "max 100000\n");
        assert_share(&unlimited, 0.05);
        let pod = unlimited.with("/c/pod/cpu.max", "50000 100000\n");
        assert_share(&pod, 0.4);
        let more_than_there_are = four().with("/c/pod/cpu.max", "6400000 100000\n");
        assert_share(&more_than_there_are, 0.05);
        let first = four().with("/c/pod/cpu.cfs_period_us", "100000\n");
        let first = first.with("/c/pod/cpu.cfs_quota_us", "250000\n");
        assert_share(&first, 0.08);
        let first = first.with("/c/pod/cpu.cfs_quota_us", "-1\n");
        assert_share(&first, 0.05);
    }

    #[test]
    fn what_others_use_of_a_quota_counts_as_ours_does() {
        let limited = || {
            let container = four().with("/c/pod/container/cpu.max", "200000 100000\n");
            container.with("/c/pod/cpu.max", "300000 100000\n")
        };
        let at = |container, pod| {
            let texts = limited().with("/c/pod/container/cpu.stat", container);
            texts.with("/c/pod/cpu.stat", pod)
        };
        let before = || at("usage_usec 1000000\n", "usage_usec 5000000\n");
        let alone = at("usage_usec 1100000\n", "usage_usec 5100000\n");
        assert_share_between(&before(), &alone, 0.1);
        let beside_siblings = at("usage_usec 1100000\n", "usage_usec 6200000\n");
        assert_share_between(&before(), &beside_siblings, 0.8);
        let all = at("usage_usec 1100000\n", "usage_usec 9000000\n");
        assert_share_between(&before(), &all, 1.0);
        let without_quota =
            |stat| four().with("/c/pod/cpu.max", "max 100000\n").with("/c/pod/cpu.stat", stat);
        assert_share_between(&without_quota("usage_usec 1\n"), &without_quota("usage_usec 900000\n"), 0.05);
    }

    #[test]
    fn the_first_version_counts_in_the_same_place_or_elsewhere() {
        let limited = || {
            let texts = four().with("/c/pod/cpu.cfs_quota_us", "100000\n");
            texts.with("/c/pod/cpu.cfs_period_us", "100000\n").with("/c/pod/cpu.stat", "nr_periods 9\n")
        };
        assert_share(&limited(), 0.2);
        let before = limited().with("/c/pod/cpuacct.usage", "7000000000\n");
        let after = limited().with("/c/pod/cpuacct.usage", "7300000000\n");
        assert_share_between(&before, &after, 0.6);
    }

    #[test]
    fn a_group_that_tells_only_one_of_two_times_says_nothing() {
        let limited = || four().with("/c/pod/cpu.max", "100000 100000\n");
        let told = || limited().with("/c/pod/cpu.stat", "usage_usec 400000\n");
        assert_share(&limited(), 0.2);
        for odd in
            ["", "usage_usec", "usage_usec x\n", "usage_usec -1\n", "usage_usec 99999999999999999999\n"]
        {
            let odd = limited().with("/c/pod/cpu.stat", odd);
            assert_share(&odd, 0.2);
            assert_share_between(&odd, &told(), 0.05);
            assert_share_between(&told(), &odd, 0.05);
        }
        assert_share_between(&four(), &told(), 0.05);
        assert_share_between(&told(), &four(), 0.05);
        let anew = limited().with("/c/pod/cpu.stat", "usage_usec 0\n");
        assert_share_between(&told(), &anew, 0.05);
        let late = limited().with("/c/pod/cpu.stat", "usage_usec 18446744073709551615\n");
        assert_share_between(&told(), &late, 1.0);
    }

    #[test]
    fn odd_texts_limit_nothing() {
        for odd in ["", "max", "0 0", "0 100000", "100000 0", "x y", "-1 100000", "99999999999999999999999 1"]
        {
            assert_share(&four().with("/c/pod/cpu.max", odd), 0.05);
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
        meter.share(begin, used(&four(), 0));
        assert_eq!(meter.share(begin, used(&four(), 1_000)), None);
        let share = meter.share(begin + Duration::from_millis(1), used(&four(), 9_000));
        assert_is(share.unwrap(), 1.0);
        assert!(time_used() > Duration::ZERO);
    }
}
