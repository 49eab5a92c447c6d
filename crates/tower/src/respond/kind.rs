//! Which answer a refusal gets.
//!
//! | kind        | HTTP | gRPC | means |
//! |-------------|------|------|-------|
//! | quota       | 429  | 8    | the caller has used up what it may use |
//! | concurrency | 429  | 8    | the caller has too much in flight |
//! | blocked     | 403  | 7    | an operator keeps this caller out |
//! | unclear     | 400  | 3    | it can be read in two ways, so it cannot be counted |
//! | overloaded  | 503  | 14   | we are short of something; the caller did nothing wrong |
//! | throttled   | 503  | 14   | we hold back by ourselves, since what would be called refuses |
//! | late        | 504  | 4    | nobody would wait for the answer |
//! | no route    | 404  | 12   | the policy sends it nowhere |
//! | unreachable | 502  | 14   | the upstream could not be asked, or answered nonsense |
//! | silent      | 504  | 14   | the upstream did not answer in time |
//! | stalled     | 408  | 4    | the body of the request did not come in time |
//!
//! 403 ends when an operator says so. 429 is the caller's doing and 503 is ours: clients back off from the one and may try elsewhere after the
//! other, so a wrong choice makes them do the wrong thing.

use http::StatusCode;
use tidegate_core::Reason;
use tidegate_policy::Cause;

/// The answers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Quota,
    Concurrency,
    Blocked,
    Unclear,
    Overloaded,
    Throttled,
    Late,
    NoRoute,
    Unreachable(Unanswered),
    Silent,
    Stalled,
}

/// Why a service that was asked gave no answer, as far as its callers are told: which step failed, never whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing listens there.
    ConnectRefused,
    /// It was not connected to in time.
    ConnectTimeout,
    /// There is no way there.
    ConnectFailed,
    /// Its name has no address.
    Dns,
    /// No encrypted connection came about.
    Tls,
    /// The connection ended before the answer.
    Reset,
    /// What came is no answer.
    BadAnswer,
}

impl Kind {
    /// The cause says whose limit it was, the reason what it said.
    pub(crate) const fn of(cause: &Cause, reason: Reason) -> Self {
        match (cause, reason) {
            (Cause::BadKey { .. }, _) => Self::Unclear,
            (Cause::Blocked, _) | (Cause::Quota, Reason::Blocked) => Self::Blocked,
            (Cause::Quota, _) => Self::Quota,
            (Cause::Concurrency, _) => Self::Concurrency,
            (Cause::Reserve | Cause::Shed, _) => Self::Overloaded,
            (Cause::Overload, reason) => Self::of_reason(reason),
        }
    }

    /// What a reason alone is answered with, where no rule of a caller stands behind it.
    #[must_use]
    pub(crate) const fn of_reason(reason: Reason) -> Self {
        match reason {
            Reason::QuotaSpent | Reason::CostAboveBurst | Reason::OverflowSpent => Self::Quota,
            Reason::Blocked => Self::Blocked,
            Reason::DeadlinePassed => Self::Late,
            Reason::Throttled => Self::Throttled,
            Reason::AmbiguousKey => Self::Unclear,
            Reason::WaitTooLong
            | Reason::LimitReached
            | Reason::Shed
            | Reason::Reserved
            | Reason::QueueFull
            | Reason::Displaced
            | Reason::StandingQueue
            | Reason::BreakerOpen
            | Reason::RetryBudgetSpent
            | Reason::AttemptsSpent
            | Reason::NotRetryable => Self::Overloaded,
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Quota | Self::Concurrency => StatusCode::TOO_MANY_REQUESTS,
            Self::Blocked => StatusCode::FORBIDDEN,
            Self::Unclear => StatusCode::BAD_REQUEST,
            Self::Overloaded | Self::Throttled => StatusCode::SERVICE_UNAVAILABLE,
            Self::Late | Self::Silent => StatusCode::GATEWAY_TIMEOUT,
            Self::NoRoute => StatusCode::NOT_FOUND,
            Self::Unreachable(_) => StatusCode::BAD_GATEWAY,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
        }
    }

    pub(crate) const fn grpc_status(self) -> u8 {
        match self {
            Self::Quota | Self::Concurrency => 8,
            Self::Blocked => 7,
            Self::Unclear => 3,
            Self::Overloaded | Self::Throttled | Self::Unreachable(_) | Self::Silent => 14,
            Self::Late | Self::Stalled => 4,
            Self::NoRoute => 12,
        }
    }

    /// The problem's type and title (RFC 9457). What has no type of its own is `about:blank`, whose title is
    /// the status' own phrase.
    pub(crate) const fn problem(self) -> (&'static str, &'static str) {
        match self {
            Self::Quota | Self::Concurrency => {
                ("https://iana.org/assignments/http-problem-types#quota-exceeded", "Quota exceeded")
            }
            Self::Blocked => ("about:blank", "Forbidden"),
            Self::Unclear => ("about:blank", "Bad Request"),
            Self::Overloaded => (
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
                "Temporary reduced capacity",
            ),
            Self::Throttled => ("urn:tidegate:problem:throttled", "Held back before the call"),
            Self::Late | Self::Silent => ("about:blank", "Gateway Timeout"),
            Self::NoRoute => ("about:blank", "Not Found"),
            Self::Unreachable(_) => ("about:blank", "Bad Gateway"),
            Self::Stalled => ("about:blank", "Request Timeout"),
        }
    }

    /// The error of `Proxy-Status` (RFC 9209).
    pub(crate) const fn proxy_error(self) -> &'static str {
        match self {
            Self::Quota | Self::Blocked | Self::Throttled => "http_request_denied",
            Self::Concurrency => "connection_limit_reached",
            Self::Unclear | Self::Stalled => "http_request_error",
            Self::Overloaded => "destination_unavailable",
            Self::Late | Self::Silent => "http_response_timeout",
            Self::NoRoute => "destination_not_found",
            Self::Unreachable(why) => why.proxy_error(),
        }
    }

    /// Whether waiting is worth telling. A call that we held back, or that is too late, is over.
    pub(crate) const fn names_retry(self) -> bool {
        match self {
            Self::Quota | Self::Concurrency | Self::Overloaded => true,
            Self::Unclear
            | Self::Blocked
            | Self::Throttled
            | Self::Late
            | Self::NoRoute
            | Self::Unreachable(_)
            | Self::Silent
            | Self::Stalled => false,
        }
    }

    /// Whether the caller is told which of its rules said no, with numbers.
    pub(crate) const fn shows_rules(self) -> bool {
        match self {
            Self::Quota | Self::Concurrency => true,
            Self::Unclear
            | Self::Blocked
            | Self::Overloaded
            | Self::Throttled
            | Self::Late
            | Self::NoRoute
            | Self::Unreachable(_)
            | Self::Silent
            | Self::Stalled => false,
        }
    }
}

impl Unanswered {
    /// The error of `Proxy-Status` (RFC 9209).
    const fn proxy_error(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connection_refused",
            Self::ConnectTimeout => "connection_timeout",
            Self::ConnectFailed => "destination_unavailable",
            Self::Dns => "dns_error",
            Self::Tls => "tls_protocol_error",
            Self::Reset => "connection_terminated",
            Self::BadAnswer => "http_protocol_error",
        }
    }

    /// The same in a sentence.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::ConnectRefused => "the service behind this gateway refused the connection",
            Self::ConnectTimeout => "the service behind this gateway could not be connected to in time",
            Self::ConnectFailed => "the service behind this gateway could not be reached",
            Self::Dns => "the service behind this gateway has no address",
            Self::Tls => "no encrypted connection to the service behind this gateway came about",
            Self::Reset => "the connection to the service behind this gateway ended before its answer",
            Self::BadAnswer => "the service behind this gateway gave no valid answer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_limit_it_was_decides_between_429_and_503() {
        let limit = Reason::LimitReached;
        assert_eq!(Kind::of(&Cause::Concurrency, limit).status(), 429);
        assert_eq!(Kind::of_reason(limit).status(), 503);
        assert_eq!(Kind::of(&Cause::Quota, Reason::WaitTooLong).status(), 429);
        assert_eq!(Kind::of_reason(Reason::WaitTooLong).status(), 503);
        assert_eq!(Kind::of(&Cause::BadKey { header: "a".into() }, Reason::AmbiguousKey).status(), 400);
        assert_eq!(Kind::of(&Cause::Reserve, limit).status(), 503);
        assert_eq!(Kind::of(&Cause::Shed, Reason::Shed).status(), 503);
        assert_eq!(Kind::of(&Cause::Overload, limit).status(), 503);
        assert_eq!(Kind::of(&Cause::Overload, Reason::DeadlinePassed).status(), 504);
    }

    #[test]
    fn reasons_without_a_rule_are_answered_as_in_the_table() {
        for (reason, status, grpc) in [
            (Reason::QuotaSpent, 429, 8),
            (Reason::Blocked, 403, 7),
            (Reason::Shed, 503, 14),
            (Reason::Reserved, 503, 14),
            (Reason::BreakerOpen, 503, 14),
            (Reason::Throttled, 503, 14),
            (Reason::DeadlinePassed, 504, 4),
        ] {
            let kind = Kind::of_reason(reason);
            assert_eq!((kind.status().as_u16(), kind.grpc_status()), (status, grpc), "{reason:?}");
        }
    }
}
