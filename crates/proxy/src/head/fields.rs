//! Which fields of a request go on, and which trailers.
//!
//! | a field                                          | from a stranger | from a trusted proxy |
//! |--------------------------------------------------|-----------------|----------------------|
//! | for one hop, or named by `Connection`            | ends here       | ends here |
//! | that names the caller as the policy says: `X-Forwarded-For` or `Forwarded` | goes on, with the peer behind it | the same |
//! | that does so in the other way                    | ends here       | ends here: nobody said that the proxy wrote it |
//! | other fields of proxies: `X-Forwarded-Host`, `X-Real-IP`, `X-Original-URL`, `X-Envoy-Max-Retries` | ends here | goes on |
//! | that numbers the request, `X-Request-Id`         | is replaced     | goes on; is added if it is missing |
//! | that says how critical the request is            | ends here       | read, and replaced where the policy has a word on it |
//! | `X_Api_Key` where `X-Api-Key` means something here | ends here     | ends here |
//!
//! The last are *aliases*: to a service that knows its fields by the names of variables both are one field, and a caller
//! would have two identities.

use std::collections::BTreeSet;

use http::HeaderName;
use tidegate_policy::policy::{ClientAddress, CriticalitySource, Policy};

use crate::http1::chunks::is_forbidden;

/// From whom a request comes, as far as its fields are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentBy {
    pub(crate) is_trusted: bool,
    pub(crate) says: ClientAddress,
}

impl SentBy {
    const fn stranger(says: ClientAddress) -> Self {
        Self { is_trusted: false, says }
    }
}

/// Whether a field, by its name in lower case, may go on. Fields for one hop are not asked about.
pub(crate) fn goes_on(name: &str, from: SentBy) -> bool {
    let is_forwarded = from.says == ClientAddress::Forwarded;
    match name.as_bytes() {
        [b'x', b'-', rest @ ..] => match rest {
            b"forwarded-for" => !is_forwarded,
            [b'f', b'o', b'r', b'w', b'a', b'r', b'd', b'e', b'd', ..] => !is_forwarded && from.is_trusted,
            // It can only shorten the time there is, and anybody may do that.
            b"envoy-expected-rq-timeout-ms" => true,
            [b'e', b'n', b'v', b'o', b'y', b'-', ..]
            | b"real-ip"
            | b"client-ip"
            | b"cluster-client-ip"
            | b"original-host"
            | b"original-method"
            | b"original-uri"
            | b"original-url"
            | b"rewrite-url"
            | b"request-id"
            | b"criticality" => from.is_trusted,
            _ => true,
        },
        b"forwarded" => is_forwarded,
        b"true-client-ip" | b"cf-connecting-ip" | b"fastly-client-ip" => from.is_trusted,
        _ => true,
    }
}

/// Whether a field is about one hop only.
pub(crate) fn is_for_one_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings"
    )
}

/// Whether what a field says is ours to say, whoever sent it.
fn is_ours(name: &str) -> bool {
    let may_go_on = |says| goes_on(name, SentBy::stranger(says));
    is_for_one_hop(name)
        || matches!(name, "host" | "content-length" | "via" | "baggage" | "x-forwarded-for" | "forwarded")
        || !may_go_on(ClientAddress::XForwardedFor)
        || !may_go_on(ClientAddress::Forwarded)
}

/// The fields that mean something to a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meant {
    /// Of keys and of conditions.
    named: BTreeSet<String>,
    /// The same with dashes for whatever is no letter and no digit.
    folded: BTreeSet<String>,
    /// Whether a name of them has other signs than dashes, so that names with dashes can be its aliases.
    has_signs: bool,
    /// Of conditions: with several lines it is not clear which one counts.
    pub(crate) matched: Vec<String>,
    /// By which trusted proxies say how critical a request is.
    said: Vec<String>,
    /// The members of `Baggage` by which they do.
    pub(crate) said_members: Vec<String>,
}

impl Meant {
    pub(crate) fn new(policy: &Policy) -> Self {
        let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let said = policy.criticality_from.iter().filter_map(|source| match source {
            CriticalitySource::Header(name) => Some(name.clone()),
            CriticalitySource::Baggage(_) => None,
        });
        let said_members = policy.criticality_from.iter().filter_map(|source| match source {
            CriticalitySource::Baggage(member) => Some(member.clone()),
            CriticalitySource::Header(_) => None,
        });
        let matched = owned(policy.matched_fields());
        let named: BTreeSet<_> = owned(policy.key_fields()).into_iter().chain(matched.clone()).collect();
        Self {
            folded: named.iter().map(|name| folded(name)).collect(),
            has_signs: named.iter().any(|name| has_signs(name)),
            named,
            matched,
            said: said.collect(),
            said_members: said_members.collect(),
        }
    }

    /// What means something to either of two policies.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        let both = |one: &[String], other: &[String]| {
            let all: BTreeSet<&String> = one.iter().chain(other).collect();
            all.into_iter().cloned().collect()
        };
        Self {
            named: &self.named | &other.named,
            folded: &self.folded | &other.folded,
            has_signs: self.has_signs || other.has_signs,
            matched: both(&self.matched, &other.matched),
            said: both(&self.said, &other.said),
            said_members: both(&self.said_members, &other.said_members),
        }
    }

    /// Whether a field of a request goes on, by its name in lower case. Fields for one hop are not asked about.
    pub(crate) fn goes_on(&self, name: &str, from: SentBy) -> bool {
        goes_on(name, from) && (from.is_trusted || !self.is_said(name)) && !self.is_alias(name)
    }

    /// Whether trusted proxies say by this field how critical a request is.
    pub(crate) fn is_said(&self, name: &str) -> bool {
        self.said.iter().any(|said| said == name)
    }

    /// Whether a service may take a field for one that means something.
    fn is_alias(&self, name: &str) -> bool {
        let has_signs = has_signs(name);
        if !has_signs && !self.has_signs || self.named.contains(name) {
            return false;
        }
        let folded = folded(name);
        self.folded.contains(&folded) || has_signs && (is_ours(&folded) || self.is_said(&folded))
    }

    /// Whether a field may follow a body. What may not stand in a head may not, nor what was looked for there.
    pub(crate) fn may_trail(&self, name: &HeaderName) -> bool {
        let text = name.as_str();
        !is_forbidden(name) && !self.named.contains(text) && !self.is_said(text) && !self.is_alias(text)
    }
}

/// Whether a field must not follow any body: it is ours to say, or was to be known before.
pub(crate) fn is_ours_to_say(name: &HeaderName) -> bool {
    is_ours(name.as_str())
}

fn has_signs(name: &str) -> bool {
    // Without an early return, so that the loop looks at many bytes at once.
    name.bytes().fold(false, |has, byte| has | !(byte.is_ascii_alphanumeric() | (byte == b'-')))
}

fn folded(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use tidegate_policy::{Source, read};

    use super::*;

    fn meant(text: &str) -> Meant {
        Meant::new(&read(Source::named("x.toml", text.as_bytes()), None).unwrap().0)
    }

    #[test]
    fn fields_go_on_as_in_the_table() {
        let of = |name, is_trusted, says| goes_on(name, SentBy { is_trusted, says });
        let (usual, forwarded) = (ClientAddress::XForwardedFor, ClientAddress::Forwarded);
        for (name, go_on) in [
            // From a stranger and a trusted proxy; in the one way of naming callers and in the other.
            ("x-forwarded-for", [true, true, false, false]),
            ("forwarded", [false, false, true, true]),
            ("x-forwarded-proto", [false, true, false, false]),
            ("x-forwarded-host", [false, true, false, false]),
            ("x-forwarded", [false, true, false, false]),
            ("x-real-ip", [false, true, false, true]),
            ("x-original-url", [false, true, false, true]),
            ("x-envoy-max-retries", [false, true, false, true]),
            ("x-envoy-expected-rq-timeout-ms", [true; 4]),
            ("x-criticality", [false, true, false, true]),
            ("x-api-key", [true; 4]),
            ("x-original", [true; 4]),
            ("for", [true; 4]),
        ] {
            let found = [
                of(name, false, usual),
                of(name, true, usual),
                of(name, false, forwarded),
                of(name, true, forwarded),
            ];
            assert_eq!(found, go_on, "{name}");
        }
    }

    #[test]
    fn what_a_service_may_take_for_a_field_with_a_meaning_is_an_alias() {
        let meant = meant(
            "[rule.a]\nquota = '1/s'\nkey = ['header:x-api-key', 'header:x_tenant']\n\
             [criticality]\nfrom = ['header:x-weight']\n\
             [[route]]\nmatch = { header = { x-beta-test = '1' } }\n[[route]]",
        );
        for name in [
            "x_api_key",
            "x-api_key",
            "x.api.key",
            "x-tenant",
            "x_beta_test",
            "x_weight",
            "x_forwarded_for",
            "x_criticality",
            "transfer_encoding",
            "content_length",
            "x_real_ip",
        ] {
            assert!(meant.is_alias(name), "{name}");
        }
        for name in [
            "x-api-key",
            "x_tenant",
            "x-beta-test",
            "x_other",
            "x-other",
            "host",
            "content-length",
            "xapikey",
        ] {
            assert!(!meant.is_alias(name), "{name}");
        }
    }

    #[test]
    fn nothing_with_a_meaning_follows_a_body() {
        let meant = meant("[rule.a]\nquota = '1/s'\nkey = 'header:x-api-key'");
        for name in
            ["x-api-key", "x_api_key", "x-criticality", "baggage", "authorization", "x-forwarded-for", "te"]
        {
            assert!(!meant.may_trail(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["x-sum", "grpc-status", "grpc-message", "x_sum", "server-timing"] {
            assert!(meant.may_trail(&HeaderName::from_static(name)), "{name}");
        }
    }
}
