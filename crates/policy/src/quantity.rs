//! Numbers with units, as people write them: `10/s`, `250ms`, `64KiB`, `20%`.
//!
//! All of them are read exactly, in whole numbers of the smallest unit; nothing passes through floating
//! point. What cannot be read says what to write instead, with the number that was meant where there is
//! one.

mod length;
mod quota;
mod size;

pub use length::Length;
pub use quota::{QuotaText, Window};
pub use size::{Percent, Size};

use tidegate_core::Cost;

use crate::problem::Code;

/// Why something is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What kind of problem it is.
    pub code: Code,
    /// What is wrong, following the name of the key: "`10` has no unit".
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl Unreadable {
    fn new(code: Code, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }
}

/// Splits `2.5GiB` into its number and its unit. Underscores between digits are left out.
fn split(text: &str) -> Option<(Cost, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = amount(number)?;
    Some((number, unit.trim()))
}

/// An exact decimal, in which digits may be grouped by underscores.
pub(crate) fn amount(text: &str) -> Option<Cost> {
    let text = text.trim();
    if text.starts_with('_') || text.ends_with('_') {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// A text as it is quoted in messages: whole, unless it is long.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST - 1).collect();
    format!("{start}…")
}
