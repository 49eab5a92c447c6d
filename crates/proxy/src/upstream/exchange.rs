//! Exchanges that wait for their callers, and which of them is ended when connections run out.
//!
//! A caller that sends a byte of its upload now and then, or takes a byte of its answer, is within every time limit and
//! keeps a connection as long as it likes. As long as there are others, nobody minds. When a request finds none, the
//! exchange that owes most is ended, if it owes half a second at least:
//!
//! | while its caller      | it owes |
//! |-----------------------|---------|
//! | is waited for         | a millisecond more for each |
//! | sends, or takes, n bytes | n/4 milliseconds less, and never less than nothing |
//! | waits for the service | neither |
//!
//! So a caller that moves 4 KiB a second never owes more than its last pause, however long it takes in all, and nothing
//! can be saved up for a pause to come. An upload is answered 408; an answer that has begun is cut off.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use super::RequestBody;
use super::http1::{Connection, Stream};
use super::lane::Held;
use super::places::ClientShare;
use crate::ticks::Ticks;

/// What an exchange must owe to be ended, in milliseconds: twice what a worker may be late to tell the time.
const LEAST_OWED: u64 = 500;

/// How many bytes make up for a millisecond.
const BYTES_PER_MILLI: u64 = 4;

/// No tick: it waits for nobody.
const NEVER: u64 = u64::MAX;

/// Below so many exchanges nobody looks for those that are gone.
const FEW: usize = 64;

/// What is waited for.
enum Awaited {
    /// The rest of an upload; who is told when it is ended.
    Upload(Option<Waker>),
    /// That an answer is taken; the connection it comes over, until it is ended.
    Answer(Option<Box<Held>>),
}

impl fmt::Debug for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Upload(_)) { "Upload" } else { "Answer" })
    }
}

/// A request with its answer, as far as its caller keeps the connection to the service waiting. Relaxed throughout: the
/// clock it is told is a quarter of a second late as it is.
#[derive(Debug)]
pub(crate) struct Exchange {
    ticks: Arc<Ticks>,
    client: ClientShare,
    owed: AtomicU64,
    /// Since when its caller is waited for.
    since: AtomicU64,
    is_ended: AtomicBool,
    awaited: Mutex<Awaited>,
}

impl Exchange {
    /// That of a request whose body is still coming.
    pub(crate) fn upload(ticks: &Arc<Ticks>, client: ClientShare) -> Arc<Self> {
        Self::new(ticks, client, NEVER, Awaited::Upload(None))
    }

    /// That of an answer whose body has not all come.
    pub(super) fn answer(ticks: &Arc<Ticks>, client: ClientShare, held: Box<Held>) -> Arc<Self> {
        Self::new(ticks, client, ticks.now(), Awaited::Answer(Some(held)))
    }

    fn new(ticks: &Arc<Ticks>, client: ClientShare, since: u64, awaited: Awaited) -> Arc<Self> {
        Arc::new(Self {
            ticks: Arc::clone(ticks),
            client,
            owed: AtomicU64::new(0),
            since: AtomicU64::new(since),
            is_ended: AtomicBool::new(false),
            awaited: Mutex::new(awaited),
        })
    }

    /// Whether it was ended for others.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is asked of the connection an answer comes over, unless that was ended.
    pub(super) fn with_connection<T>(
        &self,
        ask: impl FnOnce(&mut Connection<Stream, RequestBody>) -> T,
    ) -> Option<T> {
        match &mut *self.awaited() {
            Awaited::Answer(Some(held)) => Some(ask(&mut held.connection)),
            Awaited::Answer(None) | Awaited::Upload(_) => None,
        }
    }

    /// The connection an answer came over, unless that was ended.
    pub(super) fn take_connection(&self) -> Option<Box<Held>> {
        match &mut *self.awaited() {
            Awaited::Answer(held) => held.take(),
            Awaited::Upload(_) => None,
        }
    }

    /// The rest of its upload is waited for from now on; this one is told when it is ended.
    pub(super) fn waits_for_upload(&self, who: &Waker) {
        if let Awaited::Upload(waker) = &mut *self.awaited()
            && !waker.as_ref().is_some_and(|known| known.will_wake(who))
        {
            *waker = Some(who.clone());
        }
        self.waits();
        // It may have been ended just before, when nobody was known who could be told.
        if self.is_ended() {
            who.wake_by_ref();
        }
    }

    /// Its caller is waited for from now on.
    pub(super) fn waits(&self) {
        if self.since.load(Ordering::Relaxed) == NEVER {
            self.since.store(self.ticks.now(), Ordering::Relaxed);
        }
    }

    /// Its caller is not waited for any more.
    pub(super) fn waits_no_more(&self) {
        let since = self.since.swap(NEVER, Ordering::Relaxed);
        if since != NEVER {
            let waited = self.ticks.now().saturating_sub(since);
            if waited > 0 {
                self.owed.fetch_add(waited, Ordering::Relaxed);
            }
        }
    }

    /// Its caller sent, or was given, so many bytes.
    pub(super) fn moved(&self, bytes: usize) {
        let owed = self.owed.load(Ordering::Relaxed);
        if owed > 0 {
            self.owed.store(owed.saturating_sub(bytes as u64 / BYTES_PER_MILLI), Ordering::Relaxed);
        }
    }

    /// What it owes by now, if its caller is waited for.
    fn owed(&self, now: u64) -> Option<u64> {
        let since = self.since.load(Ordering::Relaxed);
        let is_waiting = since != NEVER && !self.is_ended();
        is_waiting.then(|| self.owed.load(Ordering::Relaxed).saturating_add(now.saturating_sub(since)))
    }

    fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        let mut awaited = self.awaited();
        match &mut *awaited {
            Awaited::Upload(waker) => {
                let waker = waker.take();
                drop(awaited);
                waker.into_iter().for_each(Waker::wake);
            }
            Awaited::Answer(held) => {
                let held = held.take();
                // The connection is closed, which tells others, while nothing is locked.
                drop(awaited);
                drop(held);
            }
        }
    }
}

/// The exchanges over an endpoint's connections that may have to wait for their callers: twice as many as there are
/// connections at most, and as many again that are gone.
#[derive(Debug, Default)]
pub(super) struct Exchanges(Mutex<Listed>);

#[derive(Debug, Default)]
struct Listed {
    all: Vec<Weak<Exchange>>,
    /// How many there were, at most, when those that are gone were last let go of.
    tidied_at: usize,
}

impl Exchanges {
    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, exchange: &Arc<Exchange>) {
        let mut listed = self.lock();
        if listed.all.len() >= listed.tidied_at.max(FEW) {
            listed.all.retain(|exchange| exchange.strong_count() > 0);
            listed.tidied_at = listed.all.len() * 2;
        }
        listed.all.push(Arc::downgrade(exchange));
    }

    /// Ends the one that owes most, of one address or of all.
    pub(super) fn end_most_stalled(&self, of: Option<ClientShare>, now: u64) {
        let most = {
            let listed = self.lock();
            let live = listed.all.iter().filter_map(Weak::upgrade);
            let its = live.filter(|exchange| of.is_none_or(|client| exchange.client == client));
            let owing = its.filter_map(|exchange| Some((exchange.owed(now)?, exchange)));
            owing.filter(|(owed, _)| *owed >= LEAST_OWED).max_by_key(|(owed, _)| *owed)
        };
        if let Some((_, exchange)) = most {
            exchange.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Moment, WallTime};
    use tidegate_policy::Now;

    use super::*;

    fn at(millis: u64) -> Now {
        let nanos = millis * 1_000_000;
        Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) }
    }

    fn upload(ticks: &Arc<Ticks>) -> Arc<Exchange> {
        Exchange::upload(ticks, ClientShare::FREE)
    }

    #[test]
    fn who_moves_four_kibibytes_a_second_owes_no_more_than_its_last_pause() {
        let ticks = Arc::new(Ticks::new(at(0)));
        let (steady, dripping) = (upload(&ticks), upload(&ticks));
        for second in 1..=60 {
            [&steady, &dripping].into_iter().for_each(|exchange| exchange.waits());
            ticks.renew(at(second * 1_000));
            [&steady, &dripping].into_iter().for_each(|exchange| exchange.waits_no_more());
            steady.moved(4_096);
            dripping.moved(1);
        }
        [&steady, &dripping].into_iter().for_each(|exchange| exchange.waits());
        assert_eq!([&steady, &dripping].map(|exchange| exchange.owed(60_100)), [Some(100), Some(60_100)]);
    }

    #[test]
    fn nothing_is_saved_up() {
        let ticks = Arc::new(Ticks::new(at(0)));
        let exchange = upload(&ticks);
        exchange.moved(1 << 30);
        exchange.waits();
        assert_eq!(exchange.owed(2_000), Some(2_000));
        exchange.waits_no_more();
        assert_eq!(exchange.owed(2_000), None, "it waits for the service");
    }

    #[test]
    fn the_one_that_owes_most_is_ended_and_none_that_owes_little() {
        let (ticks, exchanges) = (Arc::new(Ticks::new(at(0))), Exchanges::default());
        let all: Vec<_> = (0..100).map(|_| upload(&ticks)).collect();
        for (number, exchange) in (0..).zip(&all) {
            ticks.renew(at(number * 10));
            exchange.waits();
            exchanges.add(exchange);
        }
        exchanges.end_most_stalled(None, 499);
        assert!(all.iter().all(|exchange| !exchange.is_ended()));
        for _ in 0..3 {
            exchanges.end_most_stalled(None, 1_000);
        }
        let ended = all.iter().take_while(|exchange| exchange.is_ended()).count();
        assert_eq!((ended, all.iter().filter(|exchange| exchange.is_ended()).count()), (3, 3));
        let other = ClientShare::of(&tidegate_policy::policy::Server::default(), [127, 0, 0, 1].into());
        exchanges.end_most_stalled(Some(other), 1_000);
        assert_eq!(all.iter().filter(|exchange| exchange.is_ended()).count(), 3);
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let (ticks, exchanges) = (Arc::new(Ticks::new(at(0))), Exchanges::default());
        let kept = upload(&ticks);
        exchanges.add(&kept);
        for _ in 0..10_000 {
            exchanges.add(&upload(&ticks));
        }
        assert!(exchanges.lock().all.len() <= FEW);
    }
}
