//! Why an upstream gave no answer, in the words of records.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::WallTime;
use tidegate_tower::respond::Unanswered;

/// Why an upstream gave no answer that could be handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamError {
    /// Nothing listens there.
    ConnectRefused,
    /// It was not connected to within `connect_timeout`.
    ConnectTimeout,
    /// There is no way there, or no file to be had for the connection.
    ConnectFailed,
    /// Its name has no address.
    Dns,
    /// The two did not agree on an encrypted connection.
    Tls,
    /// The connection ended before the answer's head, or within it.
    Reset,
    /// What came is no answer.
    BadAnswer,
    /// It did not answer in time.
    Silent,
    /// Every connection that may be held to it is in use.
    Busy,
    /// The request's body broke off.
    BrokenOff,
    /// The request's body was waited for too long, and others needed the connection.
    Stalled,
}

/// The last error of an endpoint and when it was: seconds since 1970, and behind them the error's place in the list,
/// counted from one. Nothing but a number while there was none.
#[derive(Debug, Default)]
pub(crate) struct LastError(AtomicU64);

impl LastError {
    pub(super) fn note(&self, error: UpstreamError, second: u64) {
        let place = UpstreamError::ALL.iter().position(|known| *known == error).unwrap_or_default() as u64;
        self.0.store(second << 8 | (place + 1), Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Option<(UpstreamError, WallTime)> {
        let noted = self.0.load(Ordering::Relaxed);
        let place = usize::try_from(noted & 0xff).ok()?.checked_sub(1)?;
        Some((*UpstreamError::ALL.get(place)?, WallTime::from_unix_seconds(noted >> 8)))
    }
}

impl UpstreamError {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::ConnectRefused,
        Self::ConnectTimeout,
        Self::ConnectFailed,
        Self::Dns,
        Self::Tls,
        Self::Reset,
        Self::BadAnswer,
        Self::Silent,
        Self::Busy,
        Self::BrokenOff,
        Self::Stalled,
    ];

    /// As one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::ConnectFailed => "connect_failed",
            Self::Dns => "dns_error",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::BadAnswer => "bad_answer",
            Self::Silent => "silent",
            Self::Busy => "busy",
            Self::BrokenOff => "broken_off",
            Self::Stalled => "stalled",
        }
    }

    /// The same for operators.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::ConnectRefused => "the endpoint refused the connection",
            Self::ConnectTimeout => "the endpoint was not connected to within `connect_timeout`",
            Self::ConnectFailed => "the endpoint could not be connected to",
            Self::Dns => "the endpoint's name has no address",
            Self::Tls => {
                "the endpoint and the gateway did not agree on TLS, or its certificate is not trusted"
            }
            Self::Reset => "the connection ended before the answer",
            Self::BadAnswer => "what came from the endpoint is no answer",
            Self::Silent => "no answer came within `timeout`",
            Self::Busy => "all connections that may be held to the upstream are in use",
            Self::BrokenOff => "the request's body broke off",
            Self::Stalled => "the request's body did not come while others needed the connection",
        }
    }

    /// What callers are told of it.
    pub(crate) const fn unanswered(self) -> Unanswered {
        match self {
            Self::ConnectRefused => Unanswered::ConnectRefused,
            Self::ConnectTimeout => Unanswered::ConnectTimeout,
            Self::Dns => Unanswered::Dns,
            Self::Tls => Unanswered::Tls,
            Self::Reset => Unanswered::Reset,
            Self::BadAnswer => Unanswered::BadAnswer,
            Self::ConnectFailed | Self::Silent | Self::Busy | Self::BrokenOff | Self::Stalled => {
                Unanswered::ConnectFailed
            }
        }
    }

    /// What the failure to connect was, before anything encrypted.
    pub(super) fn of_connecting(failure: &io::Error) -> Self {
        match failure.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectRefused,
            io::ErrorKind::TimedOut => Self::ConnectTimeout,
            _ => Self::ConnectFailed,
        }
    }

    /// What ended a connection of HTTP/2: what its peer sent, or its end.
    pub(super) fn of_h2(failure: &hyper::Error) -> Self {
        let cause = failure.source().and_then(|source| source.downcast_ref::<h2::Error>());
        let is_breach = cause.is_some_and(|cause| cause.is_library() && !cause.is_io());
        if is_breach { Self::BadAnswer } else { Self::Reset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_is_read_back_with_its_second() {
        let last = LastError::default();
        assert_eq!(last.read(), None);
        for error in UpstreamError::ALL {
            last.note(error, 1_790_000_000);
            assert_eq!(last.read(), Some((error, WallTime::from_unix_seconds(1_790_000_000))));
        }
    }
}
