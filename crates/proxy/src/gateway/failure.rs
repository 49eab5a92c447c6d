//! What can keep a gateway from starting, or from taking a policy.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;

use tidegate_core::Invalid;
use tidegate_policy::policy::Listener;

/// Why a gateway cannot start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartFailure {
    /// An address cannot be listened on.
    Bind {
        /// The listener's name.
        listener: String,
        /// The address.
        address: SocketAddr,
        /// Why.
        problem: std::io::Error,
    },
    /// Certificate or key cannot be used.
    Tls {
        /// The listener's name.
        listener: String,
        /// Why.
        why: String,
    },
    /// A thread or its runtime cannot be made.
    Thread(std::io::Error),
    /// The policy exceeds a bound.
    Invalid(Invalid),
}

impl StartFailure {
    pub(super) fn tls(listener: &Listener, why: impl fmt::Display) -> Self {
        Self::Tls { listener: listener.name.clone(), why: why.to_string() }
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { listener, address, problem } if problem.kind() == std::io::ErrorKind::AddrInUse => {
                write!(f, "listener `{listener}` cannot bind {address}: another process listens there")
            }
            Self::Bind { listener, address, problem } => {
                write!(f, "listener `{listener}` cannot bind {address}: {problem}")
            }
            Self::Tls { listener, why } => {
                write!(f, "listener `{listener}` cannot use its certificate: {why}")
            }
            Self::Thread(problem) => write!(f, "a worker cannot be started: {problem}"),
            Self::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl Error for StartFailure {}

/// Why a policy was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakeFailure {
    /// It changes something that stays as long as the process.
    NeedsRestart(&'static str),
    /// It exceeds a bound of the gate.
    Invalid(Invalid),
}

impl fmt::Display for TakeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsRestart(what) => write!(f, "{what}, which takes a restart"),
            Self::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl Error for TakeFailure {}
