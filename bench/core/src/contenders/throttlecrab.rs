//! The throttlecrab crate with the store its documentation begins with.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use throttlecrab::{AdaptiveStore, CellError, RateLimiter};

use crate::contender::{Contender, Mode, Slice, timed};
use crate::start::Start;
use crate::stream::{id, text};

/// It decides through `&mut self`, so two threads share it through a mutex, as its documentation says;
/// a single thread does not pay for one.
pub(crate) struct Throttlecrab {
    limiter: Mutex<RateLimiter<AdaptiveStore>>,
    mode: Mode,
}

impl Throttlecrab {
    /// The store is told its number of keys. Left at its default it sweeps the whole map on every
    /// insertion once the map is three quarters full.
    pub(crate) fn filled(keys: usize, mode: Mode) -> Result<Self, Box<dyn Error>> {
        let mut limiter = RateLimiter::new(AdaptiveStore::with_capacity(keys));
        for index in 0..keys {
            if !decide(&mut limiter, mode, &text(id(index)), i64::from(mode.first_cost()))? {
                return Err("throttlecrab refused a key's first cost".into());
            }
        }
        Ok(Self { limiter: Mutex::new(limiter), mode })
    }
}

impl Contender for Throttlecrab {
    fn name(&self) -> &'static str {
        "throttlecrab"
    }

    fn most_decisions(&self) -> usize {
        100_000
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        let keys: Vec<String> = ids.iter().copied().map(text).collect();
        timed(&keys, start, |key| {
            let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
            decide(&mut limiter, self.mode, key, 1).unwrap_or(false)
        })
    }

    fn alone(&mut self, ids: &[u64], start: &Start) -> Slice {
        let keys: Vec<String> = ids.iter().copied().map(text).collect();
        let limiter = self.limiter.get_mut().unwrap_or_else(PoisonError::into_inner);
        timed(&keys, start, |key| decide(limiter, self.mode, key, 1).unwrap_or(false))
    }
}

fn decide(
    limiter: &mut RateLimiter<AdaptiveStore>,
    mode: Mode,
    key: &str,
    cost: i64,
) -> Result<bool, CellError> {
    let period = i64::try_from(mode.window().as_secs()).unwrap_or(i64::MAX);
    let (burst, amount) = (i64::from(mode.burst()), i64::from(mode.amount()));
    limiter.rate_limit(key, burst, amount, period, cost, SystemTime::now()).map(|(is_allowed, _)| is_allowed)
}
