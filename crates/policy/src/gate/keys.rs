//! Which counter a request belongs to.
//!
//! A key is hashed piece by piece and never built as a string. Every piece says what it is and how long it is, so
//! that `("ab", "c")` and `("a", "bc")` are two keys, and a header field that spells an address is not that
//! address. All tables of a gate share one seed, so a caller is hashed once however many rules it meets.
//!
//! | request | `["caller", "path"]` |
//! |---|---|
//! | `x-api-key: a`, `/v1` | text 1 `a`, text 3 `/v1` |
//! | no field, from 2001:db8::7 (callers are keys, then addresses), `/v1` | network 2001:db8::/64, text 3 `/v1` |
//! | `x-api-key:` without a value | as without the field |
//! | nothing known of the caller | the one counter that all such requests of the rule share |
//! | `x-api-key: a` and `x-api-key: b` | none: it could be read in two ways, and is refused |

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use tidegate_core::keyed::{Hashing, Key};

use crate::attributes::Attributes;
use crate::policy::{KeySource, KeySpec, KnownCallers, Network, Policy};

/// What one source says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A header field, a path, a name.
    Text(&'a [u8]),
    /// An address; of IPv6, the network of as many bits as the policy says.
    Address(Network),
    /// The same for everybody.
    Everybody,
}

impl Hash for Part<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Text(text) => {
                state.write_u8(1);
                text.hash(state);
            }
            Self::Address(network) => match network.address {
                IpAddr::V4(address) => {
                    state.write_u8(2);
                    state.write_u32(address.to_bits());
                }
                IpAddr::V6(address) => {
                    state.write_u8(3);
                    state.write_u128(address.to_bits());
                }
            },
            Self::Everybody => state.write_u8(4),
        }
    }
}

impl fmt::Display for Part<'_> {
    /// As operators see it: secrets are shortened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => shortened(&String::from_utf8_lossy(text), f),
            Self::Address(network) if network.is_single() => write!(f, "{}", network.address),
            Self::Address(network) => write!(f, "{network}"),
            Self::Everybody => f.write_str("everybody"),
        }
    }
}

/// Up to twelve characters as they are, of more the first eight: enough to recognise a key by, too little to
/// use it.
fn shortened(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match text.char_indices().nth(12) {
        None => f.write_str(text),
        Some(_) => {
            let end = text.char_indices().nth(8).map_or(text.len(), |(end, _)| end);
            write!(f, "{}…", &text[..end])
        }
    }
}

/// Why a request has no part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPart<'a> {
    /// The source is not there.
    Missing,
    /// The header field has several lines.
    Repeated(&'a str),
}

pub(crate) type Found<'a> = Result<Part<'a>, NoPart<'a>>;

/// Who sent a request, by the first of the caller sources that is present.
pub(crate) fn caller<'a>(policy: &'a Policy, attributes: &Attributes<'a>) -> Found<'a> {
    for source in &policy.caller.0 {
        let found = match source {
            // A caller is not recognised by being a caller, nor by where it goes.
            KeySource::Caller | KeySource::Route | KeySource::Global => Err(NoPart::Missing),
            KeySource::Path => Ok(Part::Text(attributes.path.as_bytes())),
            KeySource::ClientIp => address(policy, attributes),
            KeySource::Header(name) => header(name, attributes).and_then(|part| known(policy, part)),
        };
        match found {
            Err(NoPart::Missing) => {}
            found => return found,
        }
    }
    Err(NoPart::Missing)
}

/// An identity that the policy takes for a caller; anybody can send another one with every request.
fn known<'a>(policy: &Policy, part: Part<'a>) -> Found<'a> {
    let Part::Text(identity) = part else { return Ok(part) };
    let is_known = match policy.known {
        KnownCallers::All => true,
        KnownCallers::Table => {
            str::from_utf8(identity).is_ok_and(|identity| policy.callers.contains_key(identity))
        }
    };
    if is_known { Ok(part) } else { Err(NoPart::Missing) }
}

/// The header field whose identity is not known, so that another source counts.
pub(crate) fn passed_over<'a>(policy: &'a Policy, attributes: &Attributes<'_>) -> Option<&'a str> {
    for source in &policy.caller.0 {
        let KeySource::Header(name) = source else { return None };
        match header(name, attributes) {
            Err(NoPart::Missing) => {}
            Ok(part) if known(policy, part).is_err() => return Some(name),
            Ok(_) | Err(NoPart::Repeated(_)) => return None,
        }
    }
    None
}

/// What a source says, given who the caller is and which route was taken.
pub(crate) fn part<'a>(
    source: &'a KeySource,
    policy: &Policy,
    attributes: &Attributes<'a>,
    caller: Found<'a>,
    route: &'a str,
) -> Found<'a> {
    match source {
        KeySource::Caller => caller,
        KeySource::ClientIp => address(policy, attributes),
        KeySource::Header(name) => header(name, attributes),
        KeySource::Path => Ok(Part::Text(attributes.path.as_bytes())),
        KeySource::Route => Ok(Part::Text(route.as_bytes())),
        KeySource::Global => Ok(Part::Everybody),
    }
}

fn header<'a>(name: &'a str, attributes: &Attributes<'a>) -> Found<'a> {
    match attributes.headers.find(name) {
        None => Err(NoPart::Missing),
        Some(field) if field.is_repeated => Err(NoPart::Repeated(name)),
        // An empty name is nobody's: services take it for none.
        Some(field) if field.first.is_empty() => Err(NoPart::Missing),
        Some(field) => Ok(Part::Text(field.first)),
    }
}

fn address<'a>(policy: &Policy, attributes: &Attributes<'_>) -> Found<'a> {
    let network = |address| Part::Address(policy.server.network_of(address));
    attributes.client.map(network).ok_or(NoPart::Missing)
}

/// The identity that an operator wrote, as a part. One that spells an address is that address, so that nobody can be
/// it by writing it into a header field; a network is one only if callers are told apart by such networks.
pub(crate) fn written<'a>(identity: &'a str, policy: &Policy) -> Part<'a> {
    let (text, length) = identity.split_once('/').unwrap_or((identity, ""));
    let is_network = length.is_empty() && text == identity || length.parse() == Ok(policy.server.ipv6_prefix);
    match text.parse::<IpAddr>() {
        Ok(address) if is_network => Part::Address(policy.server.network_of(address)),
        _ => Part::Text(identity.as_bytes()),
    }
}

/// A rule's key, ready to be made.
#[derive(Clone, Debug)]
pub(crate) enum Keying {
    /// Everybody shares one counter.
    Global,
    /// The caller's own hash.
    Caller,
    /// One or several sources.
    Parts(KeySpec),
}

impl Keying {
    pub(crate) fn new(spec: &KeySpec) -> Self {
        match spec.0.as_slice() {
            [] | [KeySource::Global] => Self::Global,
            [KeySource::Caller] => Self::Caller,
            _ => Self::Parts(spec.clone()),
        }
    }

    /// Whether the key tells callers apart, so that a caller's plan and limits of its own make sense for it.
    pub(crate) fn tells_callers(&self, callers: &KeySpec) -> bool {
        match self {
            Self::Global => false,
            Self::Caller => true,
            Self::Parts(spec) => {
                spec.0.iter().any(|source| *source == KeySource::Caller || callers.0.contains(source))
            }
        }
    }
}

/// Makes the keys of one gate.
#[derive(Debug)]
pub(crate) struct Keys {
    hashing: Hashing,
    /// Of requests without a key.
    pub(crate) missing: Key,
    pub(crate) everybody: Key,
}

impl Keys {
    pub(crate) fn new(seed: u64) -> Self {
        let hashing = Hashing::new(seed);
        let (missing, everybody) = (hashing.key(&0_u8), hashing.key(&Part::Everybody));
        Self { hashing, missing, everybody }
    }

    #[inline]
    pub(crate) fn of(&self, part: &Part<'_>) -> Key {
        self.hashing.key(part)
    }

    /// The key of a composite: its parts in order.
    pub(crate) fn all(&self, parts: &[Part<'_>]) -> Key {
        match parts {
            [part] => self.of(part),
            parts => self.hashing.key(parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Server;
    use crate::{Source, read};

    fn address(text: &str, ipv6_prefix: u8) -> Part<'static> {
        let server = Server { ipv6_prefix, ..Server::default() };
        Part::Address(server.network_of(text.parse().unwrap()))
    }

    #[test]
    fn parts_keep_their_borders_and_their_kind() {
        let keys = Keys::new(1);
        let text = |text: &'static str| Part::Text(text.as_bytes());
        assert_ne!(keys.all(&[text("ab"), text("c")]), keys.all(&[text("a"), text("bc")]));
        assert_ne!(keys.of(&text("10.0.0.1")), keys.of(&address("10.0.0.1", 64)));
        assert_ne!(keys.of(&text("")), keys.missing);
        assert_ne!(keys.everybody, keys.missing);
    }

    #[test]
    fn an_ipv6_network_is_one_caller_and_a_mapped_address_is_the_ipv4_one() {
        let of = |text: &str, prefix| address(text, prefix).to_string();
        assert_eq!(of("2001:db8:0:7:1:2:3:4", 64), "2001:db8:0:7::/64");
        assert_eq!(of("2001:db8:7:7:1:2:3:4", 48), "2001:db8:7::/48");
        assert_eq!(of("2001:db8::1", 128), "2001:db8::1");
        assert_eq!(of("::ffff:192.0.2.1", 64), "192.0.2.1");
        assert_eq!(of("64:ff9b::192.0.2.1", 64), "192.0.2.1", "through a translator");
        assert_eq!(of("192.0.2.1", 16), "192.0.2.1", "the prefix is one of IPv6");
    }

    #[test]
    fn an_identity_is_a_network_only_if_callers_are_told_apart_by_such() {
        let (policy, _) = read(Source::named("x.toml", b"[server]\nipv6_prefix = 48"), None).unwrap();
        let home = address("2001:db8:7::", 48);
        for identity in ["2001:db8:7::/48", "2001:db8:7::99", "2001:db8:7::"] {
            assert_eq!(written(identity, &policy), home, "{identity}");
        }
        for identity in ["2001:db8:7::/64", "2001:db8:7::/", "acct/48"] {
            assert_eq!(written(identity, &policy), Part::Text(identity.as_bytes()), "{identity}");
        }
    }

    #[test]
    fn long_values_are_shortened() {
        let shown = |text: &'static str| Part::Text(text.as_bytes()).to_string();
        assert_eq!(shown("acct_1"), "acct_1");
        assert_eq!(shown("sk_live_4eC39HqLyjWDarj"), "sk_live_…");
    }
}
