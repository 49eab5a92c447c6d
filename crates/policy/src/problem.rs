//! What is wrong with a policy, and what to do about it.
//!
//! Every step collects its problems instead of stopping at the first, so that an operator sees all of them
//! at once. A problem has a [`Code`] that never changes its meaning, a place in the text, and says what to
//! write instead. Errors keep a policy from being loaded; warnings come along with it.

mod code;
mod render;

pub use code::Code;
pub use render::{json, render, summary};

use crate::text::{Format, Span};

/// Whether a policy with this problem can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but surely does not do what was meant.
    Warning,
}

/// Which text a problem is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// The policy.
    #[default]
    Policy,
    /// The table of callers that the policy names.
    Callers,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which text it is in.
    pub file: File,
    /// Where it stands, where it stands anywhere.
    pub span: Option<Span>,
    /// What kind of problem it is.
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The keys that lead to it: `rule.per_key.burst`.
    pub path: String,
    /// What stands beside the pointer into the source line.
    pub label: Option<String>,
    /// What to do, where that is too long for a label.
    pub help: Option<String>,
}

impl Problem {
    /// A problem that stands nowhere yet.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let (label, help) = (None, None);
        Self {
            file: File::Policy,
            span: None,
            code,
            message: message.into(),
            path: String::new(),
            label,
            help,
        }
    }

    /// Whether it keeps the policy from being loaded.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// The same without anything of the text it is in: what kind of problem stands where.
    #[must_use]
    pub fn withheld(self) -> Self {
        let (message, path) = (self.code.title().to_owned(), String::new());
        Self { message, path, label: None, help: None, ..self }
    }

    pub(crate) fn at(self, span: Span) -> Self {
        Self { span: Some(span), ..self }
    }

    /// The same, with the keys that lead to it.
    #[must_use]
    pub fn path(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// The same, with what stands beside the pointer.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    /// The same, with what to do.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// The most problems that are kept. Nobody reads more, and looking through them stays quick.
const MOST: usize = 1_000;

/// All problems so far.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
    has_errors: bool,
    file: File,
    format: Format,
    /// How many of the keys around the present one are not supported yet; they have said so already.
    pub(crate) unsupported: usize,
}

impl Problems {
    /// None yet, in a text that is spelt like this.
    pub(crate) fn of(format: Format) -> Self {
        Self { format, ..Self::default() }
    }

    /// Problems found from now on are in this file.
    pub(crate) fn turn_to(&mut self, file: File) {
        self.file = file;
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        self.push_in(self.file, problem);
    }

    pub(crate) fn push_in(&mut self, file: File, problem: Problem) {
        let problem = Problem { file, ..problem };
        let is_error = problem.severity() == Severity::Error;
        let is_full = self.found.len() >= MOST && (self.has_errors || !is_error);
        // What YAML was refused for is not of the wrong type besides.
        let is_refused = |other: &Problem| {
            other.code == Code::Yaml && (other.file, other.span) == (problem.file, problem.span)
        };
        let is_said = problem.code == Code::WrongType && self.found.iter().any(is_refused);
        if !is_full && !is_said {
            self.has_errors |= is_error;
            self.found.push(problem);
        }
    }

    /// How a key and its value are written in this file; the value is in TOML, and so simple that YAML differs in the
    /// signs of its tables only.
    pub(crate) fn entry(&self, key: &str, value: &str) -> String {
        match self.format {
            Format::Toml => format!("`{key} = {value}`"),
            Format::Yaml => format!("`{key}: {}`", value.replace(" = ", ": ")),
        }
    }

    /// How a table of one key and its value is written in this file.
    pub(crate) fn inner_entry(&self, key: &str, inner: &str, value: &str) -> String {
        match self.format {
            Format::Toml => format!("`{key} = {{ {inner} = {value} }}`"),
            Format::Yaml => format!("`{key}: {{ {inner}: {value} }}`"),
        }
    }

    /// What a whole file consists of.
    pub(crate) fn whole(&self) -> &'static str {
        match self.format {
            Format::Toml => "write `key = value`; a YAML file must be called .yaml",
            Format::Yaml => "write `key: value`; a TOML file must be called .toml",
        }
    }

    /// How a table with a name is written in this file.
    pub(crate) fn table(&self, group: &str, name: &str) -> String {
        match self.format {
            Format::Toml => format!("`[{group}.{name}]`"),
            Format::Yaml => format!("`{group}: {{ {name}: {{ … }} }}`"),
        }
    }

    /// How a list of tables is written in this file.
    pub(crate) fn list(&self, key: &str) -> String {
        match self.format {
            Format::Toml => format!("`[[{key}]]`"),
            Format::Yaml => "a list: `- …`".to_owned(),
        }
    }

    /// Whether anything at this path or below has a problem already, so that what follows from it need not
    /// be said too.
    pub(crate) fn mentions(&self, path: &str) -> bool {
        let is_below = |problem: &&Problem| {
            let rest = problem.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.found.iter().any(|problem| problem.file == self.file && is_below(&problem))
    }

    /// Whether this key was mistyped, as far as can be seen: then it is not missing.
    pub(crate) fn suggests(&self, key: &str) -> bool {
        let meant = Some(format!("did you mean `{key}`?"));
        self.found.iter().any(|problem| problem.code == Code::UnknownKey && problem.label == meant)
    }

    pub(crate) fn has(&self, code: Code) -> bool {
        self.found.iter().any(|problem| problem.code == code)
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.has_errors
    }

    /// In the order of the text; what stands nowhere comes last.
    pub(crate) fn sorted(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| {
            (problem.file, problem.span.map_or(usize::MAX, |span| span.start), problem.code)
        });
        self.found.dedup();
        self.found
    }
}

/// The candidate nearest to what was written, if any is near enough to have been meant.
pub(crate) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase().replace('-', "_");
    let distance =
        |candidate: &str| strsim::damerau_levenshtein(&written, &candidate.to_lowercase().replace('-', "_"));
    let is_start = |short: &str, long: &str| short.len() >= 3 && long.starts_with(short);
    let scored = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    let near = scored.filter(|(distance, candidate)| {
        // One slip in a short word, two in a longer one, or the beginning of a long one.
        *distance <= 1 + candidate.len() / 5 || is_start(&written, candidate) || is_start(candidate, &written)
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}
