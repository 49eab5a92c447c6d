//! What rules see of a request, and what its service gets of it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Uri, Version};
use tidegate_policy::policy::{ClientAddress, Policy};
use tidegate_policy::{Attributes, Gate, Headers, Now, Source, read};
use tidegate_tower::HttpIdentify;

use super::PEER;
use crate::connection::http1::body::CallerBody;
use crate::connection::http1::{RawRequest, parsed};
use crate::head::fields::Meant;
use crate::head::{self, Hop, SentHost, check};
use crate::ingress::heard::{Heard, Sending};
use crate::upstream::written;

/// A policy that looks at everything there is.
const POLICY: &[u8] = b"
    [criticality]
    from = 'header:x-weight'
    [rule.all]
    key = ['header:x-api-key', 'header:x_tenant', 'header:cookie', 'header:host', 'path']
    quota = '1/s'
    [[route]]
    match = { header = { x-tier = 'free' }, host = 'a.test', path = '/a/**', method = 'POST' }
    [[route]]";

/// The fields that it looks at, and one that a gateway writes.
const FIELDS: [&str; 6] = ["x-api-key", "x_tenant", "cookie", "host", "x-tier", "x-forwarded-proto"];

static KNOWN: LazyLock<(Arc<Gate>, Meant)> = LazyLock::new(|| {
    let policy = read(Source::named("fuzz.toml", POLICY), None).map(|(policy, _)| policy);
    let policy: Policy = policy.expect("the policy above is right");
    let meant = Meant::new(&policy);
    (Arc::new(Gate::new(policy, 7, Now::default()).expect("it is small")), meant)
});

/// What can be looked at of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// The host without the port.
    pub host: String,
    /// The first value of each field that the policy looks at, and whether it had several lines.
    pub fields: BTreeMap<&'static str, (Vec<u8>, bool)>,
}

impl Looked {
    fn new(attributes: &Attributes<'_>) -> Self {
        Self {
            method: attributes.method.to_owned(),
            path: attributes.path.to_owned(),
            host: attributes.host.to_owned(),
            fields: fields(attributes.headers),
        }
    }
}

fn fields(headers: &dyn Headers) -> BTreeMap<&'static str, (Vec<u8>, bool)> {
    let found = FIELDS.into_iter().filter_map(|name| Some((name, headers.find(name)?)));
    found.map(|(name, field)| (name, (field.first.to_vec(), field.is_repeated))).collect()
}

/// A request that goes on.
#[derive(Clone, Debug)]
pub struct Sight {
    /// What rules see of it.
    pub seen: Looked,
    /// What its service gets.
    pub sent: Looked,
    /// All of the head that is sent.
    pub bytes: Vec<u8>,
}

/// What is seen and sent of the request that these bytes are the head of; none if it does not go on.
#[must_use]
pub fn seen_over_http1(bytes: &[u8], is_trusted: bool) -> Option<Sight> {
    let mut head = parsed(bytes)?;
    let request =
        RawRequest { head: &mut head, body: CallerBody::Whole(Bytes::new()), host: SentHost::Written };
    sight(request, is_trusted)
}

/// The same of a request over HTTP/2, a field a line, `:method`, `:path` and `:authority` among them.
#[must_use]
pub fn seen_over_http2(lines: &[u8], is_trusted: bool) -> Option<Sight> {
    let mut request = Request::new(CallerBody::Whole(Bytes::new()));
    *request.version_mut() = Version::HTTP_2;
    let mut target = http::uri::Parts::default();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // A name that begins with a colon has another behind it.
        let colon = line.iter().skip(1).position(|byte| *byte == b':')? + 1;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        match name {
            b":method" => *request.method_mut() = http::Method::from_bytes(value).ok()?,
            b":path" => target.path_and_query = Some(value.try_into().ok()?),
            b":authority" => target.authority = Some(value.try_into().ok()?),
            name => {
                let name = HeaderName::from_lowercase(name).ok()?;
                request.headers_mut().append(name, HeaderValue::from_bytes(value).ok()?);
            }
        }
    }
    target.path_and_query.get_or_insert_with(|| http::uri::PathAndQuery::from_static("/"));
    target.scheme = target.authority.is_some().then_some(http::uri::Scheme::HTTP);
    *request.uri_mut() = Uri::from_parts(target).ok()?;
    sight(request, is_trusted)
}

fn sight(mut request: impl Heard, is_trusted: bool) -> Option<Sight> {
    let (gate, meant) = &*KNOWN;
    let (identify, hop) = (HttpIdentify::new(Arc::clone(gate)), Hop::new(PEER, is_trusted, false));
    let sending = Sending { hop: &hop, identify: &identify, meant, says: ClientAddress::XForwardedFor };
    let host = check(&request).ok().filter(|host| *host != SentHost::Nowhere)?;
    request.arrange(host, sending).ok()?;
    // A trusted proxy's is made whole before it is looked at.
    let (seen, mut request) = if is_trusted {
        let request = request.whole(sending).ok()?;
        (request.identified(PEER, sending, Looked::new).ok()?, request)
    } else {
        let seen = request.identified(PEER, sending, Looked::new).ok()?;
        (seen, request.whole(sending).ok()?)
    };
    head::send_on(&mut request, &hop, ClientAddress::XForwardedFor);
    let bytes = written(&request);
    let sent = got(&bytes)?;
    Some(Sight { seen, sent, bytes })
}

/// What a service gets of a head: the bytes, and nothing that was thought about them.
fn got(bytes: &[u8]) -> Option<Looked> {
    let head = parsed(bytes)?;
    let target = head.uri().path();
    let host = head.host().and_then(|host| str::from_utf8(host.first).ok()).unwrap_or_default();
    Some(Looked {
        method: head.method().as_str().to_owned(),
        path: if target == "*" { "/*".to_owned() } else { target.to_owned() },
        host: tidegate_tower::identify::authority::without_port(host).to_owned(),
        fields: fields(head.fields()),
    })
}

impl Sight {
    /// The names of the fields that are sent, in lower case.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        let lines = text.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.map(|(name, _)| name.to_ascii_lowercase()).collect()
    }

    /// Panics unless what is seen is what is sent, and nothing is sent that a service could take for more.
    pub fn assert_whole(&self) {
        assert_eq!(self.seen, self.sent, "{}", String::from_utf8_lossy(&self.bytes));
        let is_alias = |name: &String| {
            let folded = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
            name != "x_tenant" && folded != *name && KNOWN_NAMES.contains(&folded.as_str())
        };
        let names = self.names();
        assert!(!names.iter().any(is_alias), "an alias among {names:?}");
        assert!(!names.iter().any(|name| name == "x-tenant"), "an alias among {names:?}");
        for (name, (_, is_repeated)) in &self.sent.fields {
            let counts = *name == "x-tier" || *name == "host";
            assert!(!(counts && *is_repeated), "{name} is sent twice");
        }
    }
}

/// Of what an alias is looked for.
const KNOWN_NAMES: [&str; 7] =
    ["x-api-key", "x-tenant", "x-tier", "x-weight", "x-forwarded-for", "x-criticality", "transfer-encoding"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What heads are made of, and what they should not be made of.
    const LINES: &[&str] = &[
        "Host: a.test",
        "Host: A.TEST.",
        "Host: b:81",
        "Host: ",
        "Host: a..b",
        "X-Api-Key: a",
        "x_api_key: b",
        "x-tenant: a",
        "X_Tenant: b",
        "Cookie: a=1",
        "Cookie: b=2",
        "X-Tier: free",
        "x-tier:\t free ",
        "x.tier: gold",
        "Connection: x-api-key",
        "Connection: close, X-Tier",
        "Connection: cookie;",
        "X-Forwarded-Proto: https",
        "X-Weight: 1",
        "TE: trailers, gzip",
        "x-api-key:",
        "x-other: 1",
    ];
    const FIRST: &[&str] = &[
        "GET / HTTP/1.1",
        "POST /a/b HTTP/1.1",
        "POST /a/../b//c?d HTTP/1.1",
        "get / HTTP/1.1",
        "GET /%61;x/b HTTP/1.1",
        "GET http://A.test./a HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET /a%2fb HTTP/1.1",
        "GET / HTTP/1.0",
        "PURGE /a|b HTTP/1.1",
    ];
    const H2_LINES: &[&str] = &[
        ":method:POST",
        ":method:get",
        ":path:/a/b",
        ":path:/a/%2e%2E/b",
        ":path:*",
        ":authority:a.test",
        ":authority:A.test.",
        "host:a.test",
        "host:b",
        "x-api-key:a",
        "x-api-key: a",
        "x_tenant:b",
        "x-tenant:b",
        "cookie:a=1",
        "cookie:b=2",
        "x-tier:free",
        "x_tier:free",
        "x-forwarded-proto:https",
        "x-weight:1",
        "x-api-key:",
    ];

    proptest! {
        #[test]
        fn what_is_seen_is_what_is_sent(
            first in 0..FIRST.len(),
            lines in prop::collection::vec(0..LINES.len(), 0..8),
            h2 in prop::collection::vec(0..H2_LINES.len(), 0..9),
            is_trusted in any::<bool>(),
        ) {
            let lines: Vec<&str> = lines.into_iter().map(|line| LINES[line]).collect();
            let head = format!("{}\r\nHost: a.test\r\n{}\r\n\r\n", FIRST[first], lines.join("\r\n"));
            for head in [head.clone(), head.replacen("Host: a.test\r\n", "", 1)] {
                seen_over_http1(head.as_bytes(), is_trusted).iter().for_each(Sight::assert_whole);
            }
            let fields: Vec<&str> = h2.into_iter().map(|line| H2_LINES[line]).collect();
            seen_over_http2(fields.join("\n").as_bytes(), is_trusted).iter().for_each(Sight::assert_whole);
        }
    }

    #[test]
    fn a_sound_request_is_seen_over_both_protocols() {
        let over_http1 =
            seen_over_http1(b"POST /a//b HTTP/1.1\r\nHost: A.test\r\nX-Api-Key: k\r\n\r\n", false);
        let over_http2 = seen_over_http2(b":method:POST\n:path:/a//b\n:authority:A.test\nx-api-key:k", false);
        let (one, two) = (over_http1.unwrap(), over_http2.unwrap());
        assert_eq!((&one.seen, one.seen.path.as_str()), (&two.seen, "/a/b"));
        assert_eq!(one.sent.fields["x-api-key"].0, b"k");
    }
}
