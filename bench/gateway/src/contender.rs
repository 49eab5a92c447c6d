//! What a gateway must be able to do to take part.

use std::path::Path;
use std::process::Command;

use tidegate_bench_lab::programs::Between;

use crate::case::Quota;

/// A gateway that can be configured for a case and started.
pub(crate) trait Contender {
    fn name(&self) -> &'static str;

    /// Prints its version.
    fn version(&self) -> Command;

    /// What it is called, which some programs look at, and what stands in its configuration file.
    fn configuration(&self, setup: &Setup<'_>) -> (&'static str, String);

    /// Runs it in the foreground with the configuration in this file.
    fn command(&self, file: &Path) -> Command;
}

/// What a configuration depends on.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// A directory of its own.
    pub(crate) directory: &'a Path,
    pub(crate) between: Between,
    /// For each value of `x-api-key`.
    pub(crate) quota: Option<Quota>,
}
