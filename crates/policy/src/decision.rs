//! The gate's answer for a request, and what follows from it.
//!
//! An admitted request carries what it took: charges, which stand unless they are settled or refunded, and places in
//! flight, which come back whatever happens. Futures get cancelled and callers go away, so a dropped [`Admitted`]
//! is an ending too:
//!
//! | how it ends | charges | places | outcome |
//! |---|---|---|---|
//! | [`Admitted::complete`] | stand, or as settled | come back | as told |
//! | [`Admitted::refund`] | are given back | come back | not counted |
//! | [`Gate::turn_away`](crate::Gate::turn_away) | are given back | come back | none: it is refused after all |
//! | dropped | stand, or as settled | come back | abandoned |

mod admitted;
mod refused;
mod standing;

use std::fmt::{self, Write};
use std::str::FromStr;

use tidegate_core::keyed::Key;
use tidegate_core::{Cost, Invalid, Ratio};

pub use admitted::Admitted;
pub(crate) use admitted::{Met, Mets, Settled, Took};
pub use refused::{By, Cause, ReasonWord, Refused};
pub(crate) use standing::places;
pub use standing::{Standing, Standings};

use crate::attributes::Attributes;
use crate::gate::{Now, Plan};
use crate::record::{Decided, Record};

/// May this request pass now, and what follows?
#[derive(Debug)]
#[must_use = "an unread decision lets everything through, and gives back what it took"]
pub enum Decision {
    /// It may pass.
    Admit(Admitted),
    /// It may not pass now.
    Refuse(Refused),
}

impl Decision {
    /// Whether it is a yes.
    #[must_use]
    pub const fn is_admit(&self) -> bool {
        matches!(self, Self::Admit(_))
    }

    /// What it took, if it is a yes.
    #[must_use]
    pub fn admitted(self) -> Option<Admitted> {
        match self {
            Self::Admit(admitted) => Some(admitted),
            Self::Refuse(_) => None,
        }
    }

    /// Why not, if it is a no.
    #[must_use]
    pub fn refused(self) -> Option<Refused> {
        match self {
            Self::Admit(_) => None,
            Self::Refuse(refused) => Some(refused),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> DecisionId {
        match self {
            Self::Admit(admitted) => admitted.id(),
            Self::Refuse(refused) => refused.id,
        }
    }
}

/// A decision's number: what headers, logs and the admin API call it. Written as sixteen hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionId(u64);

impl DecisionId {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// A share that goes with the number; those of one gate are spread evenly from 0 to 1.
    #[must_use]
    pub fn share(self) -> Ratio {
        // The finaliser of splitmix64: the numbers themselves are evenly spaced, and neighbours would have shares that
        // follow one another.
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let upper = (mixed >> 32) as u32;
        Ratio::new(f64::from(upper) / f64::from(u32::MAX)).unwrap_or(Ratio::ONE)
    }

    /// Its digits in ASCII, for answers that are written too often for a formatter.
    #[must_use]
    pub fn digits(self) -> [u8; 16] {
        let mut digits = [0; 16];
        let (upper, lower) = digits.split_at_mut(8);
        upper.copy_from_slice(&hexadecimal(self.0 >> 32));
        lower.copy_from_slice(&hexadecimal(self.0 & u64::from(u32::MAX)));
        digits
    }
}

/// Eight digits of a number of 32 bits, all at once: each four bits get a byte of their own, which then become digits,
/// those above nine letters.
const fn hexadecimal(number: u64) -> [u8; 8] {
    let halves = (number | number << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let above_nine = (fours + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    let to_letters = b'a' - b'0' - 10;
    (fours + 0x3030_3030_3030_3030 + above_nine * to_letters as u64).to_be_bytes()
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digits().into_iter().try_for_each(|digit| f.write_char(digit.into()))
    }
}

impl FromStr for DecisionId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = if is_hex { u64::from_str_radix(text, 16).ok() } else { None };
        number.map(Self).ok_or_else(|| Invalid::new("decision", text, "sixteen hexadecimal digits"))
    }
}

/// What the records of all decisions have in common.
fn record(
    plan: &Plan,
    (id, at): (DecisionId, Now),
    attributes: &Attributes<'_>,
    (caller, mets): (Option<Key>, &Mets),
) -> Record {
    let host = (!attributes.host.is_empty()).then(|| Record::cut(attributes.host, Record::MOST_OF_TEXT));
    Record {
        id: Some(id),
        method: Record::cut(attributes.method, Record::MOST_OF_TEXT),
        host,
        path: Record::cut(attributes.path, Record::MOST_OF_PATH),
        client: attributes.client,
        user_agent: Record::cut_field(attributes.headers.first("user-agent")),
        caller: plan.caller_shown(attributes).filter(|_| caller.is_some()),
        fingerprint: caller.map(Key::bits),
        fingerprints: fingerprints(plan, mets),
        cost: Cost::ONE,
        decided: Decided::Admitted,
        ..Record::malformed(at.wall)
    }
}

/// The key in each rule that was asked, by the rule's name. Rules that shed count by no key.
fn fingerprints(plan: &Plan, mets: &Mets) -> Vec<(String, u64)> {
    let counted = mets.iter().filter(|met| !matches!(met.took, Took::Nothing));
    let named = counted
        .filter_map(|met| Some((plan.rules.get(usize::from(met.rule))?.rule.name.clone(), met.key.bits())));
    let mut named: Vec<(String, u64)> = named.collect();
    named.sort();
    // A rule and its shadow value have one key.
    named.dedup_by(|one, other| one.0 == other.0);
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_sixteen_digits_and_read_back() {
        for (number, text) in [
            (0, "0000000000000000"),
            (0xc0ffee, "0000000000c0ffee"),
            (0x0123_4567_89ab_cdef, "0123456789abcdef"),
            (u64::MAX - 6, "fffffffffffffff9"),
        ] {
            let id = DecisionId::new(number);
            assert_eq!((id.to_string().as_str(), &id.digits()[..]), (text, text.as_bytes()));
            assert_eq!(text.parse(), Ok(id));
        }
    }
}
