//! The policy's files: where they are looked for, and their text.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tidegate_policy::{Problem, Source, problem};

use super::Failure;

/// The names a policy has in the usual places.
const NAMES: [&str; 3] = ["tidegate.toml", "tidegate.yaml", "tidegate.yml"];

/// A policy and the callers table it names, as they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    policy: (String, Vec<u8>),
    callers: Option<(String, Vec<u8>)>,
}

impl Files {
    /// Reads `file`, or the first policy in the usual places.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let path = match file {
            Some(path) => path.to_owned(),
            None => usual_place()?,
        };
        let text = fs::read(&path).map_err(|problem| Failure::unreadable(&path, &problem))?;
        let policy = (path.display().to_string(), text);
        let callers = match tidegate_policy::callers_file(source(&policy)) {
            // As everything in a policy, it is meant from where the policy lies.
            Some(name) => Some(beside(&path, &name)?),
            None => None,
        };
        Ok(Self { policy, callers })
    }

    /// A policy that no file holds.
    pub(crate) fn given(name: &str, text: Vec<u8>) -> Self {
        Self { policy: (name.to_owned(), text), callers: None }
    }

    /// Writes what is wrong with them, all of it.
    pub(crate) fn complain(&self, problems: &[Problem], errors: &mut dyn Write) -> io::Result<()> {
        errors.write_all(self.rendered(problems).as_bytes())
    }

    /// What is wrong with them, all of it.
    pub(crate) fn rendered(&self, problems: &[Problem]) -> String {
        problem::render(self.policy(), self.callers(), problems)
    }

    /// Where they lie: everything in a policy is meant from there.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new(&self.policy.0).parent().map_or_else(PathBuf::new, Path::to_owned)
    }

    pub(crate) fn policy(&self) -> Source<'_> {
        source(&self.policy)
    }

    pub(crate) fn callers(&self) -> Option<Source<'_>> {
        self.callers.as_ref().map(source)
    }
}

fn source((name, text): &(String, Vec<u8>)) -> Source<'_> {
    Source::named(name, text)
}

fn beside(policy: &Path, name: &str) -> Result<(String, Vec<u8>), Failure> {
    let path = policy.parent().unwrap_or(Path::new("")).join(name);
    let text = fs::read(&path).map_err(|problem| Failure::unreadable(&path, &problem))?;
    Ok((path.display().to_string(), text))
}

fn usual_place() -> Result<PathBuf, Failure> {
    let home = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")));
    let folders =
        [Some(PathBuf::new()), home.map(|home| home.join("tidegate")), Some("/etc/tidegate".into())];
    let places = folders.iter().flatten().flat_map(|folder| NAMES.map(|name| folder.join(name)));
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        Failure::new(
            "no policy was named, and there is none in ./tidegate.toml, $XDG_CONFIG_HOME/tidegate/ or \
             /etc/tidegate/; write one with `tidegate init`",
        )
    })
}
