/// A route's cheaper answer, given instead of the upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degrade {
    /// When it is given.
    pub when: DegradeWhen,
    /// Its status: 200 to 599.
    pub status: u16,
    /// Its body.
    pub body: String,
    /// Its header fields, with names in lower case.
    pub headers: Vec<(String, String)>,
}

/// When a cheaper answer is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DegradeWhen {
    /// Instead of a refusal for overload, and to everybody when an operator says so.
    #[default]
    Shedding,
    /// Only when an operator says so, and then to everybody.
    Switched,
}

impl DegradeWhen {
    /// As it is written in policies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shedding => "shedding",
            Self::Switched => "switched",
        }
    }
}
