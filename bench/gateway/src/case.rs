//! What the contenders are asked to do.

/// One of the comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// Every request goes to the upstream; nothing is limited.
    Plain,
    /// A quota for each key that nobody reaches.
    PerKey,
    /// A quota for each key that one key exceeds with nearly all it sends.
    Refusing,
}

/// What a key may send. haproxy has no burst apart from its rate, so both are the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) per_second: u32,
    pub(crate) burst: u32,
}

/// How many keys take part where nobody is refused.
pub(crate) const KEYS: usize = 10_000;

/// Room in the tables of the contenders: none may have to forget a key during the run.
pub(crate) const TABLE: usize = 2 * KEYS;

impl Case {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::PerKey, Self::Refusing];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Plain => "Plain forwarding",
            Self::PerKey => "Forwarding with a quota for each of 10 000 keys, none refused",
            Self::Refusing => "Refusing",
        }
    }

    /// The case in a cell of a table.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::PerKey => "quota per key",
            Self::Refusing => "refusing",
        }
    }

    /// The quota of each key, where the case has one.
    pub(crate) fn quota(self) -> Option<Quota> {
        match self {
            Self::Plain => None,
            // 10 000 keys that share 70 000 requests a second send seven each.
            Self::PerKey => Some(Quota { per_second: 1_000, burst: 1_000 }),
            Self::Refusing => Some(Quota { per_second: 1, burst: 1 }),
        }
    }

    /// How many different keys the load has.
    pub(crate) fn keys(self) -> usize {
        match self {
            Self::Plain | Self::Refusing => 1,
            Self::PerKey => KEYS,
        }
    }
}
