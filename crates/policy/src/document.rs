//! The written form of a policy: what the file says, with nothing resolved.
//!
//! Every key is declared once, in one of the tables below, by `section!`: its type, what it is for, what
//! holds when it is left out and why, an example, and whether this version acts on it. From that one
//! declaration come the struct, its reading, the detection of unknown keys, the JSON Schema, the
//! reference, and what `--effective` prints. So none of them can say something else than the others.
//!
//! | to find | look in |
//! |---|---|
//! | what a declaration consists of | [`spec`] |
//! | how a struct is read from the neutral tree | `read` |
//! | texts with a meaning of their own: addresses, key sources | `values` |
//! | the keys | `top`, `server`, `rule`, `route`, `upstream` |

pub(crate) mod callers;
pub(crate) mod read;
pub(crate) mod route;
pub(crate) mod rule;
pub(crate) mod server;
pub mod spec;
pub(crate) mod top;
pub(crate) mod upstream;
pub(crate) mod values;

/// Declares a table of the language. Each key is written as
///
/// ```text
/// /// What it is for.
/// field "key": Type, what holds when it is left out, example in TOML, Built or NotYet;
/// ```
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident $noun:literal {
            $($(#[doc = $doc:literal])+ $field:ident $key:literal : $type:ty, $absent:expr, $example:expr, $support:ident;)*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name {
            $($(#[doc = $doc])+
            #[allow(dead_code, reason = "keys that are not supported yet are read, checked and refused")]
            pub(crate) $field: Option<crate::document::read::Field<$type>>,)*
        }

        impl crate::document::read::Read for $name {
            const SHAPE: &'static crate::document::spec::Shape = {
                #[allow(unused_imports, reason = "not every table has keys of each sort")]
                use crate::document::spec::{Absent::*, Key, Section, Shape, Support::*};
                &Shape::Section(&Section {
                    noun: $noun,
                    about: concat!($($about),+),
                    keys: &[$(Key {
                        name: $key,
                        about: concat!($($doc),+),
                        shape: <$type as crate::document::read::Read>::SHAPE,
                        absent: $absent,
                        example: $example,
                        support: $support,
                    }),*],
                })
            };

            fn read(
                node: &crate::text::Node,
                place: &crate::document::read::Place,
                problems: &mut crate::problem::Problems,
            ) -> Option<Self> {
                use crate::document::read;
                let entries = read::table(node, Self::SHAPE, place, problems)?;
                let mut document = Self::default();
                for entry in entries {
                    match entry.key.as_str() {
                        $($key => document.$field = read::field(entry, Self::SHAPE, place, problems),)*
                        _ => read::unknown(entry, Self::SHAPE, place, problems),
                    }
                }
                Some(document)
            }
        }
    };
}

/// Declares a key's words. Each is written as `Variant "word";`.
macro_rules! choice {
    ($(#[doc = $about:literal])+ $name:ident { $($variant:ident $word:literal $support:ident;)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $(#[doc = $word] $variant,)+
        }

        impl crate::document::read::Read for $name {
            const SHAPE: &'static crate::document::spec::Shape = {
                use crate::document::spec::{Shape, Support::*};
                &Shape::Choice(&[$(($word, $support)),+])
            };

            fn read(
                node: &crate::text::Node,
                place: &crate::document::read::Place,
                problems: &mut crate::problem::Problems,
            ) -> Option<Self> {
                match crate::document::read::choice(node, Self::SHAPE, place, problems)? {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {choice, section};

/// Everything that can be written, from the top of the file.
#[must_use]
pub fn declared() -> &'static spec::Shape {
    <top::PolicyDoc as read::Read>::SHAPE
}
