//! The connections an endpoint may have, over all workers, and who may hold how many of them.
//!
//! Callers who let the gateway wait, with an upload that does not come or an answer that they do not read, hold a
//! connection each. If all could be theirs, one of them with a thousand requests would keep everybody else out. So a
//! client address may hold no more connections than are free:
//!
//! | of 1000 connections, addresses that want all | each holds at most | free for others |
//! |----------------------------------------------|--------------------|-----------------|
//! | 1                                            | 500                | 500             |
//! | 2                                            | 333                | 333             |
//! | 9                                            | 100                | 100             |
//!
//! That needs no number of its own: it takes from an address only what others could want, and an address that comes later
//! always finds some until nearly as many addresses as connections want all they can get. Then, and for an address at its
//! share, the exchange whose caller is waited for the longest is [ended](super::exchange). IPv6 addresses of one network are
//! one address, as for rules. Trusted proxies that send for themselves are not held to it.
//!
//! What is counted is not the address but where its hash falls, so that it takes no memory for each: two addresses that fall
//! together share what one may hold. The hash is seeded, so nobody can fall together with somebody else on purpose.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tidegate_policy::policy::Server;
use tokio::sync::Notify;

use super::exchange::Exchanges;
use crate::files::{self, File};

/// How many requests wait for a connection to one endpoint; the next ones are refused at once.
const MOST_WAITING: usize = 1024;

/// How many of them may wait because their address holds its share, so that the others can wait too.
const MOST_WAITING_AT_SHARE: usize = 512;

/// How many counts there are for the addresses. Of so many that hold all they can, one in two thousand meets another.
const COUNTS: usize = 2048;

/// Who holds a connection, as the shares know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientShare(Option<u16>);

impl ClientShare {
    /// Held to no share.
    pub(crate) const FREE: Self = Self(None);

    /// That of an address.
    pub(crate) fn of(server: &Server, address: IpAddr) -> Self {
        static SEED: OnceLock<RandomState> = OnceLock::new();
        let hash = SEED.get_or_init(RandomState::new).hash_one(server.network_of(address));
        Self(u16::try_from(hash % COUNTS as u64).ok())
    }
}

/// The connections an endpoint may have, and the requests that wait for one.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    /// Those that are there or being made.
    taken: AtomicUsize,
    /// Those that a request has, or is about to get.
    busy: AtomicUsize,
    /// The same for each address.
    held: Box<[AtomicU16]>,
    waiting: AtomicUsize,
    /// Told whenever a connection is free or has ended: those who found none, and those whose address holds its share.
    freed: Notify,
    freed_for_full: Notify,
    pub(super) exchanges: Exchanges,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            held: (0..COUNTS).map(|_| AtomicU16::new(0)).collect(),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
            freed_for_full: Notify::new(),
            exchanges: Exchanges::default(),
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// One more connection is free, or may be made.
    pub(super) fn tell(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.freed.notify_one();
            self.freed_for_full.notify_one();
        }
    }

    /// A connection was made that carries many requests.
    pub(super) fn tell_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.freed.notify_waiters();
            self.freed_for_full.notify_waiters();
        }
    }

    /// Told when it is worth to look again.
    pub(super) const fn freed(&self, is_at_share: bool) -> &Notify {
        if is_at_share { &self.freed_for_full } else { &self.freed }
    }

    fn count_of(&self, client: ClientShare) -> Option<&AtomicU16> {
        self.held.get(usize::from(client.0?))
    }

    /// Counts a connection for an address; none if that holds its share. The first one of an address is always counted.
    pub(super) fn turn(&self, client: ClientShare) -> Option<Turn<'_>> {
        let busy = self.busy.fetch_add(1, Ordering::Relaxed);
        let held = self.count_of(client).map_or(0, |count| count.fetch_add(1, Ordering::Relaxed));
        let turn = Turn { places: self, client, is_kept: false };
        let is_at_share = held > 0 && usize::from(held) >= self.most.saturating_sub(busy);
        (!is_at_share).then_some(turn)
    }

    fn end_turn(&self, client: ClientShare) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
        if let Some(count) = self.count_of(client) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The right of an address to one more connection.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    places: &'a Places,
    client: ClientShare,
    is_kept: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.places.end_turn(self.client);
        }
    }
}

/// One of the connections. It knows of no endpoint, so that the connections an endpoint holds do not hold the endpoint.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    /// For whom it is in use.
    holder: Option<ClientShare>,
    file: Option<File>,
}

impl Place {
    pub(super) fn take(places: &Arc<Places>) -> Option<Self> {
        let file = files::try_upstream()?;
        let more = |taken| (taken < places.most).then_some(taken + 1);
        let taken = places.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Self { places: Arc::clone(places), holder: None, file: Some(file) })
    }

    /// It is in use from now on.
    pub(super) fn hold(&mut self, mut turn: Turn<'_>) {
        turn.is_kept = true;
        self.holder = Some(turn.client);
    }

    /// It is not in use any more.
    pub(super) fn release(&mut self) {
        if let Some(client) = self.holder.take() {
            self.places.end_turn(client);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.release();
        // Before the others are told that it is free.
        drop(self.file.take());
        self.places.taken.fetch_sub(1, Ordering::Relaxed);
        self.places.tell();
    }
}

/// A request that waits for a connection.
pub(super) struct Waiting<'a>(&'a Places);

impl<'a> Waiting<'a> {
    pub(super) fn begin(places: &'a Places, is_at_share: bool) -> Option<Self> {
        let most = if is_at_share { MOST_WAITING_AT_SHARE } else { MOST_WAITING };
        let more = |waiting| (waiting < most).then_some(waiting + 1);
        places.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(places))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many connections each of some addresses gets when they ask in turn for as many as they can get.
    fn shares(most: usize, addresses: u16) -> Vec<usize> {
        let places = Places::new(most);
        let mut turns: Vec<Vec<Turn<'_>>> = (0..addresses).map(|_| Vec::new()).collect();
        for _ in 0..most {
            for (number, turns) in (0..).zip(&mut turns) {
                turns.extend(places.turn(ClientShare(Some(number))));
            }
        }
        turns.iter().map(Vec::len).collect()
    }

    #[test]
    fn an_address_holds_no_more_than_are_free() {
        assert_eq!(shares(1000, 1), [500]);
        assert_eq!(shares(1000, 2), [334, 333]);
        assert_eq!(shares(1000, 9), [100; 9]);
        assert_eq!([1, 2, 3].map(|most| shares(most, 1)), [[1], [1], [2]]);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let places = Arc::new(Places::new(4));
        let client = ClientShare(Some(7));
        let (first, second) = (places.turn(client), places.turn(client));
        assert!(first.is_some() && second.is_some() && places.turn(client).is_none());
        let mut place = Place::take(&places).unwrap();
        place.hold(first.unwrap());
        assert!(places.turn(client).is_none());
        drop(place);
        assert!(places.turn(client).is_some());
        assert!((0..9).all(|_| places.turn(ClientShare::FREE).is_some()), "not held to a share");
    }

    #[test]
    fn addresses_of_one_ipv6_network_share() {
        let server = Server::default();
        let share = |address: &str| ClientShare::of(&server, address.parse().unwrap());
        assert_eq!(share("2001:db8::1"), share("2001:db8::2"));
        assert_eq!(share("::ffff:192.0.2.1"), share("192.0.2.1"));
    }
}
