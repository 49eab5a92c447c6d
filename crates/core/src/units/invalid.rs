use std::fmt;

/// A value that was refused: which field, what it held, and what is allowed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field as the user knows it, for example `window`.
    pub field: &'static str,
    /// What the field held.
    pub value: String,
    /// What would have been accepted, as a phrase that follows "must be".
    pub allowed: &'static str,
}

impl Invalid {
    /// Refuses `value` for `field`; `allowed` follows the words "must be".
    pub fn new(field: &'static str, value: impl fmt::Display, allowed: &'static str) -> Self {
        Self { field, value: value.to_string(), allowed }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, but must be {}", self.field, self.value, self.allowed)
    }
}

impl std::error::Error for Invalid {}
