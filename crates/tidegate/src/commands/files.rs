//! The policy's files: where they are looked for, and their text.

mod named;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tidegate_policy::problem::File;
use tidegate_policy::{Format, Problem, Purpose, Reading, Source, problem};

pub(crate) use self::named::Reach;
use super::Failure;

/// The names a policy has in the usual places.
const NAMES: [&str; 3] = ["tidegate.toml", "tidegate.yaml", "tidegate.yml"];

/// A policy and the callers table it names, as they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    policy: Text,
    /// Or why it could not be read.
    callers: Option<Result<Text, String>>,
    /// Which files it may name.
    reach: Reach,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    name: String,
    format: Format,
    bytes: Vec<u8>,
}

impl Text {
    /// The policy itself, which whoever runs us chose: a pipe may be meant.
    fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = fs::read(path).map_err(|problem| Failure::unreadable(path, &problem))?;
        Ok(Self::of(path, bytes))
    }

    fn of(path: &Path, bytes: Vec<u8>) -> Self {
        let name = path.display().to_string();
        Self { format: Format::of(&name), name, bytes }
    }

    fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.bytes, format: self.format }
    }
}

impl Files {
    /// Reads `file`, or the first policy in the usual places.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let path = match file {
            Some(path) => path.to_owned(),
            None => usual_place()?,
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Self::with_callers(Text::read(&path)?, folder, Reach::Anywhere))
    }

    /// A policy that no file holds; the table it names is meant from `folder`.
    pub(crate) fn given(name: &str, format: Format, bytes: Vec<u8>, folder: &Path, reach: Reach) -> Self {
        Self::with_callers(Text { name: name.to_owned(), format, bytes }, folder, reach)
    }

    /// As everything in a policy, the table of callers is meant from where the policy lies.
    fn with_callers(policy: Text, folder: &Path, reach: Reach) -> Self {
        let callers = tidegate_policy::callers_file(policy.source());
        let callers = callers.map(|name| {
            let path = folder.join(name);
            Ok(Text::of(&path, reach.read(&path)?))
        });
        Self { policy, callers, reach }
    }

    /// What is to be read for somebody.
    pub(crate) fn reading(&self, purpose: Purpose) -> Reading<'_> {
        let callers = self.callers.as_ref().map(|table| match table {
            Ok(text) => Ok(text.source()),
            Err(why) => Err(why.as_str()),
        });
        Reading { policy: self.policy(), callers, purpose }
    }

    /// What may be told of its problems to whoever brought it: of a table that lay here already, only what kind of
    /// problem stands where.
    pub(crate) fn tellable(&self, problems: Vec<Problem>) -> Vec<Problem> {
        let is_kept = |problem: &Problem| self.reach == Reach::Anywhere || problem.file == File::Policy;
        let tell = |problem: Problem| if is_kept(&problem) { problem } else { problem.withheld() };
        problems.into_iter().map(tell).collect()
    }

    /// Writes what is wrong with them, all of it.
    pub(crate) fn complain(&self, problems: &[Problem], errors: &mut dyn Write) -> io::Result<()> {
        errors.write_all(problem::render(self.policy(), self.callers(), problems).as_bytes())
    }

    /// Where they lie: everything in a policy is meant from there.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new(&self.policy.name).parent().map_or_else(PathBuf::new, Path::to_owned)
    }

    pub(crate) fn policy(&self) -> Source<'_> {
        self.policy.source()
    }

    pub(crate) fn callers(&self) -> Option<Source<'_>> {
        self.callers.as_ref().and_then(|table| table.as_ref().ok()).map(Text::source)
    }
}

/// The first policy in the usual places.
pub(crate) fn usual_place() -> Result<PathBuf, Failure> {
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
