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
//! | nothing known of the caller | the one counter that all such requests of the rule share |
//! | `x-api-key: a` and `x-api-key: b` | none: it could be read in two ways, and is refused |

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use tidegate_core::keyed::{Hashing, Key};

use crate::attributes::Attributes;
use crate::policy::{KeySource, KeySpec};

/// What one source says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A header field, a path, a name.
    Text(&'a [u8]),
    /// An address; of IPv6, its network of 64 bits.
    Address(IpAddr),
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
            Self::Address(IpAddr::V4(address)) => {
                state.write_u8(2);
                state.write_u32(address.to_bits());
            }
            Self::Address(IpAddr::V6(address)) => {
                state.write_u8(3);
                state.write_u128(address.to_bits());
            }
            Self::Everybody => state.write_u8(4),
        }
    }
}

impl fmt::Display for Part<'_> {
    /// As operators see it: secrets are shortened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => shortened(&String::from_utf8_lossy(text), f),
            Self::Address(IpAddr::V6(network)) => write!(f, "{network}/64"),
            Self::Address(address) => write!(f, "{address}"),
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
pub(crate) fn caller<'a>(sources: &'a KeySpec, attributes: &Attributes<'a>) -> Found<'a> {
    for source in &sources.0 {
        let found = match source {
            // A caller is not recognised by being a caller, nor by where it goes.
            KeySource::Caller | KeySource::Route | KeySource::Global => Err(NoPart::Missing),
            KeySource::Path => Ok(Part::Text(attributes.path.as_bytes())),
            KeySource::ClientIp => address(attributes),
            KeySource::Header(name) => header(name, attributes),
        };
        match found {
            Err(NoPart::Missing) => {}
            found => return found,
        }
    }
    Err(NoPart::Missing)
}

/// What a source says, given who the caller is and which route was taken.
pub(crate) fn part<'a>(
    source: &'a KeySource,
    attributes: &Attributes<'a>,
    caller: Found<'a>,
    route: &'a str,
) -> Found<'a> {
    match source {
        KeySource::Caller => caller,
        KeySource::ClientIp => address(attributes),
        KeySource::Header(name) => header(name, attributes),
        KeySource::Path => Ok(Part::Text(attributes.path.as_bytes())),
        KeySource::Route => Ok(Part::Text(route.as_bytes())),
        KeySource::Global => Ok(Part::Everybody),
    }
}

fn header<'a>(name: &'a str, attributes: &Attributes<'a>) -> Found<'a> {
    match attributes.headers.first(name) {
        None => Err(NoPart::Missing),
        Some(_) if attributes.headers.is_repeated(name) => Err(NoPart::Repeated(name)),
        Some(value) => Ok(Part::Text(value)),
    }
}

fn address<'a>(attributes: &Attributes<'_>) -> Found<'a> {
    attributes.client.map_or(Err(NoPart::Missing), |address| Ok(Part::Address(network(address))))
}

/// The address that counts: a household or a server has a whole IPv6 network of 64 bits to itself, so its
/// addresses are one caller. An IPv4 address written as IPv6 is that IPv4 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The identity that an operator wrote, as a part. One that spells an address is that address, so that nobody can be
/// it by writing it into a header field.
pub(crate) fn written(identity: &str) -> Part<'_> {
    let text = identity.strip_suffix("/64").unwrap_or(identity);
    text.parse().map_or(Part::Text(identity.as_bytes()), |address| Part::Address(network(address)))
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

    #[test]
    fn parts_keep_their_borders_and_their_kind() {
        let keys = Keys::new(1);
        let text = |text: &'static str| Part::Text(text.as_bytes());
        assert_ne!(keys.all(&[text("ab"), text("c")]), keys.all(&[text("a"), text("bc")]));
        assert_ne!(keys.of(&text("10.0.0.1")), keys.of(&written("10.0.0.1")));
        assert_ne!(keys.of(&text("")), keys.missing);
        assert_ne!(keys.everybody, keys.missing);
    }

    #[test]
    fn an_ipv6_network_is_one_caller_and_a_mapped_address_is_the_ipv4_one() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:0:7:1:2:3:4"), "2001:db8:0:7::");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(written("2001:db8:0:7::/64"), written("2001:db8:0:7::99"));
    }

    #[test]
    fn long_values_are_shortened() {
        let shown = |text: &'static str| Part::Text(text.as_bytes()).to_string();
        assert_eq!(shown("acct_1"), "acct_1");
        assert_eq!(shown("sk_live_4eC39HqLyjWDarj"), "sk_live_…");
    }
}
