//! The recloser crate: a breaker over a ring of results, without a mutex around its state.

use std::error::Error;

use super::HOUR;
use crate::contender::{Contender, Slice, timed};
use crate::start::Start;

/// The head of its column.
pub(crate) const NAME: &str = "recloser";

/// `call` with a function that does nothing. It offers no check without a result, but an open one makes
/// none.
pub(crate) struct Call(recloser::Recloser);

impl Call {
    pub(crate) fn closed() -> Self {
        Self(recloser::Recloser::custom().open_wait(HOUR).build())
    }

    /// One that opened just now, for an hour.
    pub(crate) fn open() -> Result<Self, Box<dyn Error>> {
        let breaker = Self::closed();
        for _ in 0..1_000 {
            let _ = breaker.0.call(|| Err::<(), ()>(()));
        }
        if breaker.serve() {
            return Err("failures did not open recloser's breaker".into());
        }
        Ok(breaker)
    }

    #[inline]
    fn serve(&self) -> bool {
        self.0.call(|| Ok::<(), ()>(())).is_ok()
    }
}

impl Contender for Call {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |_| self.serve())
    }
}
