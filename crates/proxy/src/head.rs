//! What a proxy does to the heads of requests and answers.
//!
//! Fields that are meant for the next hop only end here (RFC 9110 §7.6.1); what could be read in two ways is refused
//! before anything is sent on; and everybody on the way says that it was there.

use std::net::IpAddr;

use http::header::{self, Entry};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use tidegate_policy::policy::ClientAddress;

use crate::client::{X_FORWARDED_FOR, node};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const MAX_FORWARDS: HeaderName = HeaderName::from_static("max-forwards");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");
const VIA_1_1: HeaderValue = HeaderValue::from_static("1.1 tidegate");
const VIA_2: HeaderValue = HeaderValue::from_static("2.0 tidegate");

/// Finds what could be read in two ways; says it in a sentence for the caller.
pub(crate) fn check<B>(request: &Request<B>) -> Result<(), &'static str> {
    if request.method() == Method::CONNECT {
        return Err("this gateway opens no tunnels");
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => Err("the request has more than one Host field"),
        (None, None) if request.version() == Version::HTTP_11 => Err("the request has no Host field"),
        (Some(host), None) if request.version() == Version::HTTP_2 && !agrees(request.uri(), host) => {
            Err("the Host field is not the authority of the request")
        }
        (Some(host), None) if !is_host(host.as_bytes()) => Err("the Host field is no host"),
        _ => Ok(()),
    }
}

fn agrees(uri: &Uri, host: &HeaderValue) -> bool {
    uri.authority()
        .is_none_or(|authority| authority.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes()))
}

/// What may stand in a host: no path, no user, no list.
fn is_host(host: &[u8]) -> bool {
    !host.iter().any(|byte| matches!(byte, b'/' | b'@' | b',' | b' ' | b'\t' | b'?' | b'#' | b'\\'))
}

/// The protocol a request asks to turn to, in lower case; none if it does not.
pub(crate) fn upgrade_of(headers: &HeaderMap) -> Option<String> {
    let asks = headers.get_all(header::CONNECTION).iter().any(|line| {
        line.to_str()
            .is_ok_and(|line| line.split(',').any(|name| name.trim().eq_ignore_ascii_case("upgrade")))
    });
    let protocol = headers.get(header::UPGRADE).filter(|_| asks)?;
    Some(protocol.to_str().ok()?.trim().to_ascii_lowercase())
}

/// What becomes of `Max-Forwards`.
pub(crate) enum Forwards {
    /// It goes on, counted down if it was there.
    On,
    /// It ends here: the answer is ours.
    EndsHere,
}

/// Counts `Max-Forwards` down, for the two methods that have it.
pub(crate) fn count_forwards(method: &Method, headers: &mut HeaderMap) -> Forwards {
    if !matches!(*method, Method::TRACE | Method::OPTIONS) {
        return Forwards::On;
    }
    let Entry::Occupied(mut entry) = headers.entry(MAX_FORWARDS) else { return Forwards::On };
    let left = entry.get().to_str().ok().and_then(|text| text.trim().parse::<u32>().ok());
    match left {
        Some(0) => Forwards::EndsHere,
        Some(left) => {
            entry.insert(HeaderValue::from(left - 1));
            Forwards::On
        }
        None => Forwards::On,
    }
}

/// Takes away what was meant for us alone. The fields of an upgrade stay where the route allows it.
pub(crate) fn strip(headers: &mut HeaderMap, is_upgrade: bool) {
    if headers.contains_key(header::CONNECTION) {
        // Nearly always empty, and then it takes no memory.
        let lines = headers.get_all(header::CONNECTION).iter().filter_map(|line| line.to_str().ok());
        let named: Vec<HeaderName> =
            lines.flat_map(|line| line.split(',')).filter_map(|name| ends_here(name.trim())).collect();
        headers.remove(header::CONNECTION);
        for name in named {
            headers.remove(name);
        }
    }
    headers.remove(KEEP_ALIVE);
    headers.remove(PROXY_CONNECTION);
    headers.remove(header::TRANSFER_ENCODING);
    if is_upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    } else {
        headers.remove(header::UPGRADE);
    }
}

/// A field that `Connection` says is for us alone. What every message needs is not: naming it there is an attempt
/// to have it taken away.
fn ends_here(name: &str) -> Option<HeaderName> {
    let is_usual =
        ["keep-alive", "close", "upgrade", "te"].iter().any(|usual| name.eq_ignore_ascii_case(usual));
    let name: HeaderName = if is_usual { return None } else { name.parse().ok()? };
    (name != header::HOST && name != header::CONTENT_LENGTH).then_some(name)
}

/// Keeps of `TE` what goes on: the caller's word that it takes trailers.
fn keep_trailers(headers: &mut HeaderMap) {
    let Entry::Occupied(mut entry) = headers.entry(header::TE) else { return };
    let takes = entry.iter().any(|line| {
        line.to_str()
            .is_ok_and(|line| line.split(',').any(|word| word.trim().eq_ignore_ascii_case("trailers")))
    });
    if takes {
        entry.insert(TRAILERS);
    } else {
        entry.remove();
    }
}

/// From whom a request came to us.
pub(crate) struct Hop {
    pub(crate) peer: IpAddr,
    pub(crate) is_trusted: bool,
    pub(crate) is_tls: bool,
    pub(crate) says: ClientAddress,
}

/// Makes a request ready to be sent on.
pub(crate) fn send_on<B>(request: &mut Request<B>, hop: &Hop, is_upgrade: bool) {
    let via = if request.version() == Version::HTTP_2 { VIA_2 } else { VIA_1_1 };
    take_authority(request);
    let headers = request.headers_mut();
    strip(headers, is_upgrade);
    keep_trailers(headers);
    headers.append(header::VIA, via);
    let proto = if hop.is_tls { "https" } else { "http" };
    match hop.says {
        ClientAddress::Forwarded => {
            let element = format!("for={};proto={proto}", node(hop.peer));
            if let Ok(element) = HeaderValue::try_from(element) {
                headers.append(header::FORWARDED, element);
            }
        }
        ClientAddress::XForwardedFor | ClientAddress::ProxyProtocol => {
            append_peer(headers, hop.peer);
            if !hop.is_trusted || !headers.contains_key(X_FORWARDED_PROTO) {
                headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(proto));
            }
        }
    }
    *request.version_mut() = Version::HTTP_11;
}

/// Adds the peer to `X-Forwarded-For`, as one line.
fn append_peer(headers: &mut HeaderMap, peer: IpAddr) {
    let mut lines = headers.get_all(X_FORWARDED_FOR).iter().peekable();
    let value = if lines.peek().is_none() {
        peer.to_string()
    } else {
        let mut all = String::new();
        for line in lines.filter_map(|line| line.to_str().ok()) {
            all.push_str(line);
            all.push_str(", ");
        }
        all + &peer.to_string()
    };
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(X_FORWARDED_FOR, value);
    }
}

/// Where the request's target has an authority, it is the host; what is sent on has it in the field alone.
fn take_authority<B>(request: &mut Request<B>) {
    let Some(authority) = request.uri().authority() else { return };
    let host = HeaderValue::try_from(authority.as_str());
    let path = request.uri().path_and_query().cloned();
    if let Ok(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
}

/// Makes an answer ready to be sent on.
pub(crate) fn send_back(headers: &mut HeaderMap, version: Version, is_upgrade: bool) {
    strip(headers, is_upgrade);
    headers.append(header::VIA, if version == Version::HTTP_2 { VIA_2 } else { VIA_1_1 });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop() -> Hop {
        let peer = [203, 0, 113, 7].into();
        Hop { peer, is_trusted: false, is_tls: false, says: ClientAddress::XForwardedFor }
    }

    fn sent_on(request: http::request::Builder) -> Request<()> {
        let mut request = request.body(()).unwrap();
        send_on(&mut request, &hop(), false);
        request
    }

    #[test]
    fn what_is_meant_for_us_ends_here() {
        let request = Request::get("/")
            .header("host", "a")
            .header("connection", "close, X-Secret")
            .header("connection", "host, x-other")
            .header("x-secret", "1")
            .header("x-other", "1")
            .header("keep-alive", "timeout=5")
            .header("proxy-connection", "keep-alive")
            .header("te", "gzip, trailers")
            .header("upgrade", "h2c")
            .header("x-kept", "1");
        let request = sent_on(request);
        let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["host", "te", "via", "x-forwarded-for", "x-forwarded-proto", "x-kept"]);
        assert_eq!(request.headers()["te"], "trailers");
    }

    #[test]
    fn everybody_on_the_way_is_named() {
        let request = Request::get("/").header("x-forwarded-for", "a").header("x-forwarded-for", "b");
        let request = sent_on(request.header("via", "1.0 first").header("x-forwarded-proto", "https"));
        assert_eq!(request.headers()["x-forwarded-for"], "a, b, 203.0.113.7");
        assert_eq!(request.headers()["x-forwarded-proto"], "http", "a stranger is not believed");
        assert_eq!(request.headers().get_all("via").iter().count(), 2);
    }

    #[test]
    fn the_targets_authority_becomes_the_host() {
        let request = sent_on(Request::get("http://b:81/x?y").header("host", "a"));
        assert_eq!(
            (request.uri().to_string().as_str(), &request.headers()["host"]),
            ("/x?y", &"b:81".parse().unwrap())
        );
    }

    #[test]
    fn hosts_must_be_clear() {
        let of = |version, hosts: &[&str]| {
            let request =
                hosts.iter().fold(Request::get("/").version(version), |it, host| it.header("host", *host));
            check(&request.body(()).unwrap())
        };
        assert!(of(Version::HTTP_11, &["a"]).is_ok());
        assert!(of(Version::HTTP_11, &[]).is_err());
        assert!(of(Version::HTTP_10, &[]).is_ok());
        assert!(of(Version::HTTP_11, &["a", "a"]).is_err());
        assert!(of(Version::HTTP_11, &["a/b"]).is_err());
        assert!(of(Version::HTTP_11, &["a,b"]).is_err());
    }

    #[test]
    fn forwards_are_counted_down() {
        let mut headers = HeaderMap::from_iter([(MAX_FORWARDS, HeaderValue::from(1))]);
        assert!(matches!(count_forwards(&Method::OPTIONS, &mut headers), Forwards::On));
        assert_eq!(headers[MAX_FORWARDS], "0");
        assert!(matches!(count_forwards(&Method::GET, &mut headers), Forwards::On));
        assert!(matches!(count_forwards(&Method::OPTIONS, &mut headers), Forwards::EndsHere));
    }
}
