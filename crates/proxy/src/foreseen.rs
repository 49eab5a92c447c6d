//! What a gateway would make of a request that nobody has sent, up to the decision about it.

use std::net::IpAddr;

use http::Request;
use tidegate_policy::Attributes;
use tidegate_policy::policy::Policy;
use tidegate_tower::Peer;
use tidegate_tower::identify::identify_by;

use crate::client::forwarded_for;
use crate::head::fields::Meant;
use crate::head::{Hop, SentHost, Unfit, arrange, check};

/// Asks `question` with what a gateway of this policy would tell its gate of a request that comes `from` there; without
/// an address, from a stranger of whom nothing is known. A request that names no host is one to no host in particular.
///
/// # Errors
/// With what the gateway would answer, in words.
pub fn foresee<T>(
    policy: &Policy,
    from: Option<IpAddr>,
    mut request: Request<()>,
    question: impl FnOnce(&Attributes<'_>) -> T,
) -> Result<T, String> {
    let answers = |status: u16, why: &str| format!("the gateway answers {status}: {why}");
    let names_none = request.uri().authority().is_none() && !request.headers().contains_key("host");
    let host = match check(&request) {
        Ok(host) => host,
        Err(Unfit::Trace) => return Err(answers(405, "TRACE would tell what is added on the way")),
        Err(Unfit::Unclear(_)) if names_none && check(&at_home(&request)).is_ok() => SentHost::Nowhere,
        Err(Unfit::Unclear(what)) => return Err(answers(400, what)),
    };
    let server = &policy.server;
    let from = from.map(|from| from.to_canonical());
    let is_trusted = from.is_some_and(|from| server.trusts(from));
    let hop = Hop::new(from.unwrap_or(IpAddr::from([0, 0, 0, 0])), is_trusted, false);
    arrange(&mut request, host, &hop, (&Meant::new(policy), server.client_address));
    let peer = from.map(|from| match is_trusted {
        true => Peer::new(forwarded_for(server, from, request.headers())).trusted(),
        false => Peer::new(from),
    });
    identify_by(policy, peer, &request, question).map_err(|unclear| answers(400, unclear.what))
}

/// The same request with a host, to see whether anything else is wrong with it.
fn at_home(request: &Request<()>) -> Request<()> {
    let mut request = request.clone();
    request.headers_mut().insert("host", http::HeaderValue::from_static("localhost"));
    request
}
