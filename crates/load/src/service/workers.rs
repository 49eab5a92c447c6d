//! Workers in virtual time: plain numbers that are told the moment.
//!
//! Two workers, 10 ms each. Requests A, B and C come at 0 ms, D at 25 ms; somebody looks at 12 ms and at 40 ms.
//!
//! | moment | what is due                                  | so the workers are free at |
//! |--------|----------------------------------------------|----------------------------|
//! | 0 ms   | A and B begin; C waits                       | 10 and 10                  |
//! | 12 ms  | A and B ended at 10; C began *at 10*         | 10 and 20                  |
//! | 25 ms  | C ended at 20; D begins                      | 20 and 35                  |
//! | 40 ms  | D ended at 35                                | 20 and 35                  |
//!
//! That somebody looked late cost answers a little latency, and the workers nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tidegate_scenario::Crowding;

use super::{Queue, Spec, Work};
use crate::chance::Chance;

/// Workers, and who waits for them. `J` is whatever is given back with the outcome.
#[derive(Debug)]
pub(super) struct Workers<J> {
    count: usize,
    work: Work,
    crowding: Option<Crowding>,
    queue: Queue,
    chance: Chance,
    slow: f64,
    fail: f64,
    /// What is worked on, by the moment it ends and, where that is the same, by the order it was begun in.
    busy: BTreeMap<(Duration, u64), (J, Outcome)>,
    waiting: VecDeque<J>,
    begun: u64,
}

/// How work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    Failed,
}

impl<J> Workers<J> {
    pub(super) fn new(spec: &Spec) -> Self {
        Self {
            count: spec.workers,
            work: spec.work,
            crowding: spec.crowding,
            queue: spec.queue,
            chance: Chance::stream(spec.seed, 0),
            slow: 1.0,
            fail: 0.0,
            busy: BTreeMap::new(),
            waiting: VecDeque::new(),
            begun: 0,
        }
    }

    /// For work that is begun from now on.
    pub(super) fn set_faults(&mut self, slow: f64, fail: f64) {
        (self.slow, self.fail) = (slow, fail);
    }

    /// One more; it is given back when the queue is full. What has ended by `now` must have been taken before.
    pub(super) fn arrive(&mut self, now: Duration, job: J) -> Result<(), J> {
        if self.busy.len() < self.count {
            self.begin(now, job);
            return Ok(());
        }
        match self.queue {
            Queue::Bounded(bound) if self.waiting.len() >= bound => Err(job),
            Queue::Bounded(_) | Queue::Unbounded => {
                self.waiting.push_back(job);
                Ok(())
            }
        }
    }

    /// The next that has ended by `now`, in the order in which they ended.
    pub(super) fn ended(&mut self, now: Duration) -> Option<(J, Outcome)> {
        let entry = self.busy.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), ended) = entry.remove_entry();
        if let Some(next) = self.waiting.pop_front() {
            // It came while every worker was busy, so the worker was never idle in between.
            self.begin(at, next);
        }
        Some(ended)
    }

    /// When the next one ends.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.busy.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn busy(&self) -> usize {
        self.busy.len()
    }

    /// Forgets everything that is there.
    pub(super) fn clear(&mut self) {
        self.busy.clear();
        self.waiting.clear();
    }

    fn begin(&mut self, at: Duration, job: J) {
        let time = self.work.draw(&mut self.chance);
        let slow = self.slow * self.crowding.map_or(1.0, |crowding| self.crowded(crowding));
        let outcome = if self.chance.share() < self.fail { Outcome::Failed } else { Outcome::Ok };
        let end = at
            .saturating_add(Duration::try_from_secs_f64(time.as_secs_f64() * slow).unwrap_or(Duration::MAX));
        self.begun += 1;
        self.busy.insert((end, self.begun), (job, outcome));
    }
}

impl<J> Workers<J> {
    /// How much longer the next request takes because of those that are there.
    fn crowded(&self, crowding: Crowding) -> f64 {
        let inside = self.waiting.len() + self.busy.len() + 1;
        let too_many = inside.saturating_sub(usize::try_from(crowding.free).unwrap_or(usize::MAX));
        (1.0 + too_many as f64 * crowding.slope).min(crowding.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Work = Work::Fixed(Duration::from_millis(10));

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn workers(count: usize, work: Work, queue: Queue) -> Workers<char> {
        Workers::new(&Spec { queue, ..Spec::new(count, work) })
    }

    fn ended(workers: &mut Workers<char>, now: Duration) -> String {
        std::iter::from_fn(|| workers.ended(now)).map(|(job, _)| job).collect()
    }

    /// The module's example.
    #[test]
    fn a_worker_begins_when_the_last_should_have_ended() {
        let mut workers = workers(2, TEN, Queue::Unbounded);
        "ABC".chars().for_each(|job| workers.arrive(at(0), job).unwrap());
        assert_eq!((workers.busy(), workers.waiting()), (2, 1));
        assert_eq!(ended(&mut workers, at(12)), "AB");
        assert_eq!(workers.next_end(), Some(at(20)));
        assert_eq!(ended(&mut workers, at(25)), "C");
        workers.arrive(at(25), 'D').unwrap();
        assert_eq!(workers.next_end(), Some(at(35)));
        assert_eq!(ended(&mut workers, at(34)), "");
        assert_eq!(ended(&mut workers, at(40)), "D");
    }

    #[test]
    fn a_bounded_queue_gives_back_what_does_not_fit() {
        let mut workers = workers(1, TEN, Queue::Bounded(1));
        assert_eq!(['A', 'B', 'C'].map(|job| workers.arrive(at(0), job)), [Ok(()), Ok(()), Err('C')]);
    }

    #[test]
    fn every_kind_of_work_has_its_capacity() {
        let bimodal = Work::Bimodal { usual: at(4), long: at(64), share: 0.1 };
        for work in [TEN, Work::Exponential(at(10)), bimodal] {
            assert_eq!(work.mean(), at(10), "{work:?}");
            let mut workers = workers(5, work, Queue::Unbounded);
            (0..100_000).for_each(|_| workers.arrive(at(0), 'x').unwrap());
            // 500 a second; ten seconds of them, in looks that are never in time.
            let count: usize = (1..=100).map(|look| ended(&mut workers, at(look * 1000)).len()).sum();
            assert!(count.abs_diff(50_000) < 1000, "{work:?}: {count}");
        }
    }

    #[test]
    fn a_crowd_makes_work_longer() {
        let crowding = Some(Crowding { free: 1, slope: 0.5, most: 2.0 });
        let mut workers = Workers::new(&Spec { crowding, ..Spec::new(1, TEN) });
        "ABCD".chars().for_each(|job| workers.arrive(at(0), job).unwrap());
        // A is alone and takes 10 ms. B begins before two others, which is the most it can become: 20 ms.
        assert_eq!((ended(&mut workers, at(29)), ended(&mut workers, at(30))), ("A".into(), "B".into()));
        // C begins before one other, D before none: 15 and 10.
        assert_eq!((ended(&mut workers, at(44)), ended(&mut workers, at(55))), (String::new(), "CD".into()));
    }

    #[test]
    fn faults_hold_for_what_is_begun_afterwards() {
        let mut workers = workers(1, TEN, Queue::Unbounded);
        "AB".chars().for_each(|job| workers.arrive(at(0), job).unwrap());
        workers.set_faults(3.0, 1.0);
        assert_eq!(workers.ended(at(10)), Some(('A', Outcome::Ok)));
        assert_eq!((workers.ended(at(39)), workers.ended(at(40))), (None, Some(('B', Outcome::Failed))));
    }
}
