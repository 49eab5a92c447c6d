//! Where things are, and how cargo is called from here.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository this xtask was built in.
#[derive(Debug)]
pub(crate) struct Project {
    root: PathBuf,
    target: PathBuf,
}

impl Project {
    /// The repository that holds this crate.
    pub(crate) fn here() -> Self {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root").to_owned();
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        Self { root, target }
    }

    /// A path from the root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A path below the directory for build products.
    pub(crate) fn built(&self, relative: &str) -> PathBuf {
        self.target.join(relative)
    }

    /// Any program, started in the root, which finds the project's own tools first.
    pub(crate) fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.current_dir(&self.root).env("PATH", self.search_path());
        command
    }

    /// Cargo with `arguments` separated by spaces.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let mut command = self.command("cargo");
        command.args(arguments.split_whitespace());
        command
    }

    fn search_path(&self) -> OsString {
        let rest = env::var_os("PATH").unwrap_or_default();
        let own = self.built("tools/bin");
        let all = std::iter::once(own).chain(env::split_paths(&rest));
        // Fails only for a directory with a colon in its name; then the tools on PATH must do.
        env::join_paths(all).unwrap_or(rest)
    }
}
