//! The governor crate: keyed as shipped, keyed with our hasher, and without keys.

use std::error::Error;
use std::num::NonZeroU32;

use foldhash::quality::FixedState;
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::contender::{Contender, Mode, Slice, timed};
use crate::start::Start;
use crate::stream::id;

/// `RateLimiter::keyed`: DashMap, the standard library's SipHash, the quanta clock.
pub(crate) struct AsShipped(DefaultKeyedRateLimiter<u64>);

/// The same with foldhash, which is the hasher of our table.
pub(crate) struct SameHasher(RateLimiter<u64, DashMapStateStore<u64, FixedState>, DefaultClock>);

/// `RateLimiter::direct`: one counter.
pub(crate) struct Direct(DefaultDirectRateLimiter);

impl AsShipped {
    pub(crate) fn filled(keys: usize, mode: Mode) -> Result<Self, Box<dyn Error>> {
        let limiter = RateLimiter::keyed(quota(mode)?);
        let cost = some(mode.first_cost())?;
        for index in 0..keys {
            limiter.check_key_n(&id(index), cost)?.map_err(|refusal| refusal.to_string())?;
        }
        Ok(Self(limiter))
    }
}

impl SameHasher {
    pub(crate) fn filled(keys: usize, mode: Mode) -> Result<Self, Box<dyn Error>> {
        let limiter = RateLimiter::dashmap_with_hasher(quota(mode)?, FixedState::with_seed(0x5EED));
        let cost = some(mode.first_cost())?;
        for index in 0..keys {
            limiter.check_key_n(&id(index), cost)?.map_err(|refusal| refusal.to_string())?;
        }
        Ok(Self(limiter))
    }
}

impl Direct {
    pub(crate) fn spent(mode: Mode) -> Result<Self, Box<dyn Error>> {
        let limiter = RateLimiter::direct(quota(mode)?);
        limiter.check_n(some(mode.first_cost())?)?.map_err(|refusal| refusal.to_string())?;
        Ok(Self(limiter))
    }
}

impl Contender for AsShipped {
    fn name(&self) -> &'static str {
        "governor as shipped"
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |id| self.0.check_key(id).is_ok())
    }
}

impl Contender for SameHasher {
    fn name(&self) -> &'static str {
        "governor, our hasher"
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |id| self.0.check_key(id).is_ok())
    }
}

impl Contender for Direct {
    fn name(&self) -> &'static str {
        "governor direct"
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |_| self.0.check().is_ok())
    }
}

fn quota(mode: Mode) -> Result<Quota, Box<dyn Error>> {
    let quota =
        Quota::with_period(mode.window() / mode.amount()).ok_or("governor wants a period above zero")?;
    Ok(quota.allow_burst(some(mode.burst())?))
}

fn some(number: u32) -> Result<NonZeroU32, Box<dyn Error>> {
    NonZeroU32::new(number).ok_or_else(|| "governor wants numbers above zero".into())
}
