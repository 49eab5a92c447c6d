//! Memory: how much is held of how much may be, and whether somebody waits for it.

use std::path::Path;

use super::cgroup::Groups;
use super::processor::as_float;
use super::texts::{Texts, number, word};

/// The share of the memory this process may use that is in use.
///
/// Whoever exceeds the limit of a group is ended, so where there is one the fullest group counts. Of what a group holds
/// the files that were read once and can be dropped at once are left out, as Kubernetes does: else a log that is being
/// written would look like a leak.
pub(super) fn share(texts: &impl Texts, groups: &Groups) -> Result<f64, String> {
    let total = in_proc(texts, "/proc/meminfo", "MemTotal:");
    // The first version writes a number beyond every machine where it means none.
    let machine = total.as_ref().map_or(u64::MAX, |total| *total);
    let limited = groups.memory.iter().filter_map(|level| group_share(texts, level, machine));
    match limited.reduce(f64::max) {
        Some(share) => Ok(share.clamp(0.0, 1.0)),
        None => {
            let resident = in_proc(texts, "/proc/self/status", "VmRSS:")?;
            Ok((as_float(resident) / as_float(total?)).clamp(0.0, 1.0))
        }
    }
}

/// How full a group is; none when it is not limited.
fn group_share(texts: &impl Texts, level: &Path, machine: u64) -> Option<f64> {
    let read = |name: &str| number(texts, &level.join(name));
    let (limit, used, droppable) = match read("memory.max") {
        Some(limit) => (limit, read("memory.current")?, "inactive_file"),
        None => (read("memory.limit_in_bytes")?, read("memory.usage_in_bytes")?, "total_inactive_file"),
    };
    let details = texts.text(&level.join("memory.stat")).unwrap_or_default();
    let droppable = word(&details, droppable).and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    let is_limited = limit > 0 && limit < machine;
    is_limited.then(|| as_float(used.saturating_sub(droppable)) / as_float(limit))
}

/// The share of the last ten seconds in which something waited for memory: in our group, else on this machine.
pub(super) fn pressure(texts: &impl Texts, groups: &Groups) -> Result<f64, String> {
    let own = groups.unified.first().map(|level| level.join("memory.pressure"));
    let machine = Path::new("/proc/pressure/memory");
    match own.and_then(|own| stalled(&texts.text(&own).ok()?)) {
        Some(share) => Ok(share),
        None => {
            let text = texts.text(machine).map_err(|problem| told(machine, &problem.to_string()))?;
            stalled(&text).ok_or_else(|| told(machine, "has no `some avg10`"))
        }
    }
}

/// 0.0123 of `some avg10=1.23 avg60=0.40 avg300=0.09 total=3810`.
fn stalled(text: &str) -> Option<f64> {
    let percent: f64 = word(text, "some")?.strip_prefix("avg10=")?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// A size that `/proc` tells in units of 1024 bytes.
fn in_proc(texts: &impl Texts, path: &'static str, name: &str) -> Result<u64, String> {
    let path = Path::new(path);
    let text = texts.text(path).map_err(|problem| told(path, &problem.to_string()))?;
    let kibibytes = word(&text, name).and_then(|size| size.parse::<u64>().ok()).filter(|size| *size > 0);
    kibibytes.map(|size| size.saturating_mul(1024)).ok_or_else(|| told(path, &format!("has no `{name}`")))
}

fn told(path: &Path, problem: &str) -> String {
    format!("{} {problem}", path.display())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::texts::tests::Written;
    use super::*;

    const GIB: &str = "1073741824\n";

    fn machine() -> Written {
        Written::new([
            ("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:         1000000 kB\n"),
            ("/proc/self/status", "Name:\ttidegate\nVmRSS:\t  839680 kB\n"),
        ])
    }

    fn groups() -> Groups {
        let levels = vec![PathBuf::from("/m/pod/container"), PathBuf::from("/m/pod")];
        Groups { memory: levels.clone(), unified: levels, cpu: Vec::new() }
    }

    #[track_caller]
    fn assert_share(texts: &Written, expected: f64) {
        let found = share(texts, &groups()).unwrap();
        assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
    }

    #[test]
    fn without_a_limit_the_machine_is_the_measure() {
        assert_share(&machine(), 0.1001);
        assert_share(&machine().with("/m/pod/memory.max", "max\n"), 0.1001);
        let first = machine().with("/m/pod/memory.limit_in_bytes", "9223372036854771712\n");
        assert_share(&first.with("/m/pod/memory.usage_in_bytes", "2147483648\n"), 0.1001);
    }

    #[test]
    fn with_limits_the_fullest_group_is() {
        let container = machine().with("/m/pod/container/memory.max", GIB);
        let container = container.with("/m/pod/container/memory.current", "805306368\n");
        assert_share(&container, 0.75);
        let stat = "anon 500000000\nfile 400000000\ninactive_anon 7\ninactive_file 268435456\n";
        let container = container.with("/m/pod/container/memory.stat", stat);
        assert_share(&container, 0.5);
        let pod = container.with("/m/pod/memory.max", GIB).with("/m/pod/memory.current", "966367642\n");
        assert_share(&pod, 0.9);
    }

    #[test]
    fn the_first_version_says_the_same_in_other_files() {
        let texts = machine().with("/m/pod/memory.limit_in_bytes", GIB);
        let texts = texts.with("/m/pod/memory.usage_in_bytes", "805306368\n");
        assert_share(&texts, 0.75);
        let stat = "inactive_file 0\ntotal_inactive_file 268435456\n";
        assert_share(&texts.with("/m/pod/memory.stat", stat), 0.5);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_reason() {
        let nothing = share(&Written::new([]), &groups()).unwrap_err();
        assert_eq!(nothing, "/proc/self/status entity not found");
        let odd = machine().with("/proc/meminfo", "MemTotal: lots\n");
        assert_eq!(share(&odd, &groups()).unwrap_err(), "/proc/meminfo has no `MemTotal:`");
        for odd in ["", "x", "0", "-5", "1 2"] {
            assert_share(
                &machine().with("/m/pod/memory.max", odd).with("/m/pod/memory.current", "1\n"),
                0.1001,
            );
        }
        let overfull = machine().with("/m/pod/memory.max", "5\n").with("/m/pod/memory.current", "7\n");
        assert_share(&overfull, 1.0);
    }

    #[test]
    fn pressure_is_that_of_the_group_or_else_of_the_machine() {
        const OWN: &str =
            "some avg10=1.23 avg60=0.40 avg300=0.09 total=3810\nfull avg10=0.50 avg60=0 avg300=0 total=9\n";
        const MACHINES: &str = "some avg10=25.00 avg60=0.00 avg300=0.00 total=0\n";
        let read = |texts: &Written| pressure(texts, &groups());
        let machine = Written::new([("/proc/pressure/memory", MACHINES)]);
        assert_eq!(read(&machine), Ok(0.25));
        let both = machine.with("/m/pod/container/memory.pressure", OWN);
        assert_eq!(read(&both), Ok(0.0123));
        for odd in
            ["", "some", "some avg10=x", "some avg10=NaN", "some avg10=-1", "full avg10=3", "some avg10=1e9"]
        {
            assert_eq!(read(&both_with(odd)), Ok(0.25), "{odd}");
        }
        assert_eq!(read(&Written::new([])).unwrap_err(), "/proc/pressure/memory entity not found");
        let odd = Written::new([("/proc/pressure/memory", "\n")]);
        assert_eq!(read(&odd).unwrap_err(), "/proc/pressure/memory has no `some avg10`");
    }

    fn both_with(own: &'static str) -> Written {
        Written::new([
            ("/proc/pressure/memory", "some avg10=25.00 avg60=0.00 avg300=0.00 total=0\n"),
            ("/m/pod/container/memory.pressure", own),
        ])
    }
}
