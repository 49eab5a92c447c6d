//! Cores that stay awake while something is measured.
//!
//! A virtual core without work is given to somebody else's machine, and comes back when that one has had its turn. Whoever
//! is to be woken up meanwhile, because a request came or is due, waits for it: milliseconds, or a tenth of a second. A
//! core that always has something to do is given away far less. By turns in the same three minutes, on a machine that
//! answered 5 000 requests a second, others took
//!
//! | cores | of the machine's time, in turns of 15 seconds |
//! |---|---|
//! | as they are | 20 %, 39 %, 8 %, 39 % |
//! | kept awake | 1 %, 2 %, 7 %, 6 % |
//!
//! So every core gets a program that does nothing, at the priority for which the kernel has time only when nobody else
//! wants any: it is put aside the moment that there is work. It ends with whoever asked for it, even one that was killed.

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};

/// Ends when its parent is gone.
const IDLE_AWAY: &str =
    "while kill -0 $PPID 2>&-; do turn=0; while [ $turn -lt 50000 ]; do turn=$((turn + 1)); done; done";

/// Keeps all cores awake until it is dropped.
///
/// ```
/// use tidegate_load::awake::Awake;
///
/// let awake = Awake::keep()?;
/// // measure
/// drop(awake);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Awake(Vec<Child>);

impl Awake {
    /// Keeps awake the cores of this machine that are online.
    ///
    /// # Errors
    /// When the system does not say which they are, or `taskset` cannot be started. Where `chrt` is missing, that is said
    /// on standard error, and cores sleep as they like.
    pub fn keep() -> io::Result<Self> {
        let mut awake = Self(Vec::new());
        for core in online(&fs::read_to_string("/sys/devices/system/cpu/online")?)? {
            awake.0.push(keep_awake(core)?);
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both fail only for a program that has ended, and then all is well.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn keep_awake(core: usize) -> io::Result<Child> {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &core.to_string(), "chrt", "--idle", "0"]);
    command.args(["sh", "-c", IDLE_AWAY]).stdin(Stdio::null()).stdout(Stdio::null());
    command
        .spawn()
        .map_err(|problem| io::Error::new(problem.kind(), format!("cannot start `taskset`: {problem}")))
}

/// The cores in a list of the kernel's, such as `0-1,4`.
fn online(list: &str) -> io::Result<Vec<usize>> {
    let span = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    let spans: Option<Vec<_>> = list.trim().split(',').map(span).collect();
    let spans = spans.ok_or_else(|| io::Error::other(format!("{list:?} is no list of cores")))?;
    Ok(spans.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_core_has_a_program_of_the_lowest_priority_that_ends() {
        let awake = Awake::keep().unwrap();
        let pids: Vec<u32> = awake.0.iter().map(Child::id).collect();
        assert!(pids.len() >= thread::available_parallelism().unwrap().get());
        for pid in &pids {
            // It is started as any other, and becomes so.
            assert!((0..5_000).any(|_| is_idle_class(*pid)), "{pid}");
        }
        drop(awake);
        for pid in pids {
            assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
        }
    }

    /// By its policy, the 39th of the fields after the name.
    fn is_idle_class(pid: u32) -> bool {
        const SCHED_IDLE: &str = "5";
        thread::sleep(Duration::from_millis(1));
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let after_the_name = stat.rsplit(')').next().unwrap();
        after_the_name.split_whitespace().nth(38) == Some(SCHED_IDLE)
    }

    #[test]
    fn a_list_of_cores_is_read() {
        assert_eq!(online("0-1,4\n").unwrap(), [0, 1, 4]);
        assert_eq!(online("0\n").unwrap(), [0]);
        let problem = online("some\n").unwrap_err().to_string();
        assert_eq!(problem, r#""some\n" is no list of cores"#);
    }
}
