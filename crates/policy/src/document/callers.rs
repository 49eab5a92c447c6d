//! The table of callers, a file of its own.

use super::read::Named;
use super::rule::LimitDoc;
use super::section;

section! {
    /// What is known of one caller.
    CallerEntryDoc "caller" {
        /// The plan it is on.
        plan "plan": String, Nothing("it has what the rules allow everybody"), "\"gold\"", Built;
        /// Limits of its own, by rule.
        overrides "overrides": Named<LimitDoc>, Nothing("it has what its plan allows"), "{ request_rate = { quota = \"50/s\", burst = 100 } }", Built;
    }
}
