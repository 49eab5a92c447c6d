//! The limitador crate: its blocking limiter over its in-memory storage.

use std::collections::HashMap;
use std::error::Error;

use limitador::RateLimiter;
use limitador::limit::{Context, Limit, Namespace};

use crate::contender::{Contender, Mode, Slice};
use crate::start::Start;
use crate::stream::{id, text};

/// One limit whose counters are told apart by the variable `key`.
pub(crate) struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

/// Contexts prepared at a time, outside of the timing: few enough to stay in the cache.
const PREPARED: usize = 128;

impl Limitador {
    pub(crate) fn filled(keys: usize, mode: Mode) -> Result<Self, Box<dyn Error>> {
        // A quarter more than the keys, so that its cache never has to choose whom to forget.
        let limiter = RateLimiter::new(u64::try_from(keys + keys / 4 + 64)?);
        let namespace = Namespace::from("bench");
        // A fixed window: the burst is all it knows, and it comes back when the window ends.
        let window = mode.window().as_secs() * u64::from(mode.burst()) / u64::from(mode.amount());
        let variables = vec!["key".try_into()?];
        limiter.add_limit(Limit::new(namespace.clone(), u64::from(mode.burst()), window, vec![], variables));
        for index in 0..keys {
            let first = u64::from(mode.first_cost());
            if limiter.check_rate_limited_and_update(&namespace, &context(id(index)), first)?.limited {
                return Err("limitador refused a key's first cost".into());
            }
        }
        Ok(Self { limiter, namespace })
    }
}

impl Contender for Limitador {
    fn name(&self) -> &'static str {
        "limitador"
    }

    fn most_decisions(&self) -> usize {
        20_000
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        start.wait();
        let mut slice = Slice::default();
        for ids in ids.chunks(PREPARED) {
            let contexts: Vec<Context<'_>> = ids.iter().copied().map(context).collect();
            let watch = start.watch();
            for context in &contexts {
                let answer = self.limiter.check_rate_limited_and_update(&self.namespace, context, 1);
                slice.admitted += usize::from(answer.is_ok_and(|answer| !answer.limited));
            }
            slice.elapsed += watch.elapsed();
        }
        slice
    }
}

fn context(id: u64) -> Context<'static> {
    HashMap::from([("key".to_owned(), text(id))]).into()
}
