//! What a proxy does to the heads of requests and answers.
//!
//! Fields that are meant for the next hop only end here (RFC 9110 §7.6.1); what could be read in two ways is refused
//! before anything is sent on; and everybody on the way says that it was there.

pub(crate) mod fields;

use std::net::IpAddr;

use http::header::{self, Entry};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, Version};
use tidegate_policy::Field;
use tidegate_policy::policy::{ClientAddress, Endpoint};
use tidegate_tower::identify::{BLANKS, authority, has_blanks, method};

use self::fields::{Meant, SentBy};
use crate::client::{X_FORWARDED_FOR, node};
use crate::connection::http1::{RawRequest, STAR, check_signs, may_be_ended};
use crate::http1::Flaw;
use crate::http1::lines::words;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const MAX_FORWARDS: HeaderName = HeaderName::from_static("max-forwards");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");
const VIA_1_1: HeaderValue = HeaderValue::from_static("1.1 tidegate");
const VIA_2: HeaderValue = HeaderValue::from_static("2.0 tidegate");

/// How many fields are added to a request at most.
const ADDED: usize = 3;

/// What of a request is looked at before anything else.
pub(crate) trait Outline {
    fn method(&self) -> &Method;
    fn uri(&self) -> &Uri;
    fn version(&self) -> Version;
    fn host(&self) -> Option<Field<'_>>;

    /// Looks at what is not looked at while a request is read.
    fn check_written(&self) -> Result<(), Flaw>;
}

impl<B> Outline for Request<B> {
    fn method(&self) -> &Method {
        self.method()
    }

    fn uri(&self) -> &Uri {
        self.uri()
    }

    fn version(&self) -> Version {
        self.version()
    }

    fn host(&self) -> Option<Field<'_>> {
        Field::of_lines(self.headers().get_all(header::HOST).iter().map(HeaderValue::as_bytes))
    }

    fn check_written(&self) -> Result<(), Flaw> {
        if self.version() != Version::HTTP_2 {
            return Ok(());
        }
        if self.uri().path() == "*" && self.method() != Method::OPTIONS {
            return Err(STAR);
        }
        check_signs(self.uri().path().as_bytes())?;
        if self.headers().values().any(has_blanks) { Err(BLANKS.what) } else { Ok(()) }
    }
}

impl Outline for RawRequest<'_, '_> {
    fn method(&self) -> &Method {
        self.head.method()
    }

    fn uri(&self) -> &Uri {
        self.head.uri()
    }

    fn version(&self) -> Version {
        self.head.version()
    }

    fn host(&self) -> Option<Field<'_>> {
        self.head.host()
    }

    fn check_written(&self) -> Result<(), Flaw> {
        Ok(())
    }
}

/// Why a request is not served here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It could be read in two ways.
    Unclear(Flaw),
    /// It asks what its way looks like, which is nobody's business.
    Trace,
}

impl From<Flaw> for Unfit {
    fn from(flaw: Flaw) -> Self {
        Self::Unclear(flaw)
    }
}

/// The host a request is sent on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SentHost {
    /// As its field has it.
    Written,
    /// In its one spelling.
    Named(String),
    /// It names none.
    Nowhere,
}

/// Finds what could be read in two ways; says it in a sentence for the caller. Otherwise gives the host.
pub(crate) fn check(request: &impl Outline) -> Result<SentHost, Unfit> {
    match *request.method() {
        Method::CONNECT => return Err("this gateway opens no tunnels".into()),
        Method::TRACE => return Err(Unfit::Trace),
        _ if method::is_misspelt(request.method()) => {
            return Err("the method is a registered one in another case".into());
        }
        _ => {}
    }
    request.check_written()?;
    Ok(host(request)?)
}

fn host(request: &impl Outline) -> Result<SentHost, Flaw> {
    const NO_HOST: Flaw = "the Host field is no host";
    let canonical = |host| authority::canonical(host).ok_or(NO_HOST);
    let (target, field) = (request.uri().authority(), request.host());
    if target.is_some_and(|target| target.as_str().contains('@')) {
        return Err("the target of the request names a user");
    }
    if field.is_some_and(|field| field.is_repeated) {
        return Err("the request has more than one Host field");
    }
    match (target, field, request.version()) {
        (_, None, Version::HTTP_11) => Err("the request has no Host field"),
        (None, None, Version::HTTP_2) => Err("the request names no host"),
        (None, None, _) => Ok(SentHost::Nowhere),
        (None, Some(field), _) => {
            let host = canonical(field.first)?;
            let is_written = host.as_bytes() == field.first;
            Ok(if is_written { SentHost::Written } else { SentHost::Named(host.into_owned()) })
        }
        (Some(target), field, version) => {
            let host = canonical(target.as_str().as_bytes())?;
            if let Some(field) = field
                && canonical(field.first)? != host
                && version == Version::HTTP_2
            {
                return Err("the Host field is not the authority of the request");
            }
            Ok(SentHost::Named(host.into_owned()))
        }
    }
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
pub(crate) fn count_forwards<B>(request: &mut Request<B>) -> Forwards {
    if !matches!(*request.method(), Method::TRACE | Method::OPTIONS) {
        return Forwards::On;
    }
    let Entry::Occupied(mut entry) = request.headers_mut().entry(MAX_FORWARDS) else { return Forwards::On };
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
///
/// One look over the names says what there is to do; for most messages that is one removal or none.
pub(crate) fn strip(headers: &mut HeaderMap, is_upgrade: bool) {
    let mut found = [const { None::<HeaderName> }; 6];
    for name in headers.keys() {
        let place = match *name {
            header::CONNECTION => 0,
            header::TRANSFER_ENCODING => 1,
            header::UPGRADE => 2,
            _ if *name == KEEP_ALIVE => 3,
            _ if *name == PROXY_CONNECTION => 4,
            _ if *name == HTTP2_SETTINGS => 5,
            _ => continue,
        };
        found[place] = Some(name.clone());
    }
    if found[0].is_some() {
        // Nearly always empty, and then it takes no memory.
        let lines = headers.get_all(header::CONNECTION).iter();
        let words = lines.flat_map(|line| words(line.as_bytes())).filter(|word| may_be_ended(word));
        let named: Vec<HeaderName> = words.filter_map(|word| HeaderName::from_bytes(word).ok()).collect();
        for name in named {
            headers.remove(name);
        }
    }
    if is_upgrade {
        found[2] = None;
    }
    if found[1].is_some() {
        // The chunks were the length; one that is said beside them is wrong (RFC 9112 §6.3).
        headers.remove(header::CONTENT_LENGTH);
    }
    for name in found.into_iter().flatten() {
        headers.remove(name);
    }
    if is_upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Keeps of `TE` what goes on: the caller's word that it takes trailers.
fn keep_trailers(headers: &mut HeaderMap) {
    if !headers.contains_key(header::TE) {
        return;
    }
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

/// From whom the requests of a connection come to us.
#[derive(Debug)]
pub(crate) struct Hop {
    /// Its address as `X-Forwarded-For` has it.
    pub(crate) peer: HeaderValue,
    pub(crate) address: IpAddr,
    pub(crate) is_trusted: bool,
    pub(crate) is_tls: bool,
}

impl Hop {
    pub(crate) fn new(address: IpAddr, is_trusted: bool, is_tls: bool) -> Self {
        let address = address.to_canonical();
        // An address is made of digits, dots and colons.
        let peer = HeaderValue::try_from(address.to_string());
        let peer = peer.unwrap_or(HeaderValue::from_static("unknown"));
        Self { peer, address, is_trusted, is_tls }
    }

    /// How the request came.
    pub(crate) const fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}

/// The protocol that a request asks to turn to. It waits among the request's extensions until it is known whether its
/// route allows that.
#[derive(Clone, Debug)]
struct WantedUpgrade(String);

/// Makes the head of a request what will be sent on, but for what no rule can look at: so whoever decides about it, sees
/// what the service will see.
pub(crate) fn arrange<B>(
    request: &mut Request<B>,
    host: SentHost,
    hop: &Hop,
    (meant, says): (&Meant, ClientAddress),
) {
    set_host(request, host);
    if request.headers().contains_key(header::UPGRADE)
        && let Some(wanted) = upgrade_of(request.headers())
    {
        request.extensions_mut().insert(WantedUpgrade(wanted));
    }
    if request.version() == Version::HTTP_2 {
        join_cookies(request.headers_mut());
    }
    let headers = request.headers_mut();
    strip(headers, false);
    keep_trailers(headers);
    let from = SentBy { is_trusted: hop.is_trusted, says };
    let ends = |name: &&HeaderName| !meant.goes_on(name.as_str(), from);
    // Nearly always empty, and then it takes no memory.
    let ending: Vec<HeaderName> = headers.keys().filter(ends).cloned().collect();
    for name in ending {
        headers.remove(name);
    }
    headers.reserve(ADDED);
    if says != ClientAddress::Forwarded && !(hop.is_trusted && headers.contains_key(X_FORWARDED_PROTO)) {
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(hop.scheme()));
    }
}

/// The protocol that an arranged request asks to turn to.
pub(crate) fn wanted_upgrade<B>(request: &Request<B>) -> Option<&str> {
    request.extensions().get().map(|WantedUpgrade(wanted)| wanted.as_str())
}

/// Lets an arranged request turn to the protocol it asks for.
pub(crate) fn let_upgrade<B>(request: &mut Request<B>) {
    let Some(WantedUpgrade(wanted)) = request.extensions_mut().remove() else { return };
    if let Ok(wanted) = HeaderValue::try_from(wanted) {
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        request.headers_mut().insert(header::UPGRADE, wanted);
    }
}

/// Says in an arranged request who was on its way.
pub(crate) fn send_on<B>(request: &mut Request<B>, hop: &Hop, says: ClientAddress) {
    let via = if request.version() == Version::HTTP_2 { VIA_2 } else { VIA_1_1 };
    let headers = request.headers_mut();
    headers.append(header::VIA, via);
    match says {
        ClientAddress::Forwarded => {
            let element = format!("for={};proto={}", node(hop.address), hop.scheme());
            if let Ok(element) = HeaderValue::try_from(element) {
                headers.append(header::FORWARDED, element);
            }
        }
        ClientAddress::XForwardedFor | ClientAddress::ProxyProtocol => append_peer(headers, &hop.peer),
    }
    *request.version_mut() = Version::HTTP_11;
}

/// Adds the peer to `X-Forwarded-For`, as one line.
fn append_peer(headers: &mut HeaderMap, peer: &HeaderValue) {
    let mut all = Vec::new();
    for line in headers.get_all(X_FORWARDED_FOR) {
        all.extend_from_slice(line.as_bytes());
        all.extend_from_slice(b", ");
    }
    let value = if all.is_empty() {
        Some(peer.clone())
    } else {
        all.extend_from_slice(peer.as_bytes());
        HeaderValue::try_from(all).ok()
    };
    if let Some(value) = value {
        headers.insert(X_FORWARDED_FOR, value);
    }
}

/// What is sent on has its host in the field alone.
fn set_host<B>(request: &mut Request<B>, host: SentHost) {
    if let SentHost::Named(host) = host
        && let Ok(host) = HeaderValue::try_from(host)
    {
        request.headers_mut().insert(header::HOST, host);
    }
    let (authority, path) = (request.uri().authority(), request.uri().path_and_query());
    // `http://a?x` has no slash, and over HTTP/2 a path may have none either.
    let is_bare = path.is_some_and(|path| path.as_str().starts_with('?'));
    if authority.is_none() && !is_bare {
        return;
    }
    let whole = path.cloned().filter(|_| !is_bare);
    let path = whole.or_else(|| PathAndQuery::try_from(format!("/{}", path?.as_str())).ok());
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
}

/// The same target with another path.
pub(crate) fn with_path(uri: &Uri, path: &str) -> Result<Uri, Flaw> {
    let mut parts = uri.clone().into_parts();
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    parts.path_and_query = Some(PathAndQuery::try_from(target).map_err(|_| "the path cannot be sent on")?);
    Uri::from_parts(parts).map_err(|_| "the path cannot be sent on")
}

/// HTTP/2 may cut cookies into crumbs, a line each; HTTP/1 knows only one line (RFC 9113 §8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let Entry::Occupied(mut cookies) = headers.entry(header::COOKIE) else { return };
    if cookies.iter().nth(1).is_none() {
        return;
    }
    // An empty one at the end would leave a blank there, which is lost on the way.
    let crumbs = cookies.iter().map(HeaderValue::as_bytes).filter(|crumb| !crumb.is_empty());
    let crumbs: Vec<&[u8]> = crumbs.collect();
    if let Ok(joined) = HeaderValue::try_from(crumbs.join(&b"; "[..])) {
        cookies.insert(joined);
    }
}

/// HTTP/2 has the host in the request's target instead of a field.
pub(crate) fn name_authority<B>(request: &mut Request<B>, endpoint: &Endpoint) {
    let host = request.headers_mut().remove(header::HOST);
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let authority = authority.or_else(|| Authority::try_from(endpoint.authority.as_str()).ok());
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(if endpoint.is_tls { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = parts.authority.or(authority);
    // All three parts are there, so they are a target.
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    *request.version_mut() = Version::HTTP_2;
}

/// Makes an answer ready to be sent on. A gateway need not name itself there (RFC 9110 §7.6.3).
pub(crate) fn send_back<B>(response: &mut Response<B>, is_upgrade: bool) {
    strip(response.headers_mut(), is_upgrade);
    *response.version_mut() = Version::HTTP_11;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop() -> Hop {
        Hop::new([203, 0, 113, 7].into(), false, false)
    }

    fn sent_on(request: http::request::Builder) -> Request<()> {
        let mut request = request.body(()).unwrap();
        let host = check(&request).unwrap();
        arrange(&mut request, host, &hop(), (&Meant::default(), ClientAddress::XForwardedFor));
        send_on(&mut request, &hop(), ClientAddress::XForwardedFor);
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
    fn of_two_lengths_neither_is_sent_on() {
        let mut response = Response::new(());
        response.headers_mut().insert(header::CONTENT_LENGTH, 3.into());
        response.headers_mut().insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        send_back(&mut response, false);
        assert!(response.headers().is_empty(), "{response:?}");
    }

    #[test]
    fn everybody_on_the_way_is_named() {
        let request = Request::get("/").header("host", "a");
        let request = request.header("x-forwarded-for", "a").header("x-forwarded-for", "b");
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
    fn crumbs_of_cookies_are_joined() {
        let request = Request::get("http://a/")
            .version(Version::HTTP_2)
            .header("cookie", "a=1")
            .header("cookie", "b=2");
        let request = sent_on(request);
        assert_eq!(request.headers().get_all("cookie").iter().collect::<Vec<_>>(), ["a=1; b=2"]);
        let request = Request::get("http://a/").version(Version::HTTP_2).header("cookie", "a=1");
        let request = sent_on(request.header("cookie", ""));
        assert_eq!(request.headers()["cookie"], "a=1", "without a blank for nothing");
    }

    #[test]
    fn hosts_must_be_clear() {
        let user = Request::get("http://user@a/").header("host", "a").body(()).unwrap();
        assert!(check(&user).is_err());
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
        let mut request = Request::options("*").header(MAX_FORWARDS, "1").body(()).unwrap();
        assert!(matches!(count_forwards(&mut request), Forwards::On));
        assert_eq!(request.headers()[MAX_FORWARDS], "0");
        assert!(matches!(count_forwards(&mut request), Forwards::EndsHere));
        *request.method_mut() = Method::GET;
        assert!(matches!(count_forwards(&mut request), Forwards::On));
    }
}
