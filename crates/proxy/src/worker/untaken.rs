//! Answers that their callers do not take, over all connections.
//!
//! What waits on one connection is bounded, by [`held`](crate::connection) over HTTP/2 and by what is read at once over
//! HTTP/1. But there are many connections. Where more waits than may in all, the connections end whose callers have taken
//! nothing for longest: theirs are the answers that wait in vain.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::connection::watch::Watch;

/// How much may wait on all connections: a caller on a bad line holds a piece of 64 KiB, and this is enough for four
/// thousand of them.
pub(super) const MOST: usize = 256 * 1024 * 1024;

/// A caller that has taken something within so many milliseconds does not wait in vain.
const LATELY: u64 = 1000;

/// The connections to be ended so that no more than `most` waits, of those that have taken nothing lately.
pub(super) fn in_vain<'a>(
    connections: impl Iterator<Item = &'a Arc<Watch>>,
    most: usize,
    now: u64,
) -> Vec<&'a Arc<Watch>> {
    let waiting: Vec<_> = connections.filter(|watch| watch.held() > 0).collect();
    let mut held = waiting.iter().map(|watch| watch.held()).sum::<usize>();
    if held <= most {
        return Vec::new();
    }
    let mut stalled: Vec<_> = waiting
        .into_iter()
        .map(|watch| (watch.untaken_for(now), watch))
        .filter(|(so, _)| *so >= LATELY)
        .collect();
    stalled.sort_by_key(|(so, _)| Reverse(*so));
    let is_needed = |watch: &&Arc<Watch>| {
        let is_above = held > most;
        held = held.saturating_sub(watch.held());
        is_above
    };
    stalled.into_iter().map(|(_, watch)| watch).take_while(is_needed).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_core::WallTime;
    use tidegate_policy::Now;

    use super::*;
    use crate::ticks::Ticks;

    /// Connections that hold a hundred bytes each, and began to wait a second apart.
    fn connections(count: u64) -> (Arc<Ticks>, Vec<Arc<Watch>>) {
        let begun = Now::default();
        let ticks = Arc::new(Ticks::new(begun));
        let connect = |second| {
            let moment = begun.moment.plus(Duration::from_secs(second));
            ticks.renew(Now { moment, wall: WallTime::from_unix_nanos(0) });
            let watch = Arc::new(Watch::new(Arc::clone(&ticks)));
            watch.holds(100);
            watch
        };
        let all = (0..count).map(connect).collect();
        (ticks, all)
    }

    fn ended(ticks: &Ticks, all: &[Arc<Watch>], most: usize) -> Vec<usize> {
        let chosen = in_vain(all.iter(), most, ticks.now());
        let place = |watch: &Arc<Watch>| all.iter().position(|one| Arc::ptr_eq(one, watch)).unwrap();
        chosen.into_iter().map(place).collect()
    }

    #[test]
    fn those_that_have_waited_longest_end_until_there_is_room() {
        let (ticks, all) = connections(6);
        assert!(ended(&ticks, &all, 600).is_empty());
        assert_eq!(ended(&ticks, &all, 599), [0]);
        assert_eq!(ended(&ticks, &all, 300), [0, 1, 2]);
    }

    #[test]
    fn nobody_ends_who_has_just_taken_something() {
        let (ticks, all) = connections(6);
        all[0].lets_go(50);
        assert_eq!(ended(&ticks, &all, 0), [1, 2, 3, 4], "the last has only begun");
    }
}
