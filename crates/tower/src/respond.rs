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
//! | the sentence that says why | `detail.rs` |
//! | what gRPC callers get instead | `grpc.rs` |
//! | what of it is written once, for all that differ in numbers | `form.rs` |
//! | how all of it is written into one piece of memory | `sheet.rs` |
//! | how it goes over the wire | `page.rs` |

mod detail;
mod fields;
mod form;
mod grpc;
mod json;
mod kind;
mod page;
mod problem;
mod protobuf;
mod sheet;
mod structured;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use tidegate_core::{Refusal, Retry};
use tidegate_policy::{Admitted, By, Cause, DecisionId, Now, Refused, Standings};

use tidegate_policy::policy::Server;
pub use tidegate_policy::policy::{LegacyReset, RatelimitFields};

use self::detail::Detail;
use self::form::Case;
use self::grpc::Pushback;
use self::kind::Kind;
pub use self::kind::Unanswered;
pub use self::page::Page;
use self::protobuf::Violation;
use self::sheet::Sheet;
use crate::clock::Clock;
use crate::identify::Unclear;

const DECISION: HeaderName = HeaderName::from_static("tidegate-decision");
const RETRY: HeaderName = HeaderName::from_static("tidegate-retry");
const REFUSED_BY: HeaderName = HeaderName::from_static("tidegate-refused-by");
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const ENVOY_RATELIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");
const ENVOY_OVERLOADED: HeaderName = HeaderName::from_static("x-envoy-overloaded");
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const TRUE: HeaderValue = HeaderValue::from_static("true");

/// Most fields that a refusal has. A map that grows is copied, which costs as much as filling it.
const MOST_FIELDS: usize = 12;
/// Bytes of a refusal's texts: a problem that names three rules fits.
const REFUSAL_BYTES: usize = 1_024;
/// Bytes of the fields on an answer of the service: those of three rules fit.
const FIELDS_BYTES: usize = 256;

/// How callers are answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Respond {
    fields: RatelimitFields,
    legacy: Option<LegacyReset>,
    is_debugging: bool,
}

impl Respond {
    /// As a policy wants it.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        Self {
            fields: server.ratelimit_fields,
            legacy: server.legacy_ratelimit_fields,
            is_debugging: server.debug_headers,
        }
    }

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
        self.tell(now, refused, speech, |said, case| {
            let sheet = &mut Sheet::with_room(REFUSAL_BYTES);
            let mut response = if case.is_problem {
                case.problem(sheet, refused.id)
            } else {
                let mut response = said.in_grpc(sheet, speech, case.standings);
                if case.has_fields {
                    case.write_fields(response.headers_mut(), sheet);
                }
                response
            };
            let headers = response.headers_mut();
            if let Some(reset) = self.legacy {
                fields::write_legacy(headers, case.standings, reset, said.retry_after(), now.wall);
            }
            if self.is_debugging {
                structured::string(sheet.push("refused; rule="), |text| _ = text.push(refused.by().name()));
                write_id(headers, sheet, refused.id);
            }
            response
        })
    }

    /// The same as it is written over HTTP/1, without a map of its fields; none for those who are told something special.
    #[must_use]
    pub fn page(&self, now: Now, refused: &Refused, speech: Speech) -> Option<Page> {
        if speech != Speech::Http || self.legacy.is_some() || self.is_debugging {
            return None;
        }
        Some(self.tell(now, refused, speech, |_, case| case.page(Sheet::on(page::room()), refused.id)))
    }

    /// Finds out what is to be told of a refusal.
    #[inline]
    fn tell<T>(
        &self,
        now: Now,
        refused: &Refused,
        speech: Speech,
        tell: impl FnOnce(&Said<'_>, &Case<'_>) -> T,
    ) -> T {
        let kind = Kind::of(&refused.cause, refused.refusal.reason);
        let standings = if kind.shows_rules() { refused.standings(now) } else { Standings::default() };
        let detail = match &refused.cause {
            Cause::BadKey { header } => Detail::Repeated { header },
            Cause::Blocked | Cause::Quota | Cause::Concurrency if kind == Kind::Blocked => {
                Detail::general(kind)
            }
            Cause::Blocked => Detail::general(kind),
            Cause::Quota | Cause::Concurrency => Detail::Rules(&standings),
            Cause::Reserve | Cause::Shed | Cause::Overload => Detail::general(kind),
        };
        let retry = if kind == Kind::Overloaded {
            spread(refused.refusal.retry, refused.id)
        } else {
            refused.refusal.retry
        };
        let said = Said { kind, by: Some(refused.by()), detail, retry };
        let (is_problem, has_fields) = (speech == Speech::Http, self.fields != RatelimitFields::Never);
        tell(&said, &Case { standings: &standings, said: Some(&said), is_problem, has_fields })
    }

    /// The answer to a request that something without a rule refused: a queue, a breaker, a throttle.
    #[must_use]
    pub fn without_rule(&self, refusal: Refusal, speech: Speech) -> Response<Bytes> {
        let kind = Kind::of_reason(refusal.reason);
        Said { kind, by: None, detail: Detail::general(kind), retry: refusal.retry }.plain(speech)
    }

    /// The answer to a request that was not refused, and still cannot be served.
    #[must_use]
    pub fn trouble(&self, trouble: Trouble, speech: Speech) -> Response<Bytes> {
        let kind = match trouble {
            Trouble::Unclear(what) => return self.unclear(Unclear { what }, speech),
            Trouble::NoRoute => Kind::NoRoute,
            Trouble::Unreachable(why) => Kind::Unreachable(why),
            Trouble::Silent => Kind::Silent,
            Trouble::Busy => Kind::Overloaded,
            Trouble::Stalled => Kind::Stalled,
        };
        // Trouble on the way says nothing about the next time.
        let retry = Retry::After(Duration::ZERO);
        Said { kind, by: None, detail: Detail::general(kind), retry }.plain(speech)
    }

    /// The answer to a request that can be read in two ways.
    #[must_use]
    pub fn unclear(&self, unclear: Unclear, speech: Speech) -> Response<Bytes> {
        let detail = Detail::Words(unclear.what);
        Said { kind: Kind::Unclear, by: None, detail, retry: Retry::Never }.plain(speech)
    }

    /// Adds our fields to the answer of a request that was admitted. The clock is read only if there are any.
    pub fn admitted(&self, clock: &dyn Clock, admitted: &Admitted, headers: &mut HeaderMap) {
        if self.fields == RatelimitFields::Always || self.legacy.is_some() {
            let now = clock.now();
            let standings = admitted.standings(now);
            if self.fields == RatelimitFields::Always {
                let case = Case { standings: &standings, said: None, is_problem: false, has_fields: true };
                case.write_fields(headers, &mut Sheet::with_room(FIELDS_BYTES));
            }
            if let Some(reset) = self.legacy {
                fields::write_legacy(headers, &standings, reset, None, now.wall);
            }
        }
        if self.is_debugging {
            let sheet = &mut Sheet::with_room(FIELDS_BYTES);
            write_id(headers, sheet.push("admitted"), admitted.id());
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
    Unreachable(Unanswered),
    /// The upstream did not answer in time.
    Silent,
    /// Every connection that may be held to the upstream is in use.
    Busy,
    /// Its body did not come in time.
    Stalled,
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
    /// Told by the fields.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        Self::of_content_type(headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes))
    }

    /// Told by the content type, which a request may have.
    #[must_use]
    pub fn of_content_type(content_type: Option<&[u8]>) -> Self {
        match content_type.unwrap_or_default().strip_prefix(b"application/grpc") {
            None => Self::Http,
            Some(rest) if rest.starts_with(b"-web") => Self::GrpcWeb,
            Some([] | [b'+' | b';' | b' ', ..]) => Self::Grpc,
            Some(_) => Self::Http,
        }
    }
}

/// A refusal in the words of this border.
#[derive(Debug)]
struct Said<'a> {
    kind: Kind,
    by: Option<By<'a>>,
    detail: Detail<'a>,
    retry: Retry,
}

impl Said<'_> {
    fn plain(&self, speech: Speech) -> Response<Bytes> {
        let sheet = &mut Sheet::with_room(REFUSAL_BYTES);
        match speech {
            Speech::Http => {
                problem::write_plain(sheet, self);
                let mut response = Response::new(sheet.cut());
                *response.status_mut() = self.kind.status();
                *response.headers_mut() = self.fields(sheet);
                response
            }
            Speech::Grpc | Speech::GrpcWeb => self.in_grpc(sheet, speech, &Standings::default()),
        }
    }

    /// The fields of an answer in plain HTTP.
    fn fields(&self, sheet: &mut Sheet) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(MOST_FIELDS);
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        if let Some(seconds) = self.retry_after() {
            fields::append(&mut headers, header::RETRY_AFTER, sheet.integer(seconds).cut_field());
        }
        if self.retry == Retry::Never {
            headers.insert(RETRY, HeaderValue::from_static("never"));
        }
        self.write_proxy_status(&mut headers, sheet);
        self.write_marks(&mut headers);
        headers
    }

    fn in_grpc(&self, sheet: &mut Sheet, speech: Speech, standings: &Standings<'_>) -> Response<Bytes> {
        let pushback = match self.retry {
            Retry::Never => Pushback::Never,
            Retry::After(_) if !self.kind.names_retry() => Pushback::Silent,
            Retry::After(delay) => Pushback::After(named(delay)),
        };
        let content_type = HeaderValue::from_static(match speech {
            Speech::Http | Speech::Grpc => "application/grpc",
            Speech::GrpcWeb => "application/grpc-web",
        });
        self.detail.write(sheet);
        let message = sheet.cut();
        let violated = standings.iter().filter(|standing| standing.is_violated && self.kind.shows_rules());
        let details: Vec<_> = violated
            .map(|standing| {
                detail::write_rule(sheet, standing);
                (&standing.rule.name, sheet.cut())
            })
            .collect();
        let violations: Vec<_> =
            details.iter().map(|(subject, description)| Violation { subject, description }).collect();
        let mut headers = HeaderMap::with_capacity(MOST_FIELDS);
        grpc::write(&mut headers, self.kind, content_type, &message, pushback, &violations);
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        self.write_marks(&mut headers);
        let mut response = Response::new(Bytes::new());
        *response.headers_mut() = headers;
        response
    }

    /// Who refused, in the terms of RFC 9209.
    fn write_proxy_status(&self, headers: &mut HeaderMap, sheet: &mut Sheet) {
        sheet.push("tidegate;error=").push(self.kind.proxy_error());
        if let Some(by) = self.by {
            structured::string(sheet.push(";details="), |text| _ = text.push("rule=").push(by.name()));
        }
        fields::append(headers, PROXY_STATUS, sheet.cut_field());
    }

    /// The fields by which other proxies and their clients know a refusal.
    fn write_marks(&self, headers: &mut HeaderMap) {
        match self.kind {
            Kind::Quota | Kind::Concurrency => {
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
            Kind::Blocked
            | Kind::Unclear
            | Kind::Late
            | Kind::NoRoute
            | Kind::Unreachable(_)
            | Kind::Silent
            | Kind::Stalled => {}
        }
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

/// The time to wait when we are short of something, from half to two and a half times what the limiter says, so that
/// those refused at once do not come back at once. The decision's number is the roll: drawn by nobody, different for
/// each, and the same whenever the answer is written.
fn spread(retry: Retry, id: DecisionId) -> Retry {
    match retry {
        Retry::After(delay) => Retry::After(named(delay).mul_f64(0.5 + 2.0 * id.share().value())),
        Retry::Never => Retry::Never,
    }
}

/// Adds what is on the sheet, and the id that the decision can be looked up by.
fn write_id(headers: &mut HeaderMap, sheet: &mut Sheet, id: DecisionId) {
    fields::append(headers, DECISION, sheet.push("; id=\"").id(id).push("\"").cut_field());
}
