//! Tools the checks need beyond cargo. What is missing is installed below the target directory, so
//! that nothing outside the repository changes; only what Debian packages comes from the system.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::project::Project;
use crate::report::{say, written};

/// The cargo-deny that `deny.toml` is written for; a newer minor version may refuse its fields.
const CARGO_DENY: &str = "0.20.2";

/// Why a step could not be carried out.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The program is not there or may not be run.
    Start { command: String, source: io::Error },
    /// The program ran and said no.
    Failed { command: String, status: ExitStatus },
    /// Something the step reads is not as expected.
    Missing { what: String },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { command, .. } => write!(f, "`{command}` could not be started"),
            Self::Failed { command, status } => write!(f, "`{command}` ended with {status}"),
            Self::Missing { what } => write!(f, "{what}"),
        }
    }
}

impl Error for Trouble {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Start { source, .. } => Some(source),
            Self::Failed { .. } | Self::Missing { .. } => None,
        }
    }
}

/// Makes sure that cargo-deny is there.
pub(crate) fn need_cargo_deny(project: &Project) -> Result<(), Trouble> {
    need_crate(project, "cargo-deny", CARGO_DENY)
}

/// Makes sure that gungraun's runner is there, in exactly the version the benches are built with:
/// the two speak a format that changes between versions.
pub(crate) fn need_gungraun_runner(project: &Project) -> Result<(), Trouble> {
    let lock = project.path("bench/Cargo.lock");
    let text = fs::read_to_string(&lock).map_err(|problem| Trouble::Missing {
        what: format!("{} cannot be read: {problem}", lock.display()),
    })?;
    let version = locked_version(&text, "gungraun")
        .ok_or_else(|| Trouble::Missing { what: format!("{} does not name gungraun", lock.display()) })?;
    need_crate(project, "gungraun-runner", version)
}

/// The kind of machine the compiler runs on, as it names it.
pub(crate) fn host(project: &Project) -> Result<String, Trouble> {
    let output = project.command("rustc").arg("-vV").output();
    let output = output.map_err(|source| Trouble::Start { command: "rustc -vV".to_owned(), source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Trouble::Missing { what: "rustc does not name its host".to_owned() })
}

/// Makes sure that a directory is there.
pub(crate) fn need_directory(path: &Path) -> Result<(), Trouble> {
    fs::create_dir_all(path)
        .map_err(|problem| Trouble::Missing { what: format!("{} cannot be made: {problem}", path.display()) })
}

/// Makes sure that valgrind is there.
pub(crate) fn need_valgrind(project: &Project) -> Result<(), Trouble> {
    need_package(project, "valgrind", "valgrind")
}

/// Makes sure that a C++ compiler is there, which the fuzzer's library is built with.
pub(crate) fn need_cpp_compiler(project: &Project) -> Result<(), Trouble> {
    need_package(project, "c++", "g++")
}

/// Makes sure that promtool is there, which reads metrics as Prometheus does.
pub(crate) fn need_promtool(project: &Project) -> Result<(), Trouble> {
    need_package(project, "promtool", "prometheus")
}

/// Makes sure that objcopy is there, which takes binaries apart.
pub(crate) fn need_objcopy(project: &Project) -> Result<(), Trouble> {
    need_package(project, "objcopy", "binutils")
}

fn need_package(project: &Project, program: &str, package: &str) -> Result<(), Trouble> {
    if answers(&mut project.command(program)).is_some() {
        return Ok(());
    }
    say(&format!("{program} is missing: installing {package} with apt-get"));
    let apt_get = |words: &[&str]| succeed(project.command("apt-get").args(words));
    if apt_get(&["update"]).is_err() {
        say("the list of packages cannot be renewed: going on with the one that is there");
    }
    apt_get(&["install", "--yes", "--no-install-recommends", package]).map_err(|trouble| Trouble::Missing {
        what: format!("{program} is missing and cannot be installed ({trouble}); install {package} by hand"),
    })
}

fn need_crate(project: &Project, name: &str, version: &str) -> Result<(), Trouble> {
    let is_it = |answer: String| answer.split_whitespace().any(|word| word == version);
    if answers(&mut project.command(name)).is_some_and(is_it) {
        return Ok(());
    }
    say(&format!("{name} {version} is missing: installing it below the target directory"));
    // Not optimised: a tool that runs for seconds need not be built for minutes.
    let mut install = project.cargo("install --debug --locked --force");
    install.args([name, "--version", version, "--root"]).arg(project.built("tools"));
    succeed(&mut install)
}

/// What the program says to `--version`, if it is there.
fn answers(command: &mut Command) -> Option<String> {
    let output = command.arg("--version").stderr(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn succeed(command: &mut Command) -> Result<(), Trouble> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Trouble::Failed { command: written(command), status }),
        Err(source) => Err(Trouble::Start { command: written(command), source }),
    }
}

/// The version of package `name` in the text of a `Cargo.lock`.
fn locked_version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let wanted = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != wanted).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "\
[[package]]
name = \"gungraun-common\"
version = \"0.1.0\"

[[package]]
name = \"gungraun\"
version = \"0.20.0\"
";

    #[test]
    fn the_version_is_that_of_the_very_package() {
        assert_eq!(locked_version(LOCK, "gungraun"), Some("0.20.0"));
        assert_eq!(locked_version(LOCK, "gungraun-runner"), None);
    }
}
