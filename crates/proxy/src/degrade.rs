//! The cheaper answer of a route: instead of a refusal while its upstream is overloaded, or instead of asking the
//! upstream at all, when an operator says so.
//!
//! Who would be shed gets it, so what is important enough still gets the real thing; and since nobody else is kept
//! from the upstream by it, the load that calls for it does not vanish with it and come back a moment later.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tidegate_core::Moment;
use tidegate_policy::policy::{self, DegradeWhen};

/// Says that an answer is not what the upstream would have said.
const DEGRADED: HeaderName = HeaderName::from_static("tidegate-degraded");

/// A route's cheaper answer, ready to be given.
#[derive(Clone, Debug)]
pub(crate) struct Degraded {
    when: DegradeWhen,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Degraded {
    pub(crate) fn new(spec: &policy::Degrade) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in &spec.headers {
            // The policy was refused if they were none.
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.append(name, value);
            }
        }
        Self {
            when: spec.when,
            status: StatusCode::from_u16(spec.status).unwrap_or(StatusCode::OK),
            headers,
            body: Bytes::copy_from_slice(spec.body.as_bytes()),
        }
    }

    /// Whether it is for requests that are shed.
    pub(crate) fn is_for_shed(&self) -> bool {
        self.when == DegradeWhen::Shedding
    }

    /// The answer to a request that is shed.
    pub(crate) fn shed(&self) -> Response<Bytes> {
        self.answer(DegradeWhen::Shedding)
    }

    /// The answer to any request, while an operator wants it.
    pub(crate) fn switched(&self) -> Response<Bytes> {
        self.answer(DegradeWhen::Switched)
    }

    fn answer(&self, why: DegradeWhen) -> Response<Bytes> {
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response.headers_mut().insert(DEGRADED, HeaderValue::from_static(why.as_str()));
        response
    }
}

/// The routes that operators have switched to their cheaper answer, and until when. At most the routes of a policy.
#[derive(Debug, Default)]
pub(crate) struct Switches(RwLock<BTreeMap<String, Option<Moment>>>);

impl Switches {
    /// Whether a route is switched.
    pub(crate) fn is_on(&self, route: &str, now: Moment) -> bool {
        let switches = self.0.read().unwrap_or_else(PoisonError::into_inner);
        switches.get(route).is_some_and(|until| until.is_none_or(|until| now < until))
    }

    /// Switches a route on, for good or for some time.
    pub(crate) fn on(&self, route: &str, now: Moment, ttl: Option<Duration>) {
        let mut switches = self.0.write().unwrap_or_else(PoisonError::into_inner);
        switches.insert(route.to_owned(), ttl.map(|ttl| now.plus(ttl)));
    }

    /// Leaves a route to itself again.
    pub(crate) fn auto(&self, route: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(route);
    }

    /// How long a route stays switched; none inside where that is for good.
    pub(crate) fn left(&self, route: &str, now: Moment) -> Option<Option<Duration>> {
        let switches = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match switches.get(route)? {
            None => Some(None),
            Some(until) => (now < *until).then(|| Some(until.since(now))),
        }
    }

    /// Forgets routes that are no more.
    pub(crate) fn keep(&self, is_known: impl Fn(&str) -> bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|route, _| is_known(route));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_ends_by_itself() {
        let (switches, now) = (Switches::default(), Moment::ORIGIN);
        switches.on("search", now, Some(Duration::from_secs(60)));
        switches.on("home", now, None);
        let later = now.plus(Duration::from_secs(60));
        assert!(switches.is_on("search", now) && !switches.is_on("search", later));
        assert!(switches.is_on("home", later) && !switches.is_on("other", now));
        assert_eq!(switches.left("search", now), Some(Some(Duration::from_secs(60))));
        assert_eq!((switches.left("search", later), switches.left("home", later)), (None, Some(None)));
        switches.auto("home");
        switches.keep(|route| route != "search");
        assert!(!switches.is_on("home", now) && !switches.is_on("search", now));
    }
}
