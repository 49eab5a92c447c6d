//! Everybody who takes part.
//!
//! All have one worker, keep connections on both sides, tell the upstream the caller's address in
//! `X-Forwarded-For`, and write no access log. Everything else is as shipped.

mod envoy;
mod haproxy;
mod nginx;
mod ours;

use crate::arguments::Arguments;
use crate::contender::Contender;

pub(crate) use envoy::NAME as ENVOY;
pub(crate) use nginx::NAME as NGINX;
pub(crate) use ours::NAME as OURS;

/// The contenders, ours first if it takes part.
pub(crate) fn all(arguments: &Arguments) -> Vec<Box<dyn Contender>> {
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    if let Some(program) = &arguments.ours {
        contenders.push(Box::new(ours::Ours::new(program)));
    }
    contenders.push(Box::new(nginx::Nginx));
    contenders.push(Box::new(haproxy::Haproxy));
    contenders.push(Box::new(envoy::Envoy::new(&arguments.envoy)));
    contenders
}
