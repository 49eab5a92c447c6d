//! What `cargo xtask endurance` runs: what is worth minutes, but not in every change.
//!
//! In the test files that it shares with `cargo xtask test`, what takes minutes is in a module `long` and is ignored in a
//! build that is not optimised, as all that measures is. So `cargo xtask test`, which runs them unoptimised but for the
//! scenarios of the module `short`, and this command together leave nothing out.

use crate::steps::{Step, optimised};

/// Every step of `cargo xtask endurance`.
pub(crate) fn all() -> Vec<Step> {
    vec![
        Step {
            name: "scenarios",
            what: "the other kinds of overload over real sockets",
            prepare: |project| Ok(vec![optimised(project, "scenarios", "long::")]),
        },
        Step {
            name: "strain",
            what: "strain on the real binary, optimised as users run it, and what lasts minutes",
            prepare: |project| Ok(vec![optimised(project, "endurance", "")]),
        },
    ]
}
