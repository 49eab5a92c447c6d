//! Who may ask over the admin API, and where.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tidegate_policy::policy::{Policy, Secret};

use super::keeper::Keeper;
use crate::admin::{Admin, StartFailure, Token};
use crate::commands::Failure;

/// Where operators ask, and the token they bring.
#[derive(Debug)]
pub(super) struct Operators {
    address: SocketAddr,
    token: Option<Token>,
}

impl Operators {
    /// As a policy says; none when it wants no admin API.
    pub(super) fn of(policy: &Policy, beside: &Path) -> Result<Option<Self>, Failure> {
        let Some(address) = policy.server.admin else { return Ok(None) };
        let token = match &policy.server.admin_token {
            None => None,
            Some(Secret::Env(name)) => Some(Token::from_env(name)),
            // As everything in a policy, it is meant from where the policy lies.
            Some(Secret::File(name)) => Some(Token::from_file(&beside.join(name))),
        };
        let token = token.transpose().map_err(|bad| Failure::new(bad.to_string()))?;
        if token.is_none() && !address.ip().is_loopback() {
            return Err(Failure::new(StartFailure::NoToken { address }.to_string()));
        }
        if let Some(listener) = policy.listeners.iter().find(|listener| is_same(listener.bind, address)) {
            let name = &listener.name;
            return Err(Failure::new(format!(
                "the admin API and listener `{name}` would both be on {address}"
            )));
        }
        Ok(Some(Self { address, token }))
    }

    /// Answers from now on.
    pub(super) fn serve(self, keeper: &Arc<Keeper>) -> Result<Admin, Failure> {
        let address = self.address;
        Admin::start(address, self.token, Arc::clone(keeper) as _).map_err(|failure| match failure {
            StartFailure::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => {
                Failure::new(format!("the admin API cannot bind {address}: another process listens there"))
            }
            other => Failure::new(other.to_string()),
        })
    }
}

/// Whether two would listen in the same place. With port 0 each gets its own.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one == other && one.port() != 0
}
