//! A count that goes up and down again, and nothing else: the least that anybody who counts what is in flight
//! in one shared word has to pay.

use std::sync::atomic::{AtomicU64, Ordering};

use super::clock::Quanta;
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
