//! Who may ask over the admin API, and where.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use tidegate_policy::Problem;

use super::keeper::Keeper;
use crate::admin::{Admin, StartFailure, Token};
use crate::commands::Failure;
use crate::judge::cannot_bind;

/// Where operators ask, and the token they bring.
#[derive(Debug)]
pub(super) struct Operators {
    address: SocketAddr,
    token: Option<Token>,
}

/// Why the admin API is not served.
#[derive(Debug)]
pub(super) enum NotServed {
    /// Its address is not to be had; with what the system calls that.
    Kept(Box<(Problem, ErrorKind)>),
    Failed(Failure),
}

impl Operators {
    /// As a policy says; none when it wants no admin API.
    pub(super) fn of(address: Option<SocketAddr>, token: Option<Token>) -> Option<Self> {
        address.map(|address| Self { address, token })
    }

    /// Answers from now on.
    pub(super) fn serve(self, keeper: &Arc<Keeper>) -> Result<Admin, NotServed> {
        let address = self.address;
        Admin::start(address, self.token, Arc::clone(keeper) as _).map_err(|failure| match failure {
            StartFailure::Listen { source, .. } => {
                let problem = cannot_bind("server.admin", "the admin API", address, &source);
                NotServed::Kept(Box::new((problem, source.kind())))
            }
            other => NotServed::Failed(Failure::new(other.to_string())),
        })
    }
}
