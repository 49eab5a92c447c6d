//! What the gate is told of a request.
//!
//! An [`Identify`] turns a request into [`Attributes`], borrowed from it. [`HttpIdentify`] does so for HTTP:
//!
//! | attribute   | comes from |
//! |-------------|------------|
//! | method      | the request line |
//! | path        | the request's target, with all spellings of one path made the same |
//! | host        | the target, else the `Host` field; without the port |
//! | headers     | the header fields |
//! | client      | the [`Peer`] among the request's extensions, which the server put there |
//! | criticality | `x-criticality`, else `baggage`; from a trusted peer only, for everybody would be critical |

mod path;

use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use tidegate_core::Criticality;
use tidegate_policy::policy::{CriticalitySource, KeySource};
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
        told(peer, request, self.unclear_paths, || self.gate.policy(), question)
    }

    /// Identifies a request of which there is no more than its head, and whose sender is not believed.
    ///
    /// # Errors
    /// When the request can be read in two ways, and a rule could be walked around.
    pub fn identify_head<T>(
        &self,
        facts: &HeadFacts<'_>,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        facts.told(self.unclear_paths, || self.gate.policy(), || None, question)
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
    told(peer, request, UnclearPaths::default(), || policy, question)
}

/// What the head of a request says, wherever it lies.
#[derive(Clone, Copy)]
pub struct HeadFacts<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The value of the field `Host`. It is not looked at where the target names a host.
    pub host: Option<&'a [u8]>,
    /// The header fields.
    pub headers: &'a dyn Headers,
    /// Who sent it.
    pub client: Option<IpAddr>,
}

impl fmt::Debug for HeadFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, uri, client, .. } = self;
        let mut facts = f.debug_struct("HeadFacts");
        facts.field("method", method).field("uri", uri).field("client", client).finish_non_exhaustive()
    }
}

/// Most requests are told without a look at the policy, so it is asked for only then.
fn told<B, T, P: Deref<Target = Policy>>(
    peer: Option<Peer>,
    request: &Request<B>,
    unclear_paths: UnclearPaths,
    policy: impl Fn() -> P,
    question: impl FnOnce(&Attributes<'_>) -> T,
) -> Result<T, Unclear> {
    let is_trusted = peer.is_some_and(|peer| peer.is_trusted);
    let (uri, host) = (request.uri(), || request.headers().get(header::HOST));
    let facts = HeadFacts {
        method: request.method(),
        uri,
        host: if uri.host().is_some() { None } else { host().map(HeaderValue::as_bytes) },
        headers: &Fields(request.headers()),
        client: peer.map(|peer| peer.address),
    };
    let criticality = || if is_trusted { said(&policy(), request.headers()) } else { None };
    facts.told(unclear_paths, &policy, criticality, question)
}

impl HeadFacts<'_> {
    fn told<T, P: Deref<Target = Policy>>(
        &self,
        unclear_paths: UnclearPaths,
        policy: impl Fn() -> P,
        criticality: impl FnOnce() -> Option<Criticality>,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        let normal = path::normal(self.uri.path());
        let is_refused = match unclear_paths {
            UnclearPaths::RefuseWhereMatched => normal.is_unclear && looks_at_paths(&policy()),
            UnclearPaths::Keep => false,
        };
        if is_refused {
            return Err(Unclear { what: "the path has an escaped slash, backslash or NUL" });
        }
        Ok(question(&Attributes {
            method: self.method.as_str(),
            path: &normal.path,
            host: self.host(),
            headers: self.headers,
            client: self.client,
            criticality: criticality(),
        }))
    }

    /// The target's own host wins over the field: so says RFC 9112, and so do servers.
    fn host(&self) -> &str {
        let field = || self.host.and_then(text).unwrap_or_default();
        let host = self.uri.host().unwrap_or_else(|| without_port(field()));
        // `a.test.` is `a.test`, spelled for resolvers; a route for the one is not to be walked around with the other.
        host.strip_suffix('.').unwrap_or(host)
    }
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
struct Fields<'a>(&'a HeaderMap);

/// With so many fields, looking at each takes no longer than to parse a name and to hash it: two of them take 170
/// instructions, the other way 400.
const FEW: usize = 4;

impl Headers for Fields<'_> {
    fn find(&self, name: &str) -> Option<Field<'_>> {
        if self.0.len() > FEW {
            return Field::of_lines(self.0.get_all(name).iter().map(HeaderValue::as_bytes));
        }
        let lines = self.0.iter().filter(|(written, _)| written.as_str() == name);
        Field::of_lines(lines.map(|(_, value)| value.as_bytes()))
    }
}

/// A value as text, if it is ASCII; what cannot be seen of that, stands in no field.
fn text(value: &[u8]) -> Option<&str> {
    if value.is_ascii() { str::from_utf8(value).ok() } else { None }
}

/// `[::1]:80` has colons that are no port's.
fn without_port(authority: &str) -> &str {
    let end = authority.bytes().rposition(|byte| matches!(byte, b':' | b']'));
    match end.and_then(|end| authority.split_at_checked(end)) {
        Some((host, port)) if port.starts_with(':') => host,
        _ => authority,
    }
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

fn looks_at_paths(policy: &Policy) -> bool {
    let matchers = policy.routes.iter().map(|route| &route.matcher);
    let assigned = policy.criticality.iter().map(|(matcher, _)| matcher);
    // `/**` stands for every path, however it is written.
    matchers.chain(assigned).any(|matcher| matcher.path.as_ref().is_some_and(|path| path.written() != "/**"))
        || policy.rules.iter().any(|rule| rule.key.0.contains(&KeySource::Path))
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
            let fields = Fields(&headers);
            let found = |name| fields.find(name).map(|field| (field.first, field.is_repeated));
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
            assert_eq!(attributes.host, "API.example");
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
    fn an_unclear_path_is_refused_unless_it_is_kept() {
        let request = Request::get("/v1/a%2Fb").body(()).unwrap();
        assert!(identify().identify(&request, |_| ()).is_err());
        let kept = identify().unclear_paths(UnclearPaths::Keep);
        assert_eq!(kept.identify(&request, |attributes| attributes.path.to_owned()).unwrap(), "/v1/a%2Fb");
    }
}
