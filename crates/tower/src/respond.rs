//! What callers are told: the only place that chooses a refusal's status and writes its fields.
//!
//! ```text
//! HTTP/1.1 429 Too Many Requests
//! Content-Type: application/problem+json
//! Cache-Control: no-store
//! Retry-After: 1
//! RateLimit-Policy: "per_key";q=20;w=2
//! RateLimit: "per_key";r=0;t=1
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | which refusal gets which status | `kind.rs` |
//! | the `RateLimit` fields | `fields.rs` |
//! | the problem's JSON | `problem.rs` |
//! | what gRPC callers get instead | `grpc.rs` |

mod detail;
mod fields;
mod grpc;
mod json;
mod kind;
mod problem;
mod protobuf;
mod structured;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use tidegate_core::{Refusal, Retry};
use tidegate_policy::{Admitted, Cause, Now, Refused, Standings};

pub use tidegate_policy::policy::{LegacyReset, RatelimitFields};

use self::grpc::Pushback;
use self::kind::Kind;
use self::protobuf::Violation;
use self::structured::List;
use crate::clock::Clock;
use crate::identify::Unclear;

const DECISION: HeaderName = HeaderName::from_static("tidegate-decision");
const RETRY: HeaderName = HeaderName::from_static("tidegate-retry");
const REFUSED_BY: HeaderName = HeaderName::from_static("tidegate-refused-by");
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const ENVOY_RATELIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");
const ENVOY_OVERLOADED: HeaderName = HeaderName::from_static("x-envoy-overloaded");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const TRUE: HeaderValue = HeaderValue::from_static("true");

/// How callers are answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Respond {
    fields: RatelimitFields,
    legacy: Option<LegacyReset>,
    is_debugging: bool,
}

impl Respond {
    /// The same, with the `RateLimit` fields on other answers.
    #[must_use]
    pub const fn ratelimit_fields(self, fields: RatelimitFields) -> Self {
        Self { fields, ..self }
    }

    /// The same, with the older `X-RateLimit` fields beside the new ones.
    #[must_use]
    pub const fn legacy_ratelimit_fields(self, reset: LegacyReset) -> Self {
        Self { legacy: Some(reset), ..self }
    }

    /// The same, with a `Tidegate-Decision` field on every answer: which rule, and the id to look it up by.
    #[must_use]
    pub const fn debug_headers(self) -> Self {
        Self { is_debugging: true, ..self }
    }

    /// The answer to a request that the gate refused.
    #[must_use]
    pub fn refused(&self, now: Now, refused: &Refused, speech: Speech) -> Response<Bytes> {
        let kind = Kind::of(&refused.cause, refused.refusal.reason);
        let standings = refused.standings(now);
        let said = Said {
            kind,
            rule: Some(&refused.rule.name),
            detail: match &refused.cause {
                Cause::BadKey { header } => format!("the header field {header} may be sent only once"),
                Cause::Quota | Cause::Concurrency => problem::detail(kind, &refused.rule.name, &standings),
            },
            retry: refused.refusal.retry,
        };
        let mut response = match speech {
            Speech::Http => problem::refusal(&said, refused.id, &standings),
            Speech::Grpc | Speech::GrpcWeb => said.in_grpc(speech, &standings),
        };
        let headers = response.headers_mut();
        said.write(headers, speech);
        if self.fields != RatelimitFields::Never {
            fields::write(headers, &standings, said.retry_after());
        }
        if let Some(reset) = self.legacy {
            fields::write_legacy(headers, &standings, reset, said.retry_after(), now.wall);
        }
        if self.is_debugging {
            let mut decision = "refused; rule=".to_owned();
            structured::push_string(&mut decision, &refused.rule.name);
            fields::append(headers, DECISION, Some(format!("{decision}; id=\"{}\"", refused.id)));
        }
        response
    }

    /// The answer to a request that something without a rule refused: a queue, a breaker, a throttle.
    #[must_use]
    pub fn without_rule(&self, refusal: Refusal, speech: Speech) -> Response<Bytes> {
        let kind = Kind::of_reason(refusal.reason);
        let detail = problem::general(kind).to_owned();
        Said { kind, rule: None, detail, retry: refusal.retry }.plain(speech)
    }

    /// The answer to a request that was not refused, and still cannot be served.
    #[must_use]
    pub fn trouble(&self, trouble: Trouble, speech: Speech) -> Response<Bytes> {
        let kind = match trouble {
            Trouble::Unclear(what) => return self.unclear(Unclear { what }, speech),
            Trouble::NoRoute => Kind::NoRoute,
            Trouble::Unreachable => Kind::Unreachable,
            Trouble::Silent => Kind::Silent,
            Trouble::Busy => Kind::Overloaded,
        };
        // Trouble on the way says nothing about the next time.
        let retry = Retry::After(Duration::ZERO);
        Said { kind, rule: None, detail: problem::general(kind).to_owned(), retry }.plain(speech)
    }

    /// The answer to a request that can be read in two ways.
    #[must_use]
    pub fn unclear(&self, unclear: Unclear, speech: Speech) -> Response<Bytes> {
        let detail = unclear.what.to_owned();
        Said { kind: Kind::Unclear, rule: None, detail, retry: Retry::Never }.plain(speech)
    }

    /// Adds our fields to the answer of a request that was admitted. The clock is read only if there are any.
    pub fn admitted(&self, clock: &dyn Clock, admitted: &Admitted, headers: &mut HeaderMap) {
        if self.fields == RatelimitFields::Always || self.legacy.is_some() {
            let now = clock.now();
            let standings = admitted.standings(now);
            if self.fields == RatelimitFields::Always {
                fields::write(headers, &standings, None);
            }
            if let Some(reset) = self.legacy {
                fields::write_legacy(headers, &standings, reset, None, now.wall);
            }
        }
        if self.is_debugging {
            fields::append(headers, DECISION, Some(format!("admitted; id=\"{}\"", admitted.id())));
        }
    }
}

/// What keeps a request that no rule refused from being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is not well made, or can be read in two ways; a sentence for the caller says how.
    Unclear(&'static str),
    /// No route takes it.
    NoRoute,
    /// The upstream could not be asked, or what it answered is no answer.
    Unreachable,
    /// The upstream did not answer in time.
    Silent,
    /// Every connection that may be held to the upstream is in use.
    Busy,
}

/// What the caller speaks, as its request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Plain HTTP.
    Http,
    /// gRPC.
    Grpc,
    /// gRPC from a browser.
    GrpcWeb,
}

impl Speech {
    /// Told by the content type.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        match content_type.strip_prefix(b"application/grpc") {
            None => Self::Http,
            Some(rest) if rest.starts_with(b"-web") => Self::GrpcWeb,
            Some([] | [b'+' | b';' | b' ', ..]) => Self::Grpc,
            Some(_) => Self::Http,
        }
    }
}

/// A refusal in the words of this border.
struct Said<'a> {
    kind: Kind,
    rule: Option<&'a str>,
    detail: String,
    retry: Retry,
}

impl Said<'_> {
    fn plain(&self, speech: Speech) -> Response<Bytes> {
        let mut response = match speech {
            Speech::Http => problem::plain(self),
            Speech::Grpc | Speech::GrpcWeb => self.in_grpc(speech, &Standings::default()),
        };
        self.write(response.headers_mut(), speech);
        response
    }

    /// The fields that refusals have in common.
    fn write(&self, headers: &mut HeaderMap, speech: Speech) {
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        if speech == Speech::Http {
            if let Some(seconds) = self.retry_after() {
                headers.insert(header::RETRY_AFTER, seconds.into());
            }
            if self.retry == Retry::Never {
                headers.insert(RETRY, HeaderValue::from_static("never"));
            }
            self.write_proxy_status(headers);
        }
        match self.kind {
            Kind::Quota | Kind::Concurrency | Kind::Blocked => {
                headers.insert(ENVOY_RATELIMITED, TRUE);
            }
            Kind::Overloaded => {
                headers.insert(ENVOY_OVERLOADED, TRUE);
            }
            // The mark tells callers that the upstream itself was not asked and is not to blame.
            Kind::Throttled => {
                headers.insert(ENVOY_OVERLOADED, TRUE);
                headers.insert(REFUSED_BY, HeaderValue::from_static("throttle"));
            }
            Kind::Unclear | Kind::Late | Kind::NoRoute | Kind::Unreachable | Kind::Silent => {}
        }
    }

    fn write_proxy_status(&self, headers: &mut HeaderMap) {
        let mut status = List::default();
        status.token("tidegate").word("error", self.kind.proxy_error());
        if let Some(rule) = self.rule {
            status.string("details", &format!("rule={rule}"));
        }
        fields::append(headers, PROXY_STATUS, status.finish());
    }

    fn in_grpc(&self, speech: Speech, standings: &Standings) -> Response<Bytes> {
        let pushback = match self.retry {
            Retry::Never => Pushback::Never,
            Retry::After(_) if !self.kind.names_retry() => Pushback::Silent,
            Retry::After(delay) => Pushback::After(named(delay)),
        };
        let content_type = match speech {
            Speech::Http | Speech::Grpc => "application/grpc",
            Speech::GrpcWeb => "application/grpc-web",
        };
        let violated = standings.iter().filter(|standing| standing.is_violated && self.kind.shows_rules());
        let details: Vec<_> = violated.map(|standing| (standing, detail::detail(standing))).collect();
        let violations: Vec<_> = details
            .iter()
            .map(|(standing, detail)| Violation { subject: &standing.rule.name, description: detail })
            .collect();
        let content_type = HeaderValue::from_static(content_type);
        grpc::refusal(self.kind, content_type, &self.detail, pushback, &violations)
    }

    /// What `Retry-After` says: whole seconds, rounded up, so that whoever waits them passes. Never zero,
    /// which would ask for the next attempt at once.
    fn retry_after(&self) -> Option<u64> {
        match self.retry {
            Retry::After(delay) if self.kind.names_retry() => Some(detail::whole_seconds(named(delay))),
            Retry::After(_) | Retry::Never => None,
        }
    }
}

/// Nobody knows when work in flight ends, so a refusal for it names no time; a second is what we ask for.
const fn named(delay: Duration) -> Duration {
    if delay.is_zero() { Duration::from_secs(1) } else { delay }
}
