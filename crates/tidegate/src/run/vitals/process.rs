//! What this process uses of its machine, under the names that Prometheus' own libraries have for it.
//!
//! It is read when it is asked for, from `/proc`. What cannot be read is left out.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use tidegate_core::WallTime;
use tidegate_proxy::metrics::{MeasuredFamily, MetricFamily, MetricValue};

use super::processor::time_used;
use super::texts::{Disk, Texts, word};

const CPU: MetricFamily = MetricFamily::counter(
    "process_cpu_seconds_total",
    &[],
    "Processor time used by the process, in user and system mode.",
);
const RESIDENT: MetricFamily = MetricFamily::gauge(
    "process_resident_memory_bytes",
    &[],
    "Memory of the process that is in use, files that it maps included.",
);
const VIRTUAL: MetricFamily =
    MetricFamily::gauge("process_virtual_memory_bytes", &[], "Addresses that the process has reserved.");
const OPEN_FILES: MetricFamily =
    MetricFamily::gauge("process_open_fds", &[], "File descriptors that are open.");
const MOST_FILES: MetricFamily =
    MetricFamily::gauge("process_max_fds", &[], "File descriptors that may be open.");
const STARTED: MetricFamily = MetricFamily::gauge(
    "process_start_time_seconds",
    &[],
    "When the process started, in seconds since 1970.",
);

/// What the process uses at this moment.
pub(in crate::run) fn metrics(started: WallTime) -> impl Iterator<Item = MeasuredFamily> {
    let status = Disk.text(Path::new("/proc/self/status")).unwrap_or_default();
    let seconds = MetricValue::Measure(time_used().as_secs_f64());
    let measured = [
        (&CPU, Some(seconds)),
        (&RESIDENT, size(&status, "VmRSS:").map(MetricValue::Count)),
        (&VIRTUAL, size(&status, "VmSize:").map(MetricValue::Count)),
        (&OPEN_FILES, open_files().map(MetricValue::Count)),
        (&MOST_FILES, getrlimit(Resource::Nofile).current.map(MetricValue::Count)),
        (&STARTED, Some(MetricValue::Measure(since_1970(started)))),
    ];
    measured
        .into_iter()
        .filter_map(|(family, value)| Some(MeasuredFamily { family, samples: vec![(Vec::new(), value?)] }))
}

/// A size in bytes, which the system tells in units of 1024.
fn size(status: &str, name: &str) -> Option<u64> {
    word(status, name)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The one that is open only while they are counted is none.
fn open_files() -> Option<u64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(count).ok()?.checked_sub(1)
}

/// To the millisecond.
#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 53 bits for long")]
fn since_1970(time: WallTime) -> f64 {
    (time.unix_nanos() / 1_000_000) as f64 / 1_000.0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn every_open_file_is_counted() {
        let before = open_files().unwrap();
        let held: Vec<File> = (0..100).map(|_| File::open("/dev/null").unwrap()).collect();
        let with = open_files().unwrap();
        drop(held);
        // Other tests open and close files meanwhile, but far fewer.
        assert!((before + 50..before + 150).contains(&with), "{before}, then {with}");
    }
}
