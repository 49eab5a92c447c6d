use std::fmt;
use std::str::FromStr;

use super::Invalid;

/// How late a request should be shed. Ordered: the greater is shed later.
///
/// ```
/// use tidegate_core::Criticality;
///
/// assert!(Criticality::Sheddable < Criticality::CriticalPlus);
/// assert_eq!("sheddable_plus".parse(), Ok(Criticality::SheddablePlus));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Criticality {
    /// May fail often and for long: nobody waits for it.
    Sheddable,
    /// May fail at times: batch work that is tried again.
    SheddablePlus,
    /// Users see it fail. What production traffic is unless it says otherwise.
    #[default]
    Critical,
    /// Users suffer when it fails; as much of it as exists must fit the service.
    CriticalPlus,
}

impl Criticality {
    /// All levels, the first to be shed first.
    pub const ALL: [Self; 4] = [Self::Sheddable, Self::SheddablePlus, Self::Critical, Self::CriticalPlus];

    /// The level as it is written in policies, headers and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sheddable => "sheddable",
            Self::SheddablePlus => "sheddable_plus",
            Self::Critical => "critical",
            Self::CriticalPlus => "critical_plus",
        }
    }

    /// Its place among [`ALL`](Self::ALL).
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Criticality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Criticality {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const ALLOWED: &str = "critical_plus, critical, sheddable_plus or sheddable";
        let level = Self::ALL.into_iter().find(|level| level.as_str() == text);
        level.ok_or_else(|| Invalid::new("criticality", text, ALLOWED))
    }
}
