//! What this process uses of what it may use.
//!
//! A gateway that runs out of processor or memory itself must shed before the system decides for it, so three
//! signals are read twice a second and told to the gateway:
//!
//! | signal | is | of |
//! |---|---|---|
//! | `cpu` | processor time since the last sample, its own or all of its cgroup's | the time of the processors it may run on; the cgroup's quota |
//! | `memory` | what its cgroup holds and cannot give back at once; without a limit, what it holds itself | that limit; the machine's memory |
//! | `memory_pressure` | time in which somebody waited for memory | the last ten seconds |
//!
//! The machine is not the measure: a container on 64 processors may be allowed 1.5 of them. Then `cpu.max` of its
//! cgroup says `150000 100000`, and 0.6 s of processor time in half a second are 0.6 / (0.5 × 1.5), a share of 0.8. Nor
//! are we alone: if 0.4 s of these 0.6 s were a sidecar's, our own share would be 0.27, and yet the quota is as good as
//! spent. So what counts of a quota is what the whole group used, as `cpu.stat` beside `cpu.max` tells it; and of all
//! shares, the greatest. Limits are read again with every sample, since they may be changed while we run.
//!
//! What cannot be read is not told: unknown is not overloaded. Why is said once, at the start.

mod cgroup;
mod memory;
pub(super) mod process;
mod processor;
mod texts;

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tidegate_policy::policy::SignalName;

use self::cgroup::Groups;
use self::processor::{Meter, Used};
use self::texts::{Disk, Texts};

/// How often the signals are read, which is how often rules that shed are steered.
const EVERY: Duration = Duration::from_millis(500);

/// Reads the signals until it is dropped.
#[derive(Debug)]
pub(super) struct Vitals {
    /// Dropped to stop.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Vitals {
    /// Tells the signals by their names from now on, on a thread of its own. What is not known here goes to `unknown`
    /// first, each with its reason.
    pub(super) fn start(
        tell: impl Fn(&SignalName, f64) + Send + 'static,
        unknown: impl Fn(&SignalName, &str),
    ) -> io::Result<Self> {
        let groups = Groups::of(&Disk);
        let mut meter = Meter::default();
        let first = sample(&Disk, &groups, &mut meter);
        first.tell(&tell);
        let known =
            [(SignalName::Memory, &first.memory), (SignalName::MemoryPressure, &first.memory_pressure)];
        for (name, value) in known {
            if let Err(why) = value {
                unknown(&name, why);
            }
        }
        let (stop, stopped) = mpsc::channel();
        let live = move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                sample(&Disk, &groups, &mut meter).tell(&tell);
            }
        };
        let thread = thread::Builder::new().name("tidegate-vitals".to_owned()).spawn(live)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Vitals {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            thread.join().ok();
        }
    }
}

/// One reading of each signal, or why there is none.
#[derive(Debug)]
struct Sample {
    /// None the first time, since it is about the time between two samples.
    cpu: Option<f64>,
    memory: Result<f64, String>,
    memory_pressure: Result<f64, String>,
}

impl Sample {
    fn tell(&self, tell: &impl Fn(&SignalName, f64)) {
        let known = [
            (SignalName::Cpu, self.cpu),
            (SignalName::Memory, self.memory.as_ref().ok().copied()),
            (SignalName::MemoryPressure, self.memory_pressure.as_ref().ok().copied()),
        ];
        for (name, value) in known {
            if let Some(value) = value {
                tell(&name, value);
            }
        }
    }
}

fn sample(texts: &impl Texts, groups: &Groups, meter: &mut Meter) -> Sample {
    let used = Used::read(texts, groups, processor::time_used());
    Sample {
        cpu: meter.share(Instant::now(), used),
        memory: memory::share(texts, groups),
        memory_pressure: memory::pressure(texts, groups),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn this_very_process_has_shares_between_nothing_and_everything() {
        let groups = Groups::of(&Disk);
        let mut meter = Meter::default();
        assert_eq!(sample(&Disk, &groups, &mut meter).cpu, None);
        let told = Mutex::new(Vec::new());
        let tell = |name: &SignalName, value| told.lock().unwrap().push((name.clone(), value));
        sample(&Disk, &groups, &mut meter).tell(&tell);
        let told = told.into_inner().unwrap();
        let is_told = |wanted: &SignalName| told.iter().any(|(name, _)| name == wanted);
        assert!(is_told(&SignalName::Cpu) && is_told(&SignalName::Memory), "{told:?}");
        assert!(told.iter().all(|(_, value)| (0.0..=1.0).contains(value)), "{told:?}");
    }

    #[test]
    fn it_tells_until_it_is_dropped() {
        let (sender, told) = mpsc::channel();
        let tell = move |name: &SignalName, _: f64| sender.send(name.clone()).unwrap_or_default();
        let vitals = Vitals::start(tell, |_, _| ()).unwrap();
        let names = std::iter::from_fn(|| told.recv_timeout(Duration::from_secs(20)).ok());
        assert!(names.into_iter().any(|name| name == SignalName::Cpu), "the second sample has it");
        drop(vitals);
        // This ends only because nobody is left who could tell more.
        assert!(told.iter().count() < 100);
    }
}
