//! From text to one neutral tree, whatever the spelling.
//!
//! TOML and YAML (and JSON, which is YAML) become the same [`Node`]s, so that everything after this module
//! knows one form only. Every key and every value keeps its exact place in the text: a problem that is
//! found much later can still point at the byte it is about.
//!
//! Nothing a file can hold makes this fail otherwise than with problems: neither bytes that are no text,
//! nor nesting without end, nor aliases that unfold to gigabytes.

mod position;
mod toml;
mod yaml;

pub use position::{Position, Positions};

use crate::problem::{Code, Problem, Problems};

/// The text of a file and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// As the operator knows it: `tidegate.toml`.
    pub name: &'a str,
    /// What it holds.
    pub text: &'a [u8],
    /// How it is spelt.
    pub format: Format,
}

impl<'a> Source<'a> {
    /// A file, spelt as its ending says.
    #[must_use]
    pub fn named(name: &'a str, text: &'a [u8]) -> Self {
        Self { name, text, format: Format::of(name) }
    }
}

/// How a policy is spelt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `.toml`, and everything that does not say otherwise.
    #[default]
    Toml,
    /// `.yaml`, `.yml`, `.json`.
    Yaml,
}

impl Format {
    /// By the ending of a file's name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        match ending.as_deref() {
            Some("yaml" | "yml" | "json") => Self::Yaml,
            _ => Self::Toml,
        }
    }
}

/// A range of bytes in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands. A table that is spread over the file has the place where it begins.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number in decimal, as it was written but for underscores: exact, whatever its size.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
    /// Values in order.
    List(Vec<Node>),
    /// Keys and values in the order of the text.
    Table(Vec<Entry>),
    /// What the language has no use for, by its name: a date, nothing.
    Other(&'static str),
}

/// One key of a table with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// Its value.
    pub value: Node,
}

impl Value {
    /// What it is called in messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Number(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(what) => what,
        }
    }
}

impl Node {
    /// The value of a key, where this is a table that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            Value::Text(_) | Value::Number(_) | Value::Boolean(_) | Value::List(_) | Value::Other(_) => None,
        }
    }
}

/// The deepest nesting that is read. The language needs six levels; this leaves room, and is far from what
/// a stack can hold.
const DEEPEST: usize = 64;

/// The longest text that is read: a policy is written by people, and a callers table of this size has some
/// two hundred thousand of them.
const LONGEST: usize = 16 * 1024 * 1024;

/// Reads a text. What could not be read is in `problems`; what could be is returned all the same, unless
/// it would only lead to problems that are none.
pub(crate) fn read(source: Source<'_>, problems: &mut Problems) -> Option<Node> {
    if source.text.len() > LONGEST {
        let message =
            format!("the file has {} bytes, more than the {LONGEST} that are read", source.text.len());
        problems.push(Problem::new(Code::TooLarge, message).help("move callers to a snapshot"));
        return None;
    }
    let text = match std::str::from_utf8(source.text) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            let message = "the file is not UTF-8 text";
            let problem = Problem::new(Code::NotText, message).at(Span { start: at, end: at + 1 });
            problems.push(problem.help(format!("byte {at} begins no character: save the file as UTF-8")));
            return None;
        }
    };
    match source.format {
        Format::Toml => toml::read(text, problems),
        Format::Yaml => yaml::read(text, problems),
    }
}

fn too_deep(span: Span) -> Problem {
    let message = format!("nested deeper than {DEEPEST} levels");
    Problem::new(Code::TooLarge, message).at(span).label("no policy needs this")
}

fn twice(key: &str, span: Span) -> Problem {
    Problem::new(Code::KeyTwice, format!("key `{key}` is given twice")).at(span).label("remove one of them")
}
