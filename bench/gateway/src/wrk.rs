//! The closed loop that asks as fast as it is answered: wrk, with one thread and 64 connections.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tidegate_bench_lab::process::bound_to_us;

/// wrk with its script.
pub(crate) struct Wrk {
    script: PathBuf,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Answered, with whatever status.
    pub(crate) requests: u64,
    pub(crate) duration: Duration,
    /// Answered with a status of 400 or above.
    pub(crate) refused: u64,
    /// Connections that failed or hung.
    pub(crate) broken: u64,
}

impl Wrk {
    pub(crate) fn new(directory: &Path) -> Result<Self, Box<dyn Error>> {
        let script = directory.join("wrk.lua");
        fs::write(&script, include_str!("wrk.lua"))?;
        Ok(Self { script })
    }

    /// Prints its version.
    pub(crate) fn version() -> Command {
        let mut command = Command::new("wrk");
        command.arg("-v");
        command
    }

    /// Asks for `seconds` with this many keys, and calls `halfway` in the middle of it.
    pub(crate) fn run<T>(
        &self,
        target: SocketAddr,
        keys: usize,
        seconds: u64,
        halfway: impl FnOnce() -> T,
    ) -> Result<(Counts, T), Box<dyn Error>> {
        let mut command = Command::new("wrk");
        command.args(["-t", "1", "-c", "64", "-d", &seconds.to_string(), "-s"]).arg(&self.script);
        command.args([&format!("http://{target}/"), "--", &keys.to_string()]);
        let running = bound_to_us(&command).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        thread::sleep(Duration::from_secs(seconds) / 2);
        let seen = halfway();
        let output = running.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let counts = counts(&text).ok_or_else(|| format!("wrk did not count: {text}"))?;
        Ok((counts, seen))
    }
}

fn counts(text: &str) -> Option<Counts> {
    let line = text.lines().find_map(|line| line.strip_prefix("counts "))?;
    let mut numbers = line.split(' ').map(|number| number.parse().ok());
    Some(Counts {
        requests: numbers.next()??,
        duration: Duration::from_micros(numbers.next()??),
        refused: numbers.next()??,
        broken: numbers.next()??,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_among_what_wrk_prints() {
        let text = "Running 2s test\n  1 threads\ncounts 120000 2000000 7 0\n";
        let expected = Counts { requests: 120_000, duration: Duration::from_secs(2), refused: 7, broken: 0 };
        assert_eq!(counts(text), Some(expected));
        assert_eq!(counts("unable to connect\n"), None);
    }
}
