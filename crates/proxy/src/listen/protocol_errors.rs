//! What goes wrong on connections before or instead of a request, by kind.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A breach of a protocol by a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// A request that is not well made, or can be read in two ways: 400.
    Malformed,
    /// A head with more fields or bytes than the listener takes: 431.
    HeadTooLarge,
    /// A target that is too long: 414.
    TargetTooLong,
    /// A connection of HTTP/2 that was ended because of what came over it.
    Http2,
    /// A handshake of TLS that failed because of what was offered.
    Tls,
    /// A header of the PROXY protocol that cannot be read, where one is required.
    ProxyHeader,
    /// A handshake or a PROXY header that did not come in time.
    Late,
}

impl ProtocolError {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::HeadTooLarge,
        Self::TargetTooLong,
        Self::Http2,
        Self::Tls,
        Self::ProxyHeader,
        Self::Late,
    ];

    /// What it is called in metrics and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::HeadTooLarge => "head_too_large",
            Self::TargetTooLong => "target_too_long",
            Self::Http2 => "http2",
            Self::Tls => "tls",
            Self::ProxyHeader => "proxy_header",
            Self::Late => "late",
        }
    }

    /// What the failure of a TLS handshake was, if it was not just that the caller left.
    pub(crate) fn of_tls(failure: &io::Error) -> Option<Self> {
        (failure.kind() == io::ErrorKind::InvalidData).then_some(Self::Tls)
    }

    /// What the failure to read a PROXY header was, if it was not just that the caller left.
    pub(crate) fn of_proxy_header(failure: &io::Error) -> Option<Self> {
        (failure.kind() == io::ErrorKind::InvalidData).then_some(Self::ProxyHeader)
    }

    /// What ended a connection of HTTP/2, if it was what came over it.
    pub(crate) fn of_h2(failure: &hyper::Error) -> Option<Self> {
        let cause = failure.source()?.downcast_ref::<h2::Error>()?;
        (cause.is_library() && !cause.is_io()).then_some(Self::Http2)
    }
}

/// How often each happened at a listener.
#[derive(Debug, Default)]
pub(crate) struct ProtocolErrors([AtomicU64; ProtocolError::ALL.len()]);

impl ProtocolErrors {
    pub(crate) fn add(&self, error: ProtocolError) {
        self.0[error as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// In the order of [`ProtocolError::ALL`].
    pub(crate) fn counts(&self) -> [u64; ProtocolError::ALL.len()] {
        ProtocolError::ALL.map(|error| self.0[error as usize].load(Ordering::Relaxed))
    }
}
