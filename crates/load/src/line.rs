//! Where requests wait for a connection.
//!
//! The line is bounded, because a server that hangs would otherwise fill the memory of the machine that measures
//! it. Who does not fit is told at once, and counted by the caller; nobody vanishes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::arrivals::Arrival;

#[derive(Debug)]
pub(crate) struct Line {
    bound: usize,
    state: Mutex<State>,
    arrived: Notify,
    /// Tells that more wait than there are free lanes.
    behind: Notify,
}

/// When a lane is asked to take the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// In turn with the others.
    Regular,
    /// When those are all busy.
    Relief,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arrival>,
    /// How many of the regular lanes wait for a request, or have been woken and not looked yet.
    free: usize,
    is_closed: bool,
}

impl State {
    fn is_behind(&self) -> bool {
        self.waiting.len() > self.free
    }
}

/// What a lane takes from the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The lane was free when it came: whatever passed since it was due is the generator's own delay.
    AtOnce(Arrival),
    /// It had to wait until this lane was free.
    Waited(Arrival),
}

impl Line {
    pub(crate) fn new(bound: usize) -> Self {
        Self { bound, state: Mutex::default(), arrived: Notify::new(), behind: Notify::new() }
    }

    /// Puts it at the end; gives it back when there is no room.
    pub(crate) fn join(&self, arrival: Arrival) -> Result<(), Arrival> {
        let mut state = self.state();
        if state.waiting.len() >= self.bound {
            return Err(arrival);
        }
        state.waiting.push_back(arrival);
        self.wake(&state);
        Ok(())
    }

    /// Wakes a lane for one that waits.
    fn wake(&self, state: &State) {
        // The one that has waited longest: connections take turns, as those of many callers would.
        self.arrived.notify_one();
        if state.is_behind() {
            self.behind.notify_one();
        }
    }

    /// Takes the first, as soon as there is one; none when the line is closed and empty.
    pub(crate) async fn take(&self, turn: Turn) -> Option<Taken> {
        let (signal, counted) = match turn {
            Turn::Regular => (&self.arrived, 1),
            Turn::Relief => (&self.behind, 0),
        };
        let mut was_free = false;
        loop {
            // Made before looking: whoever closes the line afterwards wakes it.
            let arrived = signal.notified();
            {
                let mut state = self.state();
                if was_free {
                    state.free -= counted;
                }
                if let Some(arrival) = state.waiting.pop_front() {
                    if !state.waiting.is_empty() {
                        // Several that came while nobody was listening left only one signal.
                        self.wake(&state);
                    }
                    return Some(if was_free { Taken::AtOnce(arrival) } else { Taken::Waited(arrival) });
                }
                if state.is_closed {
                    return None;
                }
                state.free += counted;
            }
            arrived.await;
            was_free = true;
        }
    }

    /// Lets nobody wait for more.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.arrived.notify_waiters();
        self.behind.notify_waiters();
    }

    /// Empties it.
    pub(crate) fn clear(&self) -> VecDeque<Arrival> {
        std::mem::take(&mut self.state().waiting)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn arrival(key: u64) -> Arrival {
        Arrival { due: Duration::ZERO, class: 0, key }
    }

    #[tokio::test]
    async fn first_come_first_served_and_nobody_vanishes() {
        let line = Line::new(2);
        assert_eq!(line.join(arrival(1)), Ok(()));
        assert_eq!(line.join(arrival(2)), Ok(()));
        assert_eq!(line.join(arrival(3)), Err(arrival(3)));
        assert_eq!(line.take(Turn::Regular).await, Some(Taken::Waited(arrival(1))));
        line.close();
        assert_eq!(line.take(Turn::Regular).await, Some(Taken::Waited(arrival(2))));
        assert_eq!(line.take(Turn::Regular).await, None);
    }

    #[tokio::test]
    async fn a_free_lane_is_woken_by_the_next_and_by_the_end() {
        let line = Line::new(2);
        let (taken, ()) = tokio::join!(line.take(Turn::Regular), async { line.join(arrival(1)).unwrap() });
        assert_eq!(taken, Some(Taken::AtOnce(arrival(1))));
        let (first, second, ()) =
            tokio::join!(line.take(Turn::Regular), line.take(Turn::Regular), async { line.close() });
        assert_eq!((first, second), (None, None));
    }

    #[tokio::test]
    async fn relief_comes_only_for_those_whom_no_free_lane_can_take() {
        let line = Line::new(3);
        let busy = async { (line.take(Turn::Regular).await, std::future::pending::<()>().await) };
        let callers = async {
            line.join(arrival(1)).unwrap();
            tokio::task::yield_now().await;
            line.join(arrival(2)).unwrap();
            std::future::pending::<()>().await;
        };
        // The first is for the lane that is free; the second comes while that is busy.
        let relief = line.take(Turn::Relief);
        let taken =
            tokio::select! { biased; taken = relief => taken, _ = busy => None, () = callers => None };
        assert_eq!(taken, Some(Taken::AtOnce(arrival(2))));
    }

    #[tokio::test]
    async fn two_at_once_need_no_relief_while_two_lanes_are_free() {
        let line = Line::new(3);
        let regular = || line.take(Turn::Regular);
        let callers = async { (1..=2).for_each(|key| line.join(arrival(key)).unwrap()) };
        let all = async { tokio::join!(regular(), regular(), callers) };
        let (first, second, ()) = tokio::select! {
            biased;
            taken = line.take(Turn::Relief) => panic!("{taken:?} was taken by relief"),
            all = all => all,
        };
        let all = [Some(Taken::AtOnce(arrival(1))), Some(Taken::AtOnce(arrival(2)))];
        assert!([[first, second], [second, first]].contains(&all), "{first:?}, {second:?}");
    }

    #[test]
    fn what_is_left_can_be_counted() {
        let line = Line::new(5);
        (0..3).for_each(|key| line.join(arrival(key)).unwrap());
        assert_eq!(line.clear().len(), 3);
        assert_eq!(line.clear().len(), 0);
    }
}
