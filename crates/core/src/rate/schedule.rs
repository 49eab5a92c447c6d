//! The arithmetic that token bucket, leaky bucket and smooth limiter share.
//!
//! All three remember one number for a key: `due`, the point on the quota's clock ([`Pace`]) up to which
//! its grants are already given away. What lies between now and `due` is how far the key is **ahead**.
//! An admission moves `due` on by its cost; idle time lets the clock catch up. The three differ only in
//! what they make of the number:
//!
//! | | refuses when | waits |
//! |---|---|---|
//! | token bucket | `ahead + cost` exceeds the burst | never |
//! | leaky bucket | `ahead + cost` exceeds one and the waiting room | what `ahead` exceeds the delay-free part by |
//! | smooth | `ahead`, without the cost, exceeds store and longest wait | what `ahead` exceeds the store by |
//!
//! **Giving back.** A charge is the stretch from `start` to `end` of the key's due time. Suppose a cost
//! of 3 was taken at 0 (stretch 0–3) and proves at 2 to have been 1. The clock has already passed 2 of
//! those 3; only the part from 2 to 3 is still to come, and only that is given back. Returning all of
//! the 2 units saved would grant the same time twice. A thread that gives back late does not know how much the clock
//! has passed. It takes what the key is ahead beyond what admissions alone can have brought it to for lateness: a key
//! in debt gets less back for that, and of a key that is less ahead, time may be given back that has just passed,
//! always less than the extent.
//!
//! **Debt.** A true cost above the estimate moves `due` on without asking, at most to [`DEBT`] times the
//! extent ahead. What is owed beyond that is forgiven, and so is what a thread settles that comes so late that the key
//! is further ahead of its moment already: how much of that is debt cannot be told.
//!
//! **Late threads and wrong clocks.** A thread may be put aside between reading its clock and asking; what
//! others did meanwhile then lies further ahead of *its* moment than it really is. With 1 unit of 1000 a
//! second, taken at 50 ms:
//!
//! | told  | due before | ahead   | verdict                                                  |
//! |-------|------------|---------|----------------------------------------------------------|
//! | 50 ms | 0 ms       | 0 ms    | admit, due 51 ms                                         |
//! | 10 ms | 51 ms      | 41 ms   | refuse, retry after 41 ms: late, and told so; due stays  |
//! | 50 ms | 51 ms      | 1 ms    | refuse, retry after 1 ms                                 |
//!
//! So what is ahead is believed up to all debts and [`SLACK`], and no answer moves `due` back. An admission
//! begins where the last one ended or later, and ends at most an extent after the moment it was told:
//! whatever the order of the moments, admissions are granted each stretch of time once. Only what lies further ahead
//! cannot be: the clock was set back, and the key then counts as having just spent everything. It gets no free
//! burst, and it waits no longer than a full bucket takes. A clock set back by less than the slack looks like
//! a late thread, and the key waits until the old time has returned.
//!
//! **Several rules.** Plans may share a counter, and rules are replaced. Whoever only reads what another rule wrote
//! sees all of it. An admission goes on in its own terms, and so little is ahead then that nothing is lost;
//! a correction is made in the terms of the rule that wrote the state, and a charge that another rule made gives
//! nothing back: the writer's clock may have granted it already, and others taken it. Once the rule of the charge has
//! written the state again, nothing tells what was granted in between, and that much is given back. Only when a rule
//! is replaced for good by one whose eight extents are less than what is owed, the rest is forgiven.

use std::time::Duration;

use super::pace::Pace;
use crate::units::{Cost, Invalid, LONGEST, Moment, Quota};
use crate::verdict::{Charge, Reason, Refusal, Retry, Usage, Verdict};

/// How many extents a key may be ahead at most, debts included. Eight leaves an estimate room to be
/// wrong by seven bursts and bounds how long a wrong estimate can silence its key.
const DEBT: u64 = 8;

/// How late a thread may come without the clock counting as set back, in nanoseconds: 69 seconds.
/// Longer than a process is stopped for a snapshot, a migration or a slow disk, and as long as a wrong clock may
/// silence a key beyond its quota. A power of two, so that tables can count it in beats.
pub(crate) const SLACK: u64 = 1 << 36;

/// Extents of packed schedules stay below this, so that [`DEBT`] of them leave three quarters of a signed
/// 32-bit number for the time that passes between two looks at a slot.
const PACKED_EXTENT: u64 = (1 << 26) - 1;

/// A rule that keeps one number a key. Implemented by the three algorithms of the family.
pub trait DueRule {
    /// Its arithmetic in ticks of a nanosecond.
    fn fine(&self) -> &Schedule;

    /// Its arithmetic in ticks coarse enough for the 32 bits that a packed table spends on a key:
    /// at most 30 billionths of the time in which the quota grants its whole burst. A cost is rounded up to whole
    /// grains, of a tick's worth to two: by less than 60 billionths of the burst.
    fn packed(&self) -> Schedule {
        self.fine().packed()
    }
}

/// What one rule makes of how far a key is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    pace: Pace,
    /// The furthest ahead an admission may be, in grains.
    extent: u64,
    /// The most a key can be ahead, debts included, in grains.
    most_ahead: u64,
    /// The most it can be ahead of the moment of a thread that comes late, in grains.
    most_credible: u64,
    /// How far ahead an admission may start without waiting, in grains.
    free: u64,
    /// How far ahead an admission may end for all three algorithms to admit it without a wait, in grains: what
    /// the usual request asks first.
    quick: u64,
    /// All ones where a request's own cost decides with what earlier ones took; zero where it may borrow, so
    /// that only what earlier ones took decides, and the next one pays.
    weighed: u64,
    /// What is refused when the extent is reached.
    reason: Reason,
    terms: Terms,
}

/// What the operator chose, from which schedules of either resolution are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) quota: Quota,
    /// What may be taken at once, or be waiting.
    pub(crate) room: Cost,
    /// The part of the room in which nobody waits.
    pub(crate) free: Cost,
    /// Time beyond the room for which a request may wait, where requests borrow.
    pub(crate) borrowing: Option<Duration>,
    pub(crate) reason: Reason,
}

impl Terms {
    /// Refuses a room, given as `field`, or a wait that would take longer than 400 days to drain.
    pub(crate) fn check(self, field: &'static str) -> Result<Self, Invalid> {
        let room = self.quota.with_burst(self.room).map_err(|problem| Invalid { field, ..problem })?;
        let extent = room.lead().saturating_add(self.borrowing.unwrap_or_default());
        if extent > LONGEST {
            let wait = format!("{:?}", self.borrowing.unwrap_or_default());
            return Err(Invalid::new("max_wait", wait, "at most 400 days, the burst's own time included"));
        }
        Ok(self)
    }
}

/// A quota's clock at one moment: when it was asked, and how much it had granted. A table that knows of
/// a later time may say that more was granted than the asker's own clock would.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) now: Moment,
    pub(crate) granted: u64,
}

/// What settling a charge changes, in grains.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Correction {
    /// The true cost was larger by this much.
    More(u64),
    /// The true cost was smaller, and this much of the difference is still to be given back.
    Less(u64),
}

impl Schedule {
    /// The schedule in ticks of a nanosecond.
    pub(crate) fn fine(terms: Terms) -> Self {
        Self::with_pace(terms, Pace::fine(&terms.quota))
    }

    /// The same schedule in the finest ticks that a packed slot can hold.
    pub(crate) fn packed(&self) -> Self {
        let mut shift = 0;
        loop {
            let schedule = Self::with_pace(self.terms, Pace::packed(&self.terms.quota, shift));
            if schedule.extent <= PACKED_EXTENT {
                return schedule;
            }
            shift += 1;
        }
    }

    fn with_pace(terms: Terms, pace: Pace) -> Self {
        let borrowed = terms.borrowing.map_or(0, |longest| pace.grains_in(longest));
        let extent = pace.grains(terms.room).saturating_add(borrowed);
        let free = pace.grains(terms.free);
        let most_ahead = extent.saturating_mul(DEBT);
        Self {
            extent,
            most_ahead,
            most_credible: most_ahead.saturating_add(pace.grains_in(Duration::from_nanos(SLACK))),
            free,
            quick: free.min(extent),
            weighed: if terms.borrowing.is_some() { 0 } else { u64::MAX },
            reason: terms.reason,
            pace,
            terms,
        }
    }

    /// The length of a tick, as a power of two of nanoseconds.
    pub(crate) const fn shift(&self) -> u32 {
        self.pace.shift()
    }

    /// The grains granted up to `now`: where a key that took nothing is due.
    #[inline]
    pub(crate) fn granted(&self, now: Moment) -> u64 {
        self.pace.granted(now)
    }

    /// The furthest ahead that admissions alone can bring a key.
    pub(crate) const fn extent(&self) -> u64 {
        self.extent
    }

    /// How far ahead nobody waits yet.
    pub(crate) const fn free(&self) -> u64 {
        self.free
    }

    /// The clock at `now`, for a packed schedule.
    #[inline]
    pub(crate) fn read_packed(&self, now: Moment) -> Reading {
        Reading { now, granted: self.pace.granted_packed(now) }
    }

    /// The clock at `now`, for a fine schedule.
    #[inline]
    pub(crate) fn read_fine(&self, now: Moment) -> Reading {
        Reading { now, granted: self.pace.granted_fine(now) }
    }

    /// The clock at `now`.
    #[inline]
    pub(crate) fn read(&self, now: Moment) -> Reading {
        Reading { now, granted: self.granted(now) }
    }

    /// How far `due` lies ahead of `granted`.
    #[inline]
    pub(crate) const fn ahead(&self, due: u64, granted: u64) -> u64 {
        self.readable(due.saturating_sub(granted))
    }

    /// What is too far ahead to be true reads as "just spent".
    #[inline]
    pub(crate) const fn readable(&self, ahead: u64) -> u64 {
        if self.is_readable(ahead) { ahead } else { self.extent }
    }

    /// Whether a key can really be so far ahead, perhaps of a thread that comes late. If not, the clock was set
    /// back, and whoever keeps the state must write down what it reads as, or the key would stay "just spent"
    /// until the old time.
    #[inline]
    pub(crate) const fn is_readable(&self, ahead: u64) -> bool {
        ahead <= self.most_credible
    }

    /// Whether a key can be so far ahead of a thread that is not late.
    pub(crate) const fn is_in_time(&self, ahead: u64) -> bool {
        ahead <= self.most_ahead
    }

    /// How many grains the clock must at least have granted since a moment of which a key is so far ahead.
    const fn overdue(&self, ahead: u64) -> u64 {
        ahead.saturating_sub(self.most_ahead)
    }

    /// What the clock must at least have granted when a key without debt is so far ahead of what it had `granted`:
    /// more, where that was read by a thread that comes late.
    pub(crate) const fn seen(&self, granted: u64, ahead: u64) -> u64 {
        // Who borrows starts at most an extent ahead, and may cost as much.
        let borrowed = self.extent & !self.weighed;
        let most = self.extent.saturating_add(borrowed);
        granted.saturating_add(ahead.saturating_sub(most))
    }

    /// The grains that `cost` takes.
    #[inline]
    pub(crate) fn grains(&self, cost: Cost) -> u64 {
        self.pace.grains(cost)
    }

    /// Asks for `cost` of a key that is `ahead`. A yes says how far ahead the key is then, and the wait.
    #[inline(always)]
    pub(crate) fn ask(&self, reading: Reading, ahead: u64, cost: Cost) -> Verdict<(u64, Duration)> {
        let grains = self.grains(cost);
        if let Some(after) = self.at_once(ahead, grains) {
            return Verdict::Admit((after, Duration::ZERO));
        }
        match self.refusal(reading, ahead, grains) {
            Some(refusal) => Verdict::Refuse(refusal),
            None => Verdict::Admit((ahead + grains, self.wait(reading, ahead))),
        }
    }

    /// How far ahead a key is once `grains` are taken, where they can be taken without a closer look.
    #[inline]
    pub(crate) const fn at_once(&self, ahead: u64, grains: u64) -> Option<u64> {
        let after = ahead + grains;
        if after <= self.quick { Some(after) } else { None }
    }

    /// Why `grains` cannot be taken from a key that is `ahead`, if they cannot.
    #[inline(always)]
    pub(crate) fn refusal(&self, reading: Reading, ahead: u64, grains: u64) -> Option<Refusal> {
        if grains > self.extent {
            return Some(Refusal { reason: Reason::CostAboveBurst, retry: Retry::Never });
        }
        // Without a branch, whether the request may borrow or not.
        let reach = ahead + (grains & self.weighed);
        let retry = || Retry::After(self.until(reading, reach - self.extent));
        (reach > self.extent).then(|| Refusal { reason: self.reason, retry: retry() })
    }

    #[inline(never)]
    fn wait(&self, reading: Reading, ahead: u64) -> Duration {
        match ahead.saturating_sub(self.free) {
            0 => Duration::ZERO,
            beyond => self.until(reading, beyond),
        }
    }

    /// What correcting a charge that ended at `end` comes to.
    pub(crate) fn correction(&self, granted: u64, end: u64, taken: Cost, true_cost: Cost) -> Correction {
        let (taken, true_cost) = (self.pace.grains(taken), self.pace.grains(true_cost));
        if true_cost >= taken {
            return Correction::More(true_cost - taken);
        }
        // Of before the clock was set back: what was taken then is no part of what the key is ahead now.
        if !self.is_readable(end.saturating_sub(granted)) {
            return Correction::Less(0);
        }
        let kept_until = end.saturating_sub(taken - true_cost).max(granted);
        Correction::Less(end.saturating_sub(kept_until))
    }

    /// How far ahead a key is once it has been corrected. A key that is further ahead than it can be is so of a
    /// late moment, and goes no further: nobody can tell how late, and several such debts would add up to the slack.
    pub(crate) fn corrected(&self, ahead: u64, correction: Correction) -> u64 {
        match correction {
            Correction::More(grains) => ahead.saturating_add(grains).min(self.most_ahead.max(ahead)),
            Correction::Less(grains) => ahead.saturating_sub(grains),
        }
    }

    /// How far ahead a key is under this schedule that is `ahead` under `before`: all of it, even where that is more
    /// than a key can be ahead here.
    pub(crate) fn carried(&self, before: &Self, ahead: u64) -> u64 {
        self.pace.grains(before.pace.cost(ahead))
    }

    /// How far ahead a key goes on under this schedule for good that was `ahead` under `before`: as much as a key
    /// can be ahead, of the moment or of the first one after it at which it can have been so far ahead before. What it
    /// owes beyond that could not be told from a clock set back, and is forgiven.
    pub(crate) fn carried_on(&self, before: &Self, ahead: u64) -> u64 {
        let late = before.pace.until(Moment::ORIGIN, before.overdue(ahead));
        let most = self.most_ahead.saturating_add(self.pace.grains_in(late));
        self.carried(before, ahead).min(most).min(self.most_credible)
    }

    /// How much a key that is `ahead` has used.
    pub(crate) fn usage(&self, reading: Reading, ahead: u64) -> Usage {
        let (limit, used) = (self.terms.room, self.pace.cost(ahead));
        Usage { limit, used, remaining: limit.minus(used), reset: self.until(reading, ahead) }
    }

    /// How long until the clock has granted this many more grains.
    #[inline(always)]
    fn until(&self, reading: Reading, grains: u64) -> Duration {
        self.pace.until(reading.now, reading.granted.saturating_add(grains))
    }
}

/// What one key has consumed: the point on the quota's clock up to which grants are given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due(u64);

impl Due {
    /// A key that is this many grains ahead of `granted`.
    pub(crate) const fn at(granted: u64, ahead: u64) -> Self {
        Self(granted.saturating_add(ahead))
    }
}

impl<R: DueRule + std::fmt::Debug> super::Algorithm for R {
    type Time = Moment;
    type State = Due;

    fn fresh(&self, now: Moment) -> Due {
        Due(self.fine().granted(now))
    }

    fn peek(&self, state: &Due, now: Moment, cost: Cost) -> Verdict<Duration> {
        let schedule = self.fine();
        let reading = schedule.read(now);
        schedule.ask(reading, schedule.ahead(state.0, reading.granted), cost).map(|(_, wait)| wait)
    }

    fn decide(&self, state: &mut Due, now: Moment, cost: Cost) -> Verdict<Charge> {
        let schedule = self.fine();
        let reading = schedule.read(now);
        let ahead = schedule.ahead(state.0, reading.granted);
        if !schedule.is_readable(state.0.saturating_sub(reading.granted)) {
            *state = Due::at(reading.granted, ahead);
        }
        schedule.ask(reading, ahead, cost).map(|(ahead, wait)| {
            *state = Due::at(reading.granted, ahead);
            Charge::new(cost, state.0).with_wait(wait)
        })
    }

    fn correct(&self, state: &mut Due, now: Moment, charge: &Charge, taken: Cost, true_cost: Cost) {
        let schedule = self.fine();
        let granted = schedule.granted(now);
        let ahead = schedule.ahead(state.0, granted);
        let seen = schedule.seen(granted, ahead);
        let correction = schedule.correction(seen, charge.mark, taken, true_cost);
        *state = Due::at(granted, schedule.corrected(ahead, correction));
    }

    fn usage(&self, state: &Due, now: Moment) -> Usage {
        let schedule = self.fine();
        let reading = schedule.read(now);
        schedule.usage(reading, schedule.ahead(state.0, reading.granted))
    }

    fn is_idle(&self, state: &Due, now: Moment) -> bool {
        state.0 <= self.fine().granted(now)
    }

    fn carry(&self, before: &Self, state: &mut Due, now: Moment) {
        let (schedule, before) = (self.fine(), before.fine());
        let ahead = before.ahead(state.0, before.granted(now));
        *state = Due::at(schedule.granted(now), schedule.carried_on(before, ahead));
    }
}
