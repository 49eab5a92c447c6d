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
    /// The first value of the field with this name, which is in lower case.
    fn first(&self, name: &str) -> Option<&[u8]>;

    /// Whether the field has several lines. A key that could be read in two ways is not a key.
    fn is_repeated(&self, name: &str) -> bool;
}

/// No fields at all.
impl Headers for () {
    fn first(&self, _name: &str) -> Option<&[u8]> {
        None
    }

    fn is_repeated(&self, _name: &str) -> bool {
        false
    }
}

/// Fields as they were written, for tests and for imagined requests. Names are compared without case.
impl Headers for Vec<(String, String)> {
    fn first(&self, name: &str) -> Option<&[u8]> {
        let mut found = self.iter().filter(|(written, _)| written.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_bytes())
    }

    fn is_repeated(&self, name: &str) -> bool {
        self.iter().filter(|(written, _)| written.eq_ignore_ascii_case(name)).count() > 1
    }
}
