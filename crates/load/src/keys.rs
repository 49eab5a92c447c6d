//! Which key a request carries.
//!
//! Callers are not alike: a few send most of the traffic. [`Draw::Zipf`] draws them so: with exponent 1 the first
//! key comes twice as often as the second, three times as often as the third, and so on.

mod zipf;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::chance::Chance;
use zipf::Zipf;

/// What stands in a path where the key goes.
pub const PLACEHOLDER: &str = "{key}";

/// The most keys there can be: beyond, the numbers of a Zipf draw would no longer be exact.
pub const MAX_KEYS: u64 = 1 << 40;

/// Keys for a class: where they go, how they look, how they are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Where in the request the key goes.
    pub place: Place,
    /// How it looks: `key-%`, with the key's number for the percent sign. The first is number 1.
    pub format: String,
    /// Which of them a request carries.
    pub draw: Draw,
}

/// Where in a request the key goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The value of this header field.
    Header(HeaderName),
    /// Where the class's path says `{key}`.
    Path,
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Always the first.
    One,
    /// Each of this many as often as the others.
    Uniform {
        /// How many keys there are.
        keys: u64,
    },
    /// The key with number *k* in proportion to `1 / k^exponent`.
    Zipf {
        /// How many keys there are.
        keys: u64,
        /// How steep it is.
        exponent: Exponent,
    },
}

/// How steep a Zipf draw is: 0 is uniform, 1.1 is common among callers of an API.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Exponent(f64);

/// An exponent is never NaN.
impl Eq for Exponent {}

impl Exponent {
    /// The steepest: all but one request in a million carry the first key.
    pub const MAX: Self = Self(20.0);

    /// This exponent; none if it is negative, no number, or above [`Exponent::MAX`].
    #[must_use]
    pub fn new(exponent: f64) -> Option<Self> {
        (0.0..=Self::MAX.0).contains(&exponent).then_some(Self(exponent))
    }

    /// As a number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Keys {
    /// The key with this number as it is written.
    #[must_use]
    pub fn written(&self, number: u64) -> String {
        self.format.replacen('%', &number.to_string(), 1)
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn problem(&self, path: &str) -> Option<String> {
        let count = match self.draw {
            Draw::One => 1,
            Draw::Uniform { keys } | Draw::Zipf { keys, .. } => keys,
        };
        if !(1..=MAX_KEYS).contains(&count) {
            return Some(format!("there must be 1 to {MAX_KEYS} keys, not {count}"));
        }
        match self.format.matches('%').count() {
            0 if count > 1 => return Some(format!("the key `{}` has no % for its number", self.format)),
            0 | 1 => {}
            _ => return Some(format!("the key `{}` has more than one %", self.format)),
        }
        let holds = path.contains(PLACEHOLDER);
        match self.place {
            Place::Path if !holds => Some(format!("the path `{path}` does not say where {PLACEHOLDER} goes")),
            Place::Path if !self.format.bytes().all(is_plain_in_paths) => {
                Some(format!("the key `{}` has characters that a path cannot hold", self.format))
            }
            Place::Header(_) if holds => {
                Some(format!("the path says {PLACEHOLDER}, but the key goes elsewhere"))
            }
            Place::Header(_) if HeaderValue::from_str(&self.format).is_err() => {
                Some(format!("the key `{}` has characters that a header field cannot hold", self.format))
            }
            Place::Path | Place::Header(_) => None,
        }
    }

    /// The value of the header field for this key.
    pub(crate) fn header_value(&self, number: u64) -> Option<HeaderValue> {
        HeaderValue::from_maybe_shared(Bytes::from(self.written(number))).ok()
    }
}

fn is_plain_in_paths(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:@".contains(&byte)
}

/// Draws the numbers of keys, beginning with 1.
#[derive(Clone, Debug)]
pub(crate) enum Drawer {
    One,
    Uniform(u64),
    Zipf(Zipf),
}

impl Drawer {
    pub(crate) fn new(draw: Draw) -> Self {
        match draw {
            Draw::One => Self::One,
            Draw::Uniform { keys } => Self::Uniform(keys),
            Draw::Zipf { keys, exponent } if exponent.get() > 0.0 => {
                Self::Zipf(Zipf::new(keys, exponent.get()))
            }
            Draw::Zipf { keys, .. } => Self::Uniform(keys),
        }
    }

    pub(crate) fn draw(&self, chance: &mut Chance) -> u64 {
        match self {
            Self::One => 1,
            Self::Uniform(keys) => chance.below(*keys) + 1,
            Self::Zipf(zipf) => zipf.draw(chance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(format: &str, draw: Draw) -> Keys {
        Keys { place: Place::Header(HeaderName::from_static("x-api-key")), format: format.to_owned(), draw }
    }

    #[test]
    fn the_number_goes_where_the_percent_sign_is() {
        assert_eq!(keys("key-%!", Draw::One).written(17), "key-17!");
        assert_eq!(keys("alice", Draw::One).written(1), "alice");
    }

    #[test]
    fn uniform_keys_come_equally_often() {
        let drawer = Drawer::new(Draw::Uniform { keys: 10 });
        let mut chance = Chance::stream(3, 1);
        let mut drawn = [0_u32; 10];
        (0..100_000).for_each(|_| drawn[usize::try_from(drawer.draw(&mut chance) - 1).unwrap()] += 1);
        assert!(drawn.iter().all(|count| count.abs_diff(10_000) < 300), "{drawn:?}");
    }

    #[test]
    fn what_cannot_be_a_key_is_said() {
        let problem = |format: &str, draw| keys(format, draw).problem("/").unwrap_or_default();
        assert_eq!(problem("key", Draw::Uniform { keys: 2 }), "the key `key` has no % for its number");
        assert_eq!(problem("%-%", Draw::One), "the key `%-%` has more than one %");
        assert!(problem("%", Draw::Uniform { keys: 0 }).starts_with("there must be 1 to"));
        assert_eq!([-0.1, 20.1, f64::NAN].map(Exponent::new), [None; 3]);
        assert!(problem("a\nb", Draw::One).contains("a header field cannot hold"));

        let in_path = Keys { place: Place::Path, ..keys("a b", Draw::One) };
        assert!(in_path.problem("/").unwrap().contains("does not say where {key} goes"));
        assert!(in_path.problem("/{key}").unwrap().contains("a path cannot hold"));
        assert!(keys("%", Draw::One).problem("/{key}").unwrap().contains("the key goes elsewhere"));
    }
}
