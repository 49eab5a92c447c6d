//! A count that goes up and down again, and nothing else: the least that anybody who counts what is in flight
//! in one shared word has to pay.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use super::clock::Quanta;
use super::ours::places;
use crate::contender::{Contender, Slice, timed};
use crate::start::Start;

/// The head of its column.
pub(crate) const NAME: &str = "bare count";

/// The count, and the clock, read when a request comes and when it ends.
#[derive(Default)]
pub(crate) struct BareCount {
    in_flight: AtomicU64,
    clock: Quanta,
}

/// The same, with only the way up on the watch.
#[derive(Default)]
pub(crate) struct BareRise(BareCount);

impl Contender for BareRise {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        let BareCount { in_flight, clock } = &self.0;
        let mut slice = Slice::default();
        start.wait();
        for ids in ids.chunks(places::AT_ONCE) {
            let watch = start.watch();
            for _ in ids {
                black_box(clock.nanos());
                slice.admitted += usize::from(in_flight.fetch_add(1, Ordering::Relaxed) < u64::MAX / 2);
            }
            slice.elapsed += watch.elapsed();
            for _ in ids {
                black_box(clock.nanos());
                in_flight.fetch_sub(1, Ordering::Relaxed);
            }
        }
        slice
    }
}

impl Contender for BareCount {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |_| {
            let came = self.clock.nanos();
            self.in_flight.fetch_add(1, Ordering::Relaxed);
            let ended = self.clock.nanos();
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            came <= ended
        })
    }
}
