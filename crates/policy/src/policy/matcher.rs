//! Which requests something is for.
//!
//! All conditions that are given must hold. Paths are compared segment by segment:
//!
//! | pattern        | matches                         | does not match      |
//! |----------------|---------------------------------|---------------------|
//! | `/v1/orders`   | `/v1/orders`                    | `/v1/orders/7`      |
//! | `/v1/*/items`  | `/v1/7/items`                   | `/v1/7/8/items`     |
//! | `/v1/**`       | `/v1`, `/v1/`, `/v1/orders/7`   | `/v10`              |
//! | `/**`          | everything                      |                     |

use crate::attributes::Attributes;

/// Conditions on a request. The empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// The methods, or any when there are none.
    pub methods: Vec<String>,
    /// The hosts, or any when there are none.
    pub hosts: Vec<String>,
    /// The path, or any.
    pub path: Option<PathPattern>,
    /// Header fields, all of which must be as said.
    pub headers: Vec<HeaderMatch>,
}

/// A condition on one header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatch {
    /// Its name in lower case.
    pub name: String,
    /// What its first line must be.
    pub value: String,
}

/// A pattern for paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    written: String,
    segments: Vec<Segment>,
    /// Whether it ends with `/**`.
    is_open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Exactly(String),
    Any,
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// With what to write instead, when it does not begin with a slash, or a star is not a whole segment, or
    /// `**` is not the last one.
    pub fn new(written: &str) -> Result<Self, &'static str> {
        let Some(path) = written.strip_prefix('/') else { return Err("a path begins with `/`") };
        let (path, is_open) = match path.strip_suffix("**") {
            Some("") => ("", true),
            Some(rest) => match rest.strip_suffix('/') {
                Some(rest) => (rest, true),
                None => return Err("`**` stands for whole segments: write `/**` at the end"),
            },
            None => (path, false),
        };
        let parts = path.split('/').filter(|_| !(is_open && path.is_empty()));
        let segments = parts.map(Segment::new).collect::<Result<_, _>>()?;
        Ok(Self { written: written.to_owned(), segments, is_open })
    }

    /// As it was written.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether it matches a path.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let mut rest = path.strip_prefix('/').map(|path| path.split('/'));
        let Some(parts) = &mut rest else { return false };
        let fits = self.segments.iter().all(|segment| parts.next().is_some_and(|part| segment.matches(part)));
        fits && (self.is_open || parts.next().is_none())
    }
}

impl PathPattern {
    /// Whether it matches every path that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let covers = |(own, other): (&Segment, &Segment)| match (own, other) {
            (Segment::Any, Segment::Any) => true,
            (Segment::Any, Segment::Exactly(part)) => !part.is_empty(),
            (Segment::Exactly(own), Segment::Exactly(part)) => own == part,
            (Segment::Exactly(_), Segment::Any) => false,
        };
        let lengths = match (self.is_open, other.is_open) {
            (true, _) => self.segments.len() <= other.segments.len(),
            (false, false) => self.segments.len() == other.segments.len(),
            (false, true) => false,
        };
        lengths && self.segments.iter().zip(&other.segments).all(covers)
    }
}

impl Segment {
    fn new(written: &str) -> Result<Self, &'static str> {
        match written {
            "*" => Ok(Self::Any),
            "**" => Err("`**` can only be the last segment"),
            part if part.contains('*') => Err("a star stands for a whole segment: `/v1/*/items`"),
            part => Ok(Self::Exactly(part.to_owned())),
        }
    }

    fn matches(&self, part: &str) -> bool {
        match self {
            Self::Exactly(own) => own == part,
            Self::Any => !part.is_empty(),
        }
    }
}

impl Matcher {
    /// Whether all its conditions hold.
    #[must_use]
    pub fn matches(&self, attributes: &Attributes<'_>) -> bool {
        let one_of =
            |allowed: &[String], found: &str| allowed.is_empty() || allowed.iter().any(|a| a == found);
        let host = |allowed: &String| allowed.eq_ignore_ascii_case(attributes.host);
        let header = |condition: &HeaderMatch| {
            attributes.headers.first(&condition.name) == Some(condition.value.as_bytes())
        };
        one_of(&self.methods, attributes.method)
            && (self.hosts.is_empty() || self.hosts.iter().any(host))
            && self.path.as_ref().is_none_or(|pattern| pattern.matches(attributes.path))
            && self.headers.iter().all(header)
    }
}

impl Matcher {
    /// Whether it matches every request that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let words = |own: &[String], other: &[String]| {
            own.is_empty() || (!other.is_empty() && other.iter().all(|word| own.contains(word)))
        };
        let path = match (&self.path, &other.path) {
            (None, _) => true,
            (Some(own), Some(other)) => own.covers(other),
            (Some(own), None) => own.written() == "/**",
        };
        words(&self.methods, &other.methods)
            && words(&self.hosts, &other.hosts)
            && path
            && self.headers.iter().all(|condition| other.headers.contains(condition))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_as_in_the_table() {
        let table: &[(&str, &[&str], &[&str])] = &[
            ("/v1/orders", &["/v1/orders"], &["/v1/orders/7", "/v1", "/v1/orders/"]),
            ("/v1/*/items", &["/v1/7/items"], &["/v1/7/8/items", "/v1//items"]),
            ("/v1/**", &["/v1", "/v1/", "/v1/orders/7"], &["/v10", "/"]),
            ("/**", &["/", "/anything", "/a/b"], &["a", ""]),
            ("/", &["/"], &["/a"]),
        ];
        for (pattern, matching, others) in table {
            let pattern = PathPattern::new(pattern).unwrap();
            for path in *matching {
                assert!(pattern.matches(path), "{pattern:?} {path}");
            }
            for path in *others {
                assert!(!pattern.matches(path), "{pattern:?} {path}");
            }
        }
    }

    #[test]
    fn a_pattern_covers_what_matches_no_path_of_its_own() {
        for (wide, narrow, covers) in [
            ("/**", "/v1/orders", true),
            ("/v1/**", "/v1", true),
            ("/v1/*", "/v1/orders", true),
            ("/v1/*", "/v1/", false),
            ("/v1/orders", "/v1/*", false),
            ("/v1/*", "/v1/**", false),
            ("/v1/**", "/v2/**", false),
            ("/v1/*/**", "/v1/**", false),
        ] {
            let (wide, narrow) = (PathPattern::new(wide).unwrap(), PathPattern::new(narrow).unwrap());
            assert_eq!(wide.covers(&narrow), covers, "{wide:?} {narrow:?}");
        }
    }

    #[test]
    fn bad_patterns_say_what_to_write() {
        for (pattern, problem) in [
            ("v1", "a path begins with `/`"),
            ("/v1**", "`**` stands for whole segments: write `/**` at the end"),
            ("/**/v1", "`**` can only be the last segment"),
            ("/v*", "a star stands for a whole segment: `/v1/*/items`"),
        ] {
            assert_eq!(PathPattern::new(pattern), Err(problem));
        }
    }
}
