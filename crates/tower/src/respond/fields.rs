//! The `RateLimit-Policy` and `RateLimit` fields: what a caller may use, and what is left of it.
//!
//! After draft-ietf-httpapi-ratelimit-headers-11. Both are lists with one item a rule:
//!
//! ```text
//! RateLimit-Policy: "per_key";q=20;w=2
//! RateLimit: "per_key";r=7;t=2
//! ```
//!
//! `q` units come back within `w` seconds; `r` units are left, and after `t` seconds all are back. The draft
//! thinks in windows. A token bucket of 10 a second with burst 20 has none; the honest translation is that 20
//! can be had at once and that an empty bucket is full again after 2 seconds. Seconds are rounded up and units
//! down, so whoever believes the fields is never refused for it.
//!
//! On a refusal `t` is what `Retry-After` says: the caller has one time to wait, not two.
//!
//! A service behind the gate may have fields of its own, for limits of its own. Ours are added below them.

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_core::WallTime;
use tidegate_policy::policy::{LegacyReset, Limit, Settle};
use tidegate_policy::{Standing, Standings};

use super::detail::whole_seconds;
use super::sheet::{Blank, Sheet, Text};
use super::structured::List;

pub(crate) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub(crate) const STATE: HeaderName = HeaderName::from_static("ratelimit");
const LEGACY_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const LEGACY_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LEGACY_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// What `RateLimit-Policy` says of the rules that callers may know of.
pub(crate) fn policy(sheet: &mut Sheet, standings: &Standings<'_>) -> Option<HeaderValue> {
    let mut policy = List::on(sheet);
    for (_, standing) in told(standings) {
        policy.item(&standing.rule.name).integer(";q=", standing.limit.whole());
        if let Some(unit) = unit(standing) {
            policy.string(";qu=", unit);
        }
        // Places in flight come back when work ends, which no length of time describes.
        if !standing.is_concurrency {
            policy.integer(";w=", whole_seconds(standing.window).max(1));
        }
    }
    policy.finish()
}

/// What `RateLimit` says of them, with blanks for the numbers; `names_retry` where `Retry-After` is said.
pub(crate) fn state(sheet: &mut Sheet, standings: &Standings<'_>, names_retry: bool) -> Text {
    let mut state = List::on(sheet);
    for (number, standing) in told(standings) {
        state.item(&standing.rule.name).blank(";r=", Blank::Remaining(number));
        if names_retry || !standing.is_concurrency {
            state.blank(";t=", Blank::Until(number));
        }
    }
    state.finish_text()
}

/// Adds the older fields for the one rule that is nearest to its end.
pub(crate) fn write_legacy(
    headers: &mut HeaderMap,
    standings: &Standings<'_>,
    reset: LegacyReset,
    retry: Option<u64>,
    wall: WallTime,
) {
    let standings = told(standings).map(|(_, standing)| standing);
    let Some(nearest) = standings.min_by_key(|standing| (!standing.is_violated, standing.remaining)) else {
        return;
    };
    let seconds = retry.unwrap_or_else(|| whole_seconds(nearest.reset));
    let reset = match reset {
        LegacyReset::Seconds => seconds,
        LegacyReset::UnixTime => (wall.unix_nanos().div_ceil(1_000_000_000)).saturating_add(seconds),
    };
    headers.insert(LEGACY_LIMIT, nearest.limit.whole().into());
    headers.insert(LEGACY_REMAINING, nearest.remaining.whole().into());
    headers.insert(LEGACY_RESET, reset.into());
}

/// Callers are told of rules that are theirs, here with their numbers. What we can bear is nobody's business.
fn told<'a, 'b>(standings: &'b Standings<'a>) -> impl Iterator<Item = (u8, &'b Standing<'a>)> {
    (0..).zip(standings.iter()).filter(|(_, standing)| match standing.rule.limit {
        Limit::Rate(_) | Limit::Concurrency(_) => true,
        Limit::Reserve(_) | Limit::Shed(_) => false,
    })
}

/// What is counted, where it is not requests.
fn unit(standing: &Standing<'_>) -> Option<&'static str> {
    if standing.is_concurrency {
        return Some("concurrent-requests");
    }
    match standing.rule.cost.as_ref()?.settle.as_ref()? {
        Settle::ResponseBytes | Settle::RequestBytes => Some("content-bytes"),
        Settle::ResponseHeader(_) => None,
    }
}

/// Adds a line below those that are there.
pub(super) fn append(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.append(name, value);
    }
}
