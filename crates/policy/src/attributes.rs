//! The facts about a request that rules may look at.
//!
//! They are borrowed from wherever the request lies, so that asking the gate copies nothing. A driver that
//! has no HTTP request (a log line, an imagined request of `explain`) brings the same facts.

use std::fmt;
use std::net::IpAddr;

use tidegate_core::Criticality;

/// What is known of one request.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// `GET`, `POST`; compared as it is written.
    pub method: &'a str,
    /// The path without the query, already normalised for matching.
    pub path: &'a str,
    /// The host it was sent to, without the port; empty when there is none.
    pub host: &'a str,
    /// Its header fields.
    pub headers: &'a dyn Headers,
    /// Who sent it, as far as proxies can be believed.
    pub client: Option<IpAddr>,
    /// The criticality that a trusted peer gave it. From anybody else it is not believed, so a driver
    /// leaves it out.
    pub criticality: Option<Criticality>,
}

impl fmt::Debug for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, path, host, client, criticality, headers: _ } = self;
        f.debug_struct("Attributes")
            .field("method", method)
            .field("path", path)
            .field("host", host)
            .field("client", client)
            .field("criticality", criticality)
            .finish_non_exhaustive()
    }
}

/// The header fields of a request.
pub trait Headers {
    /// The field with this name, which is in lower case.
    fn find(&self, name: &str) -> Option<Field<'_>>;

    /// The first value of the field with this name.
    fn first(&self, name: &str) -> Option<&[u8]> {
        self.find(name).map(|field| field.first)
    }
}

/// A header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The value of its first line.
    pub first: &'a [u8],
    /// Whether it has several lines. A key that could be read in two ways is not a key.
    pub is_repeated: bool,
}

impl<'a> Field<'a> {
    /// The field whose lines have these values; none if there are no lines.
    pub fn of_lines(mut values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        Some(Self { first: values.next()?, is_repeated: values.next().is_some() })
    }
}

/// No fields at all.
impl Headers for () {
    fn find(&self, _name: &str) -> Option<Field<'_>> {
        None
    }
}

/// Fields as they were written, for tests and for imagined requests. Names are compared without case.
impl Headers for Vec<(String, String)> {
    fn find(&self, name: &str) -> Option<Field<'_>> {
        let lines = self.iter().filter(|(written, _)| written.eq_ignore_ascii_case(name));
        Field::of_lines(lines.map(|(_, value)| value.as_bytes()))
    }
}
