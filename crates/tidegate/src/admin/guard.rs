//! Who may ask: the token, the host and the origin.
//!
//! On loopback there is no token by default, and whoever may open a connection there may ask. A browser on the same
//! machine may too, on behalf of any page it shows; two tricks would let a page do so:
//!
//! - *Rebinding*: a page's own name resolves to 127.0.0.1 the second time, so that the browser takes our answers for
//!   the page's. But it still sends the page's name as the host. So without a token we answer only those who
//!   call us by a loopback name or by the address we listen on.
//! - *Forged requests*: a page posts to us without wanting the answer. But the browser adds the page's origin. So what
//!   changes something is refused when its origin is another host than ours, or when the browser says that another
//!   site's page asks.
//!
//! And a page can send only some media types without asking first, so a body must say that it is JSON, or one of the
//! spellings of a policy where that is what is sent. A page that sends those asks first, and nobody answers.
//!
//! Whoever has the token is believed whatever the host. `/livez` and `/readyz` tell nothing and are open to all.

use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, ORIGIN, TRANSFER_ENCODING,
    WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use tidegate_core::WallTime;

use super::answer::Refusal;
use super::changes::Change;
use super::serve::Shared;
use super::station::Station;

/// What stands in `Authorization: Bearer …`. It is never written anywhere.
pub struct Token(Vec<u8>);

/// Why something is no token. Says where it was to come from, and nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadToken(String);

impl fmt::Display for BadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadToken {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// From a variable of the environment.
    ///
    /// # Errors
    /// When it is not set, or holds nothing that could stand in a header field.
    pub fn from_env(name: &str) -> Result<Self, BadToken> {
        let value =
            std::env::var(name).map_err(|_| BadToken(format!("the admin token ${name} is not set")))?;
        Self::new(&value).ok_or_else(|| BadToken(format!("the admin token ${name} {NO_TOKEN}")))
    }

    /// From a file, without the end of its line.
    ///
    /// # Errors
    /// When it cannot be read, or holds nothing that could stand in a header field.
    pub fn from_file(path: &Path) -> Result<Self, BadToken> {
        let value = fs::read_to_string(path).map_err(|problem| {
            BadToken(format!("the admin token in {} cannot be read: {problem}", path.display()))
        })?;
        Self::new(&value).ok_or_else(|| BadToken(format!("the admin token in {} {NO_TOKEN}", path.display())))
    }

    /// A token; none when it is empty or could not stand in a header field.
    #[must_use]
    pub fn new(value: &str) -> Option<Self> {
        let value = value.trim();
        let is_one_word = value.bytes().all(|byte| byte.is_ascii_graphic());
        (!value.is_empty() && is_one_word).then(|| Self(value.as_bytes().to_vec()))
    }

    /// As it is sent.
    pub(crate) fn field(&self) -> String {
        format!("Bearer {}", String::from_utf8_lossy(&self.0))
    }

    /// Whether this is it. Takes as long for a wrong one as for the right one, so that time tells nothing but the
    /// length.
    fn is(&self, given: &[u8]) -> bool {
        let differing = self.0.iter().zip(given).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
        self.0.len() == given.len() && differing == 0
    }
}

const NO_TOKEN: &str = "must be one word of visible ASCII characters";

/// Who asks: at the other end of the connection, with the token or without.
#[derive(Clone, Debug)]
pub(super) struct By(String);

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker(pub(super) SocketAddr);

impl By {
    /// Keeps what was changed.
    pub(super) fn changed(
        &self,
        station: &dyn Station,
        what: String,
        was: String,
        now: String,
        until: Option<WallTime>,
    ) {
        let at = station.now().wall;
        station.changes().record(Change { at, by: self.0.clone(), what, was, now, until });
    }
}

impl FromRequestParts<Shared> for By {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Infallible> {
        let from = parts.extensions.get::<Asker>().map(|Asker(address)| address.ip().to_string());
        let from = from.unwrap_or_else(|| "an unknown address".to_owned());
        Ok(Self(if shared.token.is_some() { format!("admin_token from {from}") } else { from }))
    }
}

/// Lets pass who may ask.
pub(super) async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    if matches!(request.uri().path(), "/livez" | "/readyz") {
        return next.run(request).await;
    }
    match may_ask(&shared, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn may_ask(shared: &Shared, request: &Request) -> Result<(), Refusal> {
    let headers = request.headers();
    match &shared.token {
        Some(token) => has_token(headers, token)?,
        None => has_our_host(request, shared.address.ip())?,
    }
    if request.method().is_safe() {
        return Ok(());
    }
    has_our_origin(headers)?;
    is_from_our_site(headers)?;
    has_our_type(request.uri().path(), headers)
}

fn has_token(headers: &HeaderMap, token: &Token) -> Result<(), Refusal> {
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let given = given.and_then(|field| {
        let (scheme, rest) = field.split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(rest)
    });
    let challenge = |detail: &str| {
        let field = HeaderValue::from_static("Bearer realm=\"tidegate admin\"");
        Refusal::new(StatusCode::UNAUTHORIZED, detail).with(WWW_AUTHENTICATE, field)
    };
    match given {
        None => Err(challenge("a token is needed: send `Authorization: Bearer …`")),
        Some(given) if token.is(given) => Ok(()),
        Some(_) => Err(challenge("the token is not the right one")),
    }
}

fn has_our_host(request: &Request, bound: IpAddr) -> Result<(), Refusal> {
    let host = only(request.headers(), &HOST).and_then(host_of);
    // A whole URL may stand in the first line, whose host counts then.
    let named = request.uri().host().is_none_or(|host| is_ours(host, bound));
    if named && host.is_some_and(|host| is_ours(host, bound)) {
        return Ok(());
    }
    let detail = "without a token only loopback names and addresses are answered, so that no page in a browser can ask: \
                  use 127.0.0.1 or localhost, or set `admin_token`";
    Err(Refusal::new(StatusCode::FORBIDDEN, detail))
}

fn is_ours(host: &str, bound: IpAddr) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    match address {
        Ok(address) => address.is_loopback() || address == bound,
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Whoever sends no origin is no browser.
fn has_our_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let origin = only(headers, &ORIGIN).and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    let host = only(headers, &HOST);
    if origin.zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    let detail = "the request comes from a page of another host, which may not change anything here";
    Err(Refusal::new(StatusCode::FORBIDDEN, detail))
}

/// What a browser says of itself: whether the page that asks is of this origin, or nobody's.
fn is_from_our_site(headers: &HeaderMap) -> Result<(), Refusal> {
    let site = HeaderName::from_static("sec-fetch-site");
    if !headers.contains_key(&site) || matches!(only(headers, &site), Some("same-origin" | "none")) {
        return Ok(());
    }
    let detail = "the request comes from a page of another site, which may not change anything here";
    Err(Refusal::new(StatusCode::FORBIDDEN, detail))
}

/// Whether what is sent says that it is what is taken there. Policies have several spellings, and their own check.
fn has_our_type(path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
    let is_policy = matches!(path, "/api/v1/policy" | "/api/v1/policy/check");
    let is_empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
    let is_empty = is_empty && !headers.contains_key(TRANSFER_ENCODING);
    if is_policy || is_empty && !headers.contains_key(CONTENT_TYPE) {
        return Ok(());
    }
    let written = only(headers, &CONTENT_TYPE).unwrap_or_default();
    if written.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let found = if written.is_empty() { "nothing".to_owned() } else { format!("`{written}`") };
    let detail = format!("the content-type says {found}; it must be `application/json`");
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// The field's value, if it has just one line.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next()?;
    if lines.next().is_some() { None } else { first.to_str().ok() }
}

/// `localhost` of `localhost:9900`, `[::1]` of `[::1]:9900`.
fn host_of(field: &str) -> Option<&str> {
    if field.starts_with('[') {
        return field.split_inclusive(']').next();
    }
    field.split(':').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_token_is_it() {
        let token = Token::new(" s3cret\n").unwrap();
        assert!(token.is(b"s3cret"));
        for wrong in [&b""[..], b"s3cre", b"s3cret ", b"S3cret", b"s3cretx"] {
            assert!(!token.is(wrong));
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert!(Token::new(" \n").is_none() && Token::new("two words").is_none());
    }

    #[test]
    fn names_that_lead_here_are_ours_and_no_others() {
        let bound = IpAddr::from([10, 0, 0, 7]);
        for host in ["localhost:9900", "LOCALHOST", "127.0.0.1:9900", "127.8.0.1", "[::1]:9900", "10.0.0.7:1"]
        {
            assert!(is_ours(host_of(host).unwrap(), bound), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.8", ""] {
            assert!(!is_ours(host_of(host).unwrap(), bound), "{host}");
        }
    }
}
