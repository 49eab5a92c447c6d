//! What the gate is told of a request.
//!
//! An [`Identify`] turns a request into [`Attributes`], borrowed from it. [`HttpIdentify`] does so for HTTP:
//!
//! | attribute   | comes from |
//! |-------------|------------|
//! | method      | the request line |
//! | path        | the request's target, with all spellings of one path made the [same](tidegate_policy::path) |
//! | host        | the target, else the `Host` field; in [one spelling](authority), without the port |
//! | headers     | the header fields; `host` is the same with the port, cookies over HTTP/2 are one line |
//! | client      | the [`Peer`] among the request's extensions, which the server put there |
//! | criticality | `x-criticality`, else `baggage`; from a trusted peer only, for everybody would be critical |
//!
//! What can be read in two ways is no attribute but [`Unclear`], and answered with 400.

pub mod authority;
pub mod method;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, Version, header};
use tidegate_core::Criticality;
use tidegate_policy::path::{Canonical, canonical, without_parameters};
use tidegate_policy::policy::CriticalitySource;
use tidegate_policy::{Attributes, Field, Gate, Headers, Policy};

/// Finds out what the gate is told of a request.
pub trait Identify<R> {
    /// Asks `question` with the facts about `request`. They are lent, so that a usual request is identified
    /// without copying anything.
    ///
    /// # Errors
    /// When the request can be read in two ways, and a rule could be walked around.
    fn identify<T>(&self, request: &R, question: impl FnOnce(&Attributes<'_>) -> T) -> Result<T, Unclear>;
}

/// A request that can be read in two ways. It is answered with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclear {
    /// What is unclear, as a sentence for the caller.
    pub what: &'static str,
}

/// Who sent the request: put among a request's extensions by whoever accepted the connection.
///
/// ```
/// use tidegate_tower::identify::Peer;
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Peer::new([192, 0, 2, 1].into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    address: IpAddr,
    is_trusted: bool,
}

impl Peer {
    /// A stranger at this address.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self { address, is_trusted: false }
    }

    /// The same peer, believed in what it says about a request: one of our own proxies.
    #[must_use]
    pub const fn trusted(self) -> Self {
        Self { is_trusted: true, ..self }
    }

    /// Its address.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }
}

/// Identifies HTTP requests, looking for what the gate's policy of the moment wants to know.
#[derive(Clone, Debug)]
pub struct HttpIdentify {
    gate: Arc<Gate>,
    unclear_paths: UnclearPaths,
}

/// What to do with a path that services read in different ways: an escaped slash, backslash or NUL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnclearPaths {
    /// Answer 400 where the policy looks at paths: what a rule cannot match safely does not pass.
    #[default]
    RefuseWhereMatched,
    /// Match it with the escape as it is, and let it pass.
    Keep,
}

impl HttpIdentify {
    /// Identifies requests for `gate`.
    #[must_use]
    pub const fn new(gate: Arc<Gate>) -> Self {
        Self { gate, unclear_paths: UnclearPaths::RefuseWhereMatched }
    }

    /// The same, with another answer to unclear paths.
    #[must_use]
    pub fn unclear_paths(self, unclear_paths: UnclearPaths) -> Self {
        Self { unclear_paths, ..self }
    }
}

impl<B> Identify<Request<B>> for HttpIdentify {
    fn identify<T>(
        &self,
        request: &Request<B>,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        self.identify_from(request.extensions().get::<Peer>().copied(), request, question)
    }
}

impl HttpIdentify {
    /// Identifies a request whose sender is known.
    ///
    /// # Errors
    /// When the request can be read in two ways, and a rule could be walked around.
    pub fn identify_from<B, T>(
        &self,
        peer: Option<Peer>,
        request: &Request<B>,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        let is_repeated = |headers: &dyn Headers| self.gate.matches_repeated(headers);
        told((peer, request), self.unclear_paths, || self.gate.policy(), is_repeated, question)
    }

    /// Identifies a request by its head as it will be sent on.
    pub fn identify_head<T>(&self, head: &HeadFacts<'_>, question: impl FnOnce(&Attributes<'_>) -> T) -> T {
        let said = |headers| said(&self.gate.policy(), headers);
        question(&Attributes {
            method: head.method,
            path: as_path(head.path),
            host: authority::without_port(head.authority),
            headers: head.headers,
            client: head.client,
            criticality: head.believed.and_then(said),
        })
    }

    /// Whether anything depends on the host.
    #[must_use]
    pub fn looks_at_hosts(&self) -> bool {
        self.gate.policy().looks_at_hosts()
    }

    /// The path of a request as it is to be sent on; none where that is as it came.
    ///
    /// # Errors
    /// When services read it in two ways, and the policy looks at paths.
    pub fn path_to_send(&self, path: &str) -> Result<Option<String>, Unclear> {
        if path == "*" {
            return Ok(None);
        }
        let found = canonical(path);
        if found == (Canonical { path: Cow::Borrowed(path), unclear: None }) && !path.contains(';') {
            return Ok(None);
        }
        let policy = self.gate.policy();
        check_path(&found, without_parameters(&found.path), self.unclear_paths, &policy)?;
        Ok((found.path != path && policy.looks_at_paths()).then(|| found.path.into_owned()))
    }
}

/// Identifies a request whose sender is known as [`HttpIdentify`] does for a gate of this policy.
///
/// # Errors
/// When the request can be read in two ways, and a rule could be walked around.
pub fn identify_by<B, T>(
    policy: &Policy,
    peer: Option<Peer>,
    request: &Request<B>,
    question: impl FnOnce(&Attributes<'_>) -> T,
) -> Result<T, Unclear> {
    let is_repeated = |headers: &dyn Headers| policy.matches_repeated(headers);
    told((peer, request), UnclearPaths::default(), || policy, is_repeated, question)
}

/// The head of a request as it will be sent on, wherever it lies.
#[derive(Clone, Copy)]
pub struct HeadFacts<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
    /// The host in its [one spelling](authority::canonical), with its port; empty where there is none.
    pub authority: &'a str,
    /// The header fields.
    pub headers: &'a dyn Headers,
    /// Who sent it.
    pub client: Option<IpAddr>,
    /// The header fields of a peer that is believed in what it says of criticality.
    pub believed: Option<&'a HeaderMap>,
}

impl fmt::Debug for HeadFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, path, authority, client, .. } = self;
        let mut facts = f.debug_struct("HeadFacts");
        facts.field("method", method).field("path", path).field("authority", authority);
        facts.field("client", client).finish_non_exhaustive()
    }
}

/// A request as it came, for a service that gets it so. Most are told without a look at the policy, so it is asked for
/// only then.
fn told<B, T, P: Deref<Target = Policy>>(
    (peer, request): (Option<Peer>, &Request<B>),
    unclear_paths: UnclearPaths,
    policy: impl Fn() -> P,
    is_repeated: impl FnOnce(&dyn Headers) -> bool,
    question: impl FnOnce(&Attributes<'_>) -> T,
) -> Result<T, Unclear> {
    if method::is_misspelt(request.method()) {
        return Err(Unclear { what: "the method is a registered one in another case" });
    }
    let is_h2 = request.version() == Version::HTTP_2;
    if is_h2 && request.headers().values().any(has_blanks) {
        return Err(BLANKS);
    }
    let authority = authority_of(request)?;
    let found = canonical(request.uri().path());
    let headers =
        Fields { fields: request.headers(), authority: &authority, is_h2, cookies: OnceCell::new() };
    let bare = without_parameters(request.uri().path());
    if found.unclear.is_some() || bare.is_some() {
        let other = bare.map(|bare| canonical(&bare).path.into_owned());
        check_path(&found, other, unclear_paths, &policy())?;
    }
    if is_repeated(&headers) {
        return Err(REPEATED);
    }
    let is_trusted = peer.is_some_and(|peer| peer.is_trusted);
    Ok(question(&Attributes {
        method: request.method().as_str(),
        path: &found.path,
        host: authority::without_port(&authority),
        headers: &headers,
        client: peer.map(|peer| peer.address),
        criticality: if is_trusted { said(&policy(), request.headers()) } else { None },
    }))
}

/// What stands for the whole service, as a path: so it is one of all.
fn as_path(path: &str) -> &str {
    if path == "*" { "/*" } else { path }
}

/// What is answered where a field that the policy matches has several lines.
pub const REPEATED: Unclear =
    Unclear { what: "a header field by which requests are told apart here was sent more than once" };

/// What is answered where a value over HTTP/2 is not what it will be to others (RFC 9113 §8.2.1).
pub const BLANKS: Unclear = Unclear { what: "a header field begins or ends with a blank" };

/// Whether there are blanks around a value, which HTTP/1 takes away and HTTP/2 does not allow.
#[must_use]
pub fn has_blanks(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    matches!(bytes, [b' ' | b'\t', ..] | [.., b' ' | b'\t'])
}

/// An unclear path is refused where the policy looks at paths, and one with a semicolon where its two readings differ.
fn check_path(
    found: &Canonical<'_>,
    other: Option<String>,
    unclear_paths: UnclearPaths,
    policy: &Policy,
) -> Result<(), Unclear> {
    if unclear_paths == UnclearPaths::Keep || !policy.looks_at_paths() {
        return Ok(());
    }
    if let Some(what) = found.unclear {
        return Err(Unclear { what });
    }
    match other {
        Some(other) if !policy.reads_alike(&found.path, &other) => {
            Err(Unclear { what: "the path has a semicolon, and rules depend on how it is read" })
        }
        Some(_) | None => Ok(()),
    }
}

/// The target's own host wins over the field: so says RFC 9112, and so do servers.
fn authority_of<B>(request: &Request<B>) -> Result<Cow<'_, str>, Unclear> {
    const NO_HOST: Unclear = Unclear { what: "the Host field is no host" };
    if let Some(authority) = request.uri().authority() {
        return authority::canonical(authority.as_str().as_bytes()).ok_or(NO_HOST);
    }
    let mut lines = request.headers().get_all(header::HOST).iter();
    let Some(host) = lines.next() else { return Ok(Cow::Borrowed("")) };
    if lines.next().is_some() {
        return Err(Unclear { what: "the request has more than one Host field" });
    }
    authority::canonical(host.as_bytes()).ok_or(NO_HOST)
}

/// What a trusted peer says.
fn said(policy: &Policy, headers: &HeaderMap) -> Option<Criticality> {
    policy.criticality_from.iter().find_map(|source| match source {
        CriticalitySource::Header(name) => headers.get(name)?.to_str().ok()?.trim().parse().ok(),
        CriticalitySource::Baggage(member) => in_baggage(headers, member),
    })
}

/// Header fields of HTTP as a policy reads them.
#[derive(Debug)]
struct Fields<'a> {
    fields: &'a HeaderMap,
    authority: &'a str,
    is_h2: bool,
    /// Over HTTP/2 in pieces, each a field of its own; joined when asked for (RFC 9113 §8.2.3).
    cookies: OnceCell<Vec<u8>>,
}

/// With so many fields, looking at each takes no longer than to parse a name and to hash it: two of them take 170
/// instructions, the other way 400.
const FEW: usize = 4;

impl Headers for Fields<'_> {
    fn find(&self, name: &str) -> Option<Field<'_>> {
        let field = find(self.fields, name);
        match name {
            "host" if self.authority.is_empty() => None,
            "host" => Some(Field { first: self.authority.as_bytes(), is_repeated: false }),
            "cookie" if self.is_h2 && field.is_some_and(|field| field.is_repeated) => {
                let lines = self.fields.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes);
                let pieces = lines.filter(|piece| !piece.is_empty());
                let first = self.cookies.get_or_init(|| pieces.collect::<Vec<_>>().join(&b"; "[..]));
                Some(Field { first, is_repeated: false })
            }
            _ => field,
        }
    }
}

/// The field with this name, which is in lower case.
#[must_use]
pub fn find<'a>(fields: &'a HeaderMap, name: &str) -> Option<Field<'a>> {
    if fields.len() > FEW {
        return Field::of_lines(fields.get_all(name).iter().map(HeaderValue::as_bytes));
    }
    let lines = fields.iter().filter(|(written, _)| written.as_str() == name);
    Field::of_lines(lines.map(|(_, value)| value.as_bytes()))
}

/// A member of the `baggage` field: `criticality=sheddable;property, other=1`.
fn in_baggage(headers: &HeaderMap, member: &str) -> Option<Criticality> {
    let lines = headers.get_all("baggage").iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(|entry| {
        let entry = entry.split(';').next()?;
        let (name, value) = entry.split_once('=')?;
        if name.trim() == member { value.trim().parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use tidegate_policy::{Now, Source, read};

    use super::*;

    #[test]
    fn few_fields_and_many_are_looked_through_alike() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-key", "a"), ("host", "b"), ("x-key", "c"), ("via", "d")] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        for number in 0..2 * FEW {
            let found = |name| find(&headers, name).map(|field| (field.first, field.is_repeated));
            assert_eq!(found("x-key"), Some((b"a".as_slice(), true)));
            assert_eq!(found("host"), Some((b"b".as_slice(), false)));
            assert_eq!(found("via"), Some((b"d".as_slice(), false)));
            assert_eq!((found("x-ke"), found("accept")), (None, None));
            let other = HeaderName::try_from(format!("x-other-{number}")).unwrap();
            headers.insert(other, HeaderValue::from_static("e"));
        }
    }

    fn identify() -> HttpIdentify {
        let text = br#"
            [criticality]
            from = ["header:x-criticality", "baggage:criticality"]
            [rule.per_path]
            key = "path"
            quota = "10/s"
        "#;
        let (policy, _warnings) = read(Source::named("policy.toml", text), None).unwrap();
        HttpIdentify::new(Arc::new(Gate::new(policy, 7, Now::default()).unwrap()))
    }

    fn criticality(request: &Request<()>) -> Option<Criticality> {
        identify().identify(request, |attributes| attributes.criticality).unwrap()
    }

    #[test]
    fn a_request_is_told_as_in_the_table() {
        let request = Request::post("/v1//orders?x=1").header("host", "API.example:8080").header("a", "1");
        let mut request = request.header("a", "2").body(()).unwrap();
        request.extensions_mut().insert(Peer::new([192, 0, 2, 1].into()));
        let answer = identify().identify(&request, |attributes| {
            assert_eq!((attributes.method, attributes.path), ("POST", "/v1/orders"));
            assert_eq!(attributes.host, "api.example");
            assert_eq!(attributes.headers.first("host"), Some(&b"api.example:8080"[..]));
            assert_eq!(attributes.client, Some([192, 0, 2, 1].into()));
            assert_eq!(attributes.headers.first("a"), Some(&b"1"[..]));
            let is_repeated = |name| attributes.headers.find(name).map(|field| field.is_repeated);
            assert_eq!((is_repeated("a"), is_repeated("host")), (Some(true), Some(false)));
            7
        });
        assert_eq!(answer, Ok(7));
    }

    #[test]
    fn the_targets_host_wins_and_no_host_is_empty() {
        let of = |request: Request<()>| {
            let identify = identify();
            identify.identify_from(None, &request, |attributes| attributes.host.to_owned()).unwrap()
        };
        assert_eq!(of(Request::get("http://a:1/").header("host", "b").body(()).unwrap()), "a");
        assert_eq!(of(Request::get("/").body(()).unwrap()), "");
        assert_eq!(of(Request::get("/").header("host", "[::1]:80").body(()).unwrap()), "[::1]");
        assert_eq!(of(Request::get("/").header("host", "[::1]").body(()).unwrap()), "[::1]");
    }

    #[test]
    fn criticality_is_believed_from_trusted_peers_only() {
        let mut request = Request::get("/").header("x-criticality", "sheddable").body(()).unwrap();
        assert_eq!(criticality(&request), None);
        let stranger = Peer::new([192, 0, 2, 1].into());
        request.extensions_mut().insert(stranger);
        assert_eq!(criticality(&request), None);
        request.extensions_mut().insert(stranger.trusted());
        assert_eq!(criticality(&request), Some(Criticality::Sheddable));
    }

    #[test]
    fn baggage_is_searched_over_all_its_lines() {
        let request = Request::get("/").header("baggage", "other=1, x").header("x-criticality", "odd");
        let request = request.header("baggage", "a=b;c=d , criticality = critical_plus;p=1");
        let mut request = request.body(()).unwrap();
        request.extensions_mut().insert(Peer::new([192, 0, 2, 1].into()).trusted());
        assert_eq!(criticality(&request), Some(Criticality::CriticalPlus));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused_here_too() {
        let text = b"[rule.a]\nquota = '1/s'\nkey = ['header:cookie', 'path']\n\
            [[route]]\nmatch = { header = { x-tier = 'free' } }\n[[route]]";
        let (policy, _warnings) = read(Source::named("policy.toml", text), None).unwrap();
        let ask = |request: http::request::Builder| {
            let cookie = |attributes: &Attributes<'_>| {
                attributes.headers.first("cookie").map(|cookie| String::from_utf8_lossy(cookie).into_owned())
            };
            identify_by(&policy, None, &request.body(()).unwrap(), cookie).map_err(|unclear| unclear.what)
        };
        let h2 = || Request::get("http://a/").version(Version::HTTP_2);
        assert_eq!(
            ask(h2().header("cookie", "a=1").header("cookie", "").header("cookie", "b=2")),
            Ok(Some("a=1; b=2".to_owned()))
        );
        assert_eq!(ask(h2().header("x-kept", "1")), Ok(None));
        for refused in [
            h2().header("cookie", "a=1 "),
            h2().header("x-tier", "free").header("x-tier", "gold"),
            Request::builder().method("get").uri("/"),
            Request::get("/").header("host", "a..b"),
            Request::get("/").header("host", "a").header("host", "a"),
            Request::get("/a;b"),
        ] {
            assert!(ask(refused).is_err());
        }
    }

    #[test]
    fn an_unclear_path_is_refused_unless_it_is_kept() {
        let request = Request::get("/v1/a%2Fb").body(()).unwrap();
        assert!(identify().identify(&request, |_| ()).is_err());
        let kept = identify().unclear_paths(UnclearPaths::Keep);
        assert_eq!(kept.identify(&request, |attributes| attributes.path.to_owned()).unwrap(), "/v1/a%2Fb");
    }
}
