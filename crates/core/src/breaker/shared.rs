//! A breaker shared by threads.
//!
//! Nearly all the time a breaker is closed, and then all there is to know is that it is: one word,
//! `[generation: 62 bits][what to do: 2 bits]`. While it is open, the word together with the stretch of time
//! it stays open answers too, so a flood of refused requests takes no lock. Everything else, and every
//! result, is a step of the plain machine behind a mutex, after which the word is written anew.
//!
//! Orderings: the word is stored with release after the stretch it speaks of, and loaded with acquire before
//! it. Two trips may be so close that a reader sees the word of one with the stretch of the other; it then
//! refuses with a slightly wrong retry, or asks the machine. A pass given out by a word that is outdated by
//! then carries an outdated generation, so its result will not count.

use std::sync::Arc;
use std::time::Duration;

use super::{Breaker, BreakerRule, Counts, Pass, Phase, State, Switch};
use crate::permit::{Ended, Outcome, Permit, Places};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::units::{Moment, Roll};
use crate::verdict::{Reason, Retry, Verdict};

const PASSING: u64 = 0;
const REFUSING: u64 = 1;
const ASK: u64 = 2;
const WHAT_BITS: u32 = 2;

/// A permit's note is `[generation: 53 bits][probe's place + 1, or 0: 11 bits]`; there are at most 1000
/// places.
const PROBE_BITS: u32 = 11;

/// A breaker shared by threads.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_core::breaker::{BreakerRule, SharedBreaker};
/// use tidegate_core::permit::Outcome;
/// use tidegate_core::{Moment, Roll};
///
/// let (now, roll) = (Moment::ORIGIN, Roll::new(0.5)?);
/// let breaker = Arc::new(SharedBreaker::new(BreakerRule::default(), now));
/// let permit = breaker.admit_permit(now, roll).admitted().expect("it is closed");
/// permit.complete(now, Outcome::Ok); // dropped instead, it would count neither way
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct SharedBreaker {
    word: AtomicU64,
    since: AtomicU64,
    until: AtomicU64,
    machine: Mutex<Breaker>,
}

impl SharedBreaker {
    /// A closed breaker.
    #[must_use]
    pub fn new(rule: BreakerRule, now: Moment) -> Self {
        Self {
            word: AtomicU64::new(PASSING),
            since: AtomicU64::new(0),
            until: AtomicU64::new(0),
            machine: Mutex::new(Breaker::new(rule, now)),
        }
    }

    /// Asks for one attempt. Bring the pass back with [`record`](Self::record).
    #[inline]
    pub fn admit(&self, now: Moment, roll: Roll) -> Verdict<Pass> {
        let word = self.word.load(Ordering::Acquire);
        let what = word & ((1 << WHAT_BITS) - 1);
        if what == PASSING {
            return Verdict::Admit(Pass { generation: word >> WHAT_BITS, probe: None, began: now });
        }
        self.admit_slowly(what, now, roll)
    }

    /// Asks for one attempt, with a permit that brings itself back when it is dropped.
    pub fn admit_permit(self: &Arc<Self>, now: Moment, roll: Roll) -> Verdict<Permit<Arc<Self>>> {
        self.admit(now, roll).map(|pass| {
            let probe = pass.probe.map_or(0, |probe| u64::from(probe) + 1);
            Permit::noted(Arc::clone(self), now, pass.generation << PROBE_BITS | probe)
        })
    }

    /// Learns how an attempt ended.
    pub fn record(&self, pass: Pass, now: Moment, outcome: Outcome) {
        self.step(|machine| machine.record(pass, now, outcome));
    }

    /// Puts somebody in command.
    pub fn set_switch(&self, switch: Switch) {
        self.step(|machine| machine.set_switch(switch));
    }

    /// Where it is.
    pub fn state(&self) -> State {
        lock(&self.machine).state()
    }

    /// How often it has opened.
    pub fn trips(&self) -> u64 {
        lock(&self.machine).trips()
    }

    /// What its window holds at `now`.
    pub fn counts(&self, now: Moment) -> Counts {
        lock(&self.machine).counts(now)
    }

    #[cold]
    fn admit_slowly(&self, what: u64, now: Moment, roll: Roll) -> Verdict<Pass> {
        if what == REFUSING {
            let since = self.since.load(Ordering::Relaxed);
            let until = self.until.load(Ordering::Relaxed);
            if (since..until).contains(&now.nanos()) {
                let after = Duration::from_nanos(until - now.nanos());
                return Verdict::refuse(Reason::BreakerOpen, Retry::After(after));
            }
        }
        self.step(|machine| machine.admit(now, roll))
    }

    fn step<T>(&self, step: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut machine = lock(&self.machine);
        let answer = step(&mut machine);
        let what = match (machine.switch, &machine.phase) {
            (Switch::Disabled, _) | (Switch::Automatic, Phase::Closed) => PASSING,
            (Switch::Automatic, Phase::Open { since, wait: Some(wait) }) => {
                self.since.store(since.nanos(), Ordering::Relaxed);
                self.until.store(since.plus(*wait).nanos(), Ordering::Relaxed);
                REFUSING
            }
            (Switch::ForcedOpen, _) | (Switch::Automatic, _) => ASK,
        };
        let word = machine.generation << WHAT_BITS | what;
        if self.word.load(Ordering::Relaxed) != word {
            self.word.store(word, Ordering::Release);
        }
        answer
    }
}

impl Places for SharedBreaker {
    fn give_back(&self, ended: Ended) {
        let probe = u32::try_from(ended.note & ((1 << PROBE_BITS) - 1)).unwrap_or(0).checked_sub(1);
        let pass = Pass { generation: ended.note >> PROBE_BITS, probe, began: ended.taken };
        self.record(pass, ended.taken.plus(ended.took.unwrap_or_default()), ended.outcome);
    }
}
