//! A request that nobody sent, written on the command line.
//!
//! `POST /v1/charges x-api-key:acct_1` is the method, the path, and header fields. What stands behind a `?`
//! is left out, since rules do not look at it.
//!
//! It is believed as the gateway would: `--from` is the peer at the other end of the connection. A trusted proxy may say
//! for whom it sends and how critical that is; anybody else speaks for itself.

use std::net::IpAddr;

use http::{HeaderName, HeaderValue, Method, Request, Uri};
use serde_json::{Map, Value, json};
use tidegate_policy::policy::KeySource;
use tidegate_policy::{Attributes, Gate, Policy, identity_fault};
use tidegate_proxy::foresee;

/// The facts of an imagined request.
#[derive(Clone, Debug)]
pub struct Imagined {
    request: Request<()>,
    from: Option<IpAddr>,
}

impl Imagined {
    /// Reads a request as it was written, with more fields and the address it comes from.
    ///
    /// # Errors
    /// With what to write instead.
    pub fn read(written: &str, fields: &[String], from: Option<IpAddr>) -> Result<Self, String> {
        let mut words = written.split_whitespace();
        let method = words.next().ok_or("the request is empty; write 'GET /path'")?;
        if !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(no_method(method, words.next()));
        }
        let path = words.next().ok_or_else(|| format!("the path is missing; write '{method} /path'"))?;
        let headers = words.chain(fields.iter().map(String::as_str)).map(field).collect::<Result<_, _>>()?;
        Self::new(method, path, headers, from)
    }

    /// A request of these parts.
    ///
    /// # Errors
    /// With what to write instead.
    pub fn new(
        method: &str,
        path: &str,
        headers: Vec<(String, String)>,
        from: Option<IpAddr>,
    ) -> Result<Self, String> {
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let parsed = Method::from_bytes(method.as_bytes()).ok().filter(|_| is_method);
        let parsed =
            parsed.ok_or_else(|| format!("`{method}` is not a method; write it like GET or POST"))?;
        let path = path.split('?').next().unwrap_or(path);
        if !path.starts_with('/') {
            return Err(format!("the path `{path}` does not begin with a slash; write '{method} /{path}'"));
        }
        let mut request = Request::new(());
        *request.method_mut() = parsed;
        let is_clear = path.is_ascii() && !path.contains(['#', '\\']);
        let target = Uri::try_from(path).ok().filter(|_| is_clear);
        *request.uri_mut() = target
            .ok_or_else(|| format!("the path `{path}` cannot be sent; escape its signs, as %3C for <"))?;
        for (name, value) in headers {
            let wrong = || format!("`{name}: {value}` is not a header field; write 'name:value'");
            let (name, value) = (HeaderName::try_from(&name), HeaderValue::try_from(&value));
            let (Ok(name), Ok(value)) = (name, value) else { return Err(wrong()) };
            request.headers_mut().append(name, value);
        }
        Ok(Self { request, from })
    }

    /// As the admin API wants to be asked about it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut headers = Map::new();
        for (name, value) in self.request.headers() {
            let lines = headers.entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
            let line = String::from_utf8_lossy(value.as_bytes());
            lines.as_array_mut().into_iter().for_each(|lines| lines.push(line.as_ref().into()));
        }
        let (method, path) = (self.request.method().as_str(), self.request.uri().path());
        let mut request = json!({ "method": method, "path": path, "headers": headers });
        if let Some(from) = self.from {
            request["client"] = from.to_string().into();
        }
        request
    }

    /// Asks `question` with what the gateway would tell this gate of the request.
    ///
    /// # Errors
    /// When the gateway would answer 400, with the reason.
    pub fn ask<T>(&self, gate: &Gate, question: impl FnOnce(&Attributes<'_>) -> T) -> Result<T, String> {
        let policy = gate.policy();
        self.names_callers(&policy)?;
        foresee(&policy, self.from, self.request.clone(), question)
    }
}

impl Imagined {
    /// Whether what would be part of a key is what it looks like: an answer shows it.
    fn names_callers(&self, policy: &Policy) -> Result<(), String> {
        let of_rules = policy.rules.iter().flat_map(|rule| &rule.key.0);
        for source in policy.caller.0.iter().chain(of_rules) {
            let KeySource::Header(name) = source else { continue };
            for line in self.request.headers().get_all(name.as_str()) {
                let identity = String::from_utf8_lossy(line.as_bytes());
                // Without a value it is nobody's.
                if let Some(fault) = identity_fault(&identity).filter(|_| !identity.is_empty()) {
                    return Err(format!("the identity in `{name}` {fault}"));
                }
            }
        }
        Ok(())
    }
}

/// What to write where the first word is not a method: `get /x`, `/x`, `x`.
fn no_method(word: &str, next: Option<&str>) -> String {
    let meant = match word {
        path if path.starts_with('/') => format!("'GET {path}' or 'POST {path}'"),
        method if method.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            format!("'{} {}'", method.to_ascii_uppercase(), next.unwrap_or("/path"))
        }
        _ => "'GET /path'".to_owned(),
    };
    format!("`{word}` is not a method; write {meant}")
}

fn field(written: &str) -> Result<(String, String), String> {
    match written.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        }
        _ => Err(format!("`{written}` is not a header field; write 'name:value'")),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Criticality;
    use tidegate_policy::{Now, Source};

    use super::*;

    fn gate() -> Gate {
        let text = br#"
            server = { trusted_proxies = ["127.0.0.2"] }
            criticality = { from = "header:x-criticality" }
            route = [{ match = { path = "/v1/**" } }]
        "#;
        let (policy, _) = tidegate_policy::read(Source::named("tidegate.toml", text), None).unwrap();
        Gate::new(policy, 0, Now::default()).unwrap()
    }

    fn read(written: &str, from: Option<[u8; 4]>) -> Imagined {
        Imagined::read(written, &[], from.map(Into::into)).unwrap()
    }

    #[test]
    fn a_request_is_read_as_in_the_example() {
        let fields = ["User-Agent: curl 8".to_owned()];
        let request = "POST /v1/charges?x=1 X-Api-Key:acct_1 host:a.example:80";
        let request = Imagined::read(request, &fields, None).unwrap();
        let asked = request.ask(&gate(), |attributes| {
            assert_eq!((attributes.method, attributes.path), ("POST", "/v1/charges"));
            assert_eq!(attributes.host, "a.example");
            assert_eq!(attributes.headers.first("x-api-key"), Some(&b"acct_1"[..]));
            assert_eq!(attributes.headers.first("user-agent"), Some(&b"curl 8"[..]));
        });
        assert_eq!(asked, Ok(()));
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let written = "GET /v1/q x-criticality:sheddable x-forwarded-for:203.0.113.7";
        let believed = |from| {
            let told = |attributes: &Attributes<'_>| (attributes.client, attributes.criticality);
            read(written, from).ask(&gate(), told).unwrap()
        };
        let caller = Some([203, 0, 113, 7].into());
        assert_eq!(believed(Some([127, 0, 0, 2])), (caller, Some(Criticality::Sheddable)));
        assert_eq!(believed(Some([127, 0, 0, 3])), (Some([127, 0, 0, 3].into()), None));
        assert_eq!(believed(None), (None, None));
    }

    #[test]
    fn a_path_that_can_be_read_in_two_ways_is_not_asked_about() {
        let asked = read("GET /v1/a%2Fb", None).ask(&gate(), |_| ());
        assert_eq!(
            asked.unwrap_err(),
            "the gateway answers 400: the path has an escaped slash, backslash or NUL"
        );
    }

    #[test]
    fn rules_see_what_will_be_sent_on() {
        let written = "GET /v1/%71//x host:API.Example.:80 connection:x-api-key x-api-key:a x_forwarded_for:1 \
                       x-forwarded-host:evil x-kept:1";
        let asked = read(written, None).ask(&gate(), |attributes| {
            let of = |name| attributes.headers.first(name).map(String::from_utf8_lossy).map(String::from);
            assert_eq!((attributes.path, attributes.host), ("/v1/q/x", "api.example"));
            assert_eq!(of("host").as_deref(), Some("api.example:80"));
            assert_eq!(of("x-kept").as_deref(), Some("1"));
            assert_eq!([of("x-api-key"), of("x-forwarded-host"), of("x_forwarded_for")], [None, None, None]);
        });
        assert_eq!(asked, Ok(()));
        let refused = |written| read(written, None).ask(&gate(), |_| ()).unwrap_err();
        assert_eq!(refused("GET /v1 host:a..b"), "the gateway answers 400: the Host field is no host");
        assert_eq!(
            refused("TRACE /v1 host:a"),
            "the gateway answers 405: TRACE would tell what is added on the way"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        for (written, problem) in [
            ("", "the request is empty; write 'GET /path'"),
            ("/v1", "`/v1` is not a method; write 'GET /v1' or 'POST /v1'"),
            ("get /x", "`get` is not a method; write 'GET /x'"),
            ("post", "`post` is not a method; write 'POST /path'"),
            ("v1/x", "`v1/x` is not a method; write 'GET /path'"),
            ("GET", "the path is missing; write 'GET /path'"),
            ("GET v1", "the path `v1` does not begin with a slash; write 'GET /v1'"),
            ("GET /a#b", "the path `/a#b` cannot be sent; escape its signs, as %3C for <"),
            ("GET /a<b", "the path `/a<b` cannot be sent; escape its signs, as %3C for <"),
            ("GET / key", "`key` is not a header field; write 'name:value'"),
            ("GET / a(b:c", "`a(b: c` is not a header field; write 'name:value'"),
        ] {
            assert_eq!(Imagined::read(written, &[], None).unwrap_err(), problem);
        }
    }
}
