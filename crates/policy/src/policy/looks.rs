//! What of a request a policy looks at, for drivers that make requests ready to be looked at.

use std::collections::BTreeSet;

use super::{KeySource, Matcher, Policy};
use crate::attributes::Headers;

impl Policy {
    /// Whether anything depends on paths. `/**` stands for every path, however it is written.
    #[must_use]
    pub fn looks_at_paths(&self) -> bool {
        self.matchers().any(|matcher| matcher.path.as_ref().is_some_and(|path| path.written() != "/**"))
            || self.has_key(|source| *source == KeySource::Path)
    }

    /// Whether anything depends on the host.
    #[must_use]
    pub fn looks_at_hosts(&self) -> bool {
        let is_host = |name: &str| name == "host";
        self.matchers().any(|matcher| !matcher.hosts.is_empty())
            || self.matched_fields().into_iter().any(is_host)
            || self.has_key(|source| matches!(source, KeySource::Header(name) if is_host(name)))
    }

    /// The header fields that routes and assignments of criticality are chosen by, each once.
    #[must_use]
    pub fn matched_fields(&self) -> BTreeSet<&str> {
        self.matchers().flat_map(|matcher| &matcher.headers).map(|header| header.name.as_str()).collect()
    }

    /// The header fields that keys are made of, each once.
    #[must_use]
    pub fn key_fields(&self) -> BTreeSet<&str> {
        let sources = self.keys().filter_map(|source| match source {
            KeySource::Header(name) => Some(name.as_str()),
            KeySource::Caller
            | KeySource::ClientIp
            | KeySource::Path
            | KeySource::Route
            | KeySource::Global => None,
        });
        sources.collect()
    }

    /// Whether a field that routes or criticality are chosen by has several lines: the one that was looked at is then
    /// perhaps not the one that counts for the service.
    #[must_use]
    pub fn matches_repeated(&self, headers: &dyn Headers) -> bool {
        self.matchers().flat_map(|matcher| &matcher.headers).any(|field| is_repeated(headers, &field.name))
    }

    /// Whether two readings of a path come to the same for everything that depends on paths.
    #[must_use]
    pub fn reads_alike(&self, one: &str, other: &str) -> bool {
        let mut patterns = self.matchers().filter_map(|matcher| matcher.path.as_ref());
        patterns.all(|pattern| pattern.matches(one) == pattern.matches(other))
            && !self.has_key(|source| *source == KeySource::Path)
    }

    fn matchers(&self) -> impl Iterator<Item = &Matcher> {
        let assigned = self.criticality.iter().map(|(matcher, _)| matcher);
        self.routes.iter().map(|route| &route.matcher).chain(assigned)
    }

    fn keys(&self) -> impl Iterator<Item = &KeySource> {
        self.rules.iter().flat_map(|rule| &rule.key.0).chain(&self.caller.0)
    }

    fn has_key(&self, is_it: impl Fn(&KeySource) -> bool) -> bool {
        self.keys().any(is_it)
    }
}

/// Whether a field has several lines.
pub(crate) fn is_repeated(headers: &dyn Headers, name: &str) -> bool {
    headers.find(name).is_some_and(|field| field.is_repeated)
}
