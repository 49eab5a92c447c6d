//! Programs that run beside us: started on a core, measured from outside, stopped for certain.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

use crate::cores::Core;
use crate::http::Connection;

/// A program with everything it started. Dropping it stops them all.
pub struct Program {
    name: String,
    child: Child,
    started: Instant,
}

/// How long a program may take to serve, and to stop; Envoy on a busy machine takes a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks whether a program has begun or ended.
const LOOK: Duration = Duration::from_micros(500);

impl Program {
    /// Starts it on this core. Should we be killed, the kernel tells it to stop.
    pub fn start(name: &str, core: Core, command: Command) -> Result<Self, Box<dyn Error>> {
        let ours = sched_getaffinity(Pid::from_raw(0))?;
        core.pin()?;
        let started = Instant::now();
        let child = bound_to_us(&command).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        sched_setaffinity(Pid::from_raw(0), &ours)?;
        let child = child.map_err(|problem| format!("{name} does not start: {problem}"))?;
        Ok(Self { name: name.to_owned(), child, started })
    }

    /// Waits for the first answer with status 200 and returns how long it took from the start.
    pub fn ready(&mut self, listen: SocketAddr) -> Result<Duration, Box<dyn Error>> {
        while self.started.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{} ended before it served: {status}", self.name).into());
            }
            let answer = Connection::open(listen).and_then(|mut connection| connection.get("ready"));
            if answer.is_ok_and(|answer| answer.status == 200) {
                return Ok(self.started.elapsed());
            }
            thread::sleep(LOOK);
        }
        Err(format!("{} did not serve within {PATIENCE:?}", self.name).into())
    }

    /// Processor time of all its processes and threads, the ended threads included.
    pub fn processor_time(&self) -> Result<Duration, Box<dyn Error>> {
        let mut sum = Duration::ZERO;
        for process in self.processes() {
            sum += Duration::from(clock_getcpuclockid(process)?.now()?);
        }
        Ok(sum)
    }

    /// Resident memory of all its processes, in bytes. What processes share counts for each of them.
    pub fn resident(&self) -> Result<u64, Box<dyn Error>> {
        let mut sum = 0;
        for process in self.processes() {
            let status = fs::read_to_string(format!("/proc/{process}/status"))?;
            sum += kibibytes(&status, "VmRSS:").ok_or("the kernel tells no VmRSS")? * 1024;
        }
        Ok(sum)
    }

    /// Itself and its descendants.
    fn processes(&self) -> Vec<Pid> {
        let mut found = vec![self.pid()];
        let mut at = 0;
        while at < found.len() {
            found.extend(children(found[at]));
            at += 1;
        }
        found
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("the kernel's process ids are below 2^22"))
    }
}

impl Drop for Program {
    /// Asks first, since only nginx itself knows its workers well enough; then insists.
    fn drop(&mut self) {
        let processes = self.processes();
        let mut is_gone = kill(self.pid(), Signal::SIGTERM).is_err();
        let asked = Instant::now();
        while !is_gone && asked.elapsed() < PATIENCE {
            is_gone = !matches!(self.child.try_wait(), Ok(None));
            thread::sleep(LOOK);
        }
        if !is_gone {
            for process in processes {
                kill(process, Signal::SIGKILL).ok();
            }
            self.child.wait().ok();
        }
    }
}

/// The same command, ended by the kernel when this program ends.
pub fn bound_to_us(command: &Command) -> Command {
    let mut bound = Command::new("setpriv");
    bound.args(["--pdeathsig", "TERM"]).arg(command.get_program()).args(command.get_args());
    bound
}

/// The first word that looks like a version in what the program prints, on whichever stream.
pub fn version(mut command: Command) -> Result<String, Box<dyn Error>> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|problem| format!("{program} cannot be run: {problem}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let mut words = text.split(|letter: char| letter.is_whitespace() || letter == '/');
    let is_version =
        |word: &&str| word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit());
    words.find(is_version).map(str::to_owned).ok_or_else(|| format!("{program} tells no version").into())
}

/// Connections by the thousand; the programs we start inherit the limit.
pub fn raise_open_files() -> Result<(), Box<dyn Error>> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

fn children(process: Pid) -> Vec<Pid> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let ids: Vec<String> = lists.collect();
    ids.iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|id| id.parse().ok())
        .map(Pid::from_raw)
        .collect()
}

fn kibibytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Program {
        let core = crate::cores::Cores::first().unwrap().gateway;
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & wait"]);
        Program::start("sleeper", core, command).unwrap()
    }

    #[test]
    fn memory_is_read_from_the_line_of_its_field() {
        assert_eq!(kibibytes("VmHWM:\t  900 kB\nVmRSS:\t  812 kB\n", "VmRSS:"), Some(812));
        assert_eq!(kibibytes("VmHWM:\t  900 kB\n", "VmRSS:"), None);
    }

    #[test]
    fn a_program_is_seen_with_what_it_started() {
        let program = sleeper();
        while program.processes().len() < 2 {
            thread::yield_now();
        }
        assert!(program.resident().unwrap() > 0 && program.processor_time().is_ok());
        for process in program.processes() {
            kill(process, Signal::SIGTERM).unwrap();
        }
    }
}
