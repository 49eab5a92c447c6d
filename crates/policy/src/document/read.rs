//! From the neutral tree to the structs of the document.

mod containers;
mod words;

pub(crate) use containers::{Either, Named, OneOrList};
pub(crate) use words::choice;
use words::{known, suggestion};

use tidegate_core::Cost;

use super::spec::{Absent, Shape, Support};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::{QuotaText, amount, shown};
use crate::text::{Entry, Node, Span, Value};

/// What can be read from the tree.
pub(crate) trait Read: Sized {
    /// What it looks like.
    const SHAPE: &'static Shape;

    /// Reads it. What is wrong goes to `problems`; nothing comes back when there is nothing to go on with.
    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self>;
}

/// A value that was written, and where.
#[derive(Clone, Debug)]
pub(crate) struct Field<T> {
    pub(crate) key_span: Span,
    pub(crate) span: Span,
    pub(crate) value: T,
}

/// Where in the document we are, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The keys that lead here.
    pub(crate) path: String,
    /// How people call it: "rule `per_key`". Empty at the top.
    what: String,
    /// The last key.
    key: String,
    /// Where that key stands.
    span: Span,
    /// A value of that key in TOML, where the key is declared.
    example: Option<&'static str>,
}

impl Place {
    /// The whole document.
    pub(crate) fn top() -> Self {
        let (path, what, key) = (String::new(), String::new(), String::new());
        Self { path, what, key, span: Span::default(), example: None }
    }

    fn child(&self, key: &str, what: String, span: Span) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{}{dot}{key}", self.path), what, key: key.to_owned(), span, example: None }
    }

    fn key(&self, key: &str, span: Span) -> Self {
        let of = if self.what.is_empty() { String::new() } else { format!(" of {}", self.what) };
        self.child(key, format!("`{}`{of}", shown(key)), span)
    }

    pub(crate) fn problem(&self, code: Code, message: impl Into<String>, span: Span) -> Problem {
        Problem::new(code, message).at(span).path(&self.path)
    }

    /// A problem with the value itself, which the message names by its key: "quota `10` has no unit".
    pub(crate) fn value(&self, code: Code, message: &str, span: Span) -> Problem {
        self.problem(code, format!("{} {message}", self.key), span)
    }

    /// Something else stands where a table must.
    fn no_table(&self, node: &Node, problems: &Problems) -> Problem {
        let label = match self.example.filter(|example| example.starts_with('{')) {
            Some(example) => format!("write a table: {}", problems.entry(&self.key, example)),
            None => "write a table".to_owned(),
        };
        self.wrong_type(node, "a table").label(label)
    }

    pub(crate) fn wrong_type(&self, node: &Node, expected: &str) -> Problem {
        let what = if self.what.is_empty() { "the policy" } else { &self.what };
        let message = format!("{what} is {}, but must be {expected}", node.value.kind());
        self.problem(Code::WrongType, message, node.span)
    }
}

/// The entries of a section, once what must not be missing is there.
pub(crate) fn table<'a>(
    node: &'a Node,
    shape: &Shape,
    place: &Place,
    problems: &mut Problems,
) -> Option<&'a [Entry]> {
    let Value::Table(entries) = &node.value else {
        problems.push(match place.what.is_empty() {
            true => place.wrong_type(node, "a table").label(problems.whole()),
            false => place.no_table(node, problems),
        });
        return None;
    };
    let required = shape.section().into_iter().flat_map(|section| section.keys);
    for key in required.filter(|key| key.absent == Absent::Required) {
        if problems.unsupported == 0 && !entries.iter().any(|entry| entry.key == key.name) {
            let message = format!("{} has no `{}`", place.what, key.name);
            let problem = place.problem(Code::MissingKey, message, place.span);
            let entry = problems.entry(key.name, key.example);
            problems.push(problem.label(format!("add {entry}")));
        }
    }
    Some(entries)
}

/// One key of a section.
pub(crate) fn field<T: Read>(
    entry: &Entry,
    shape: &Shape,
    place: &Place,
    problems: &mut Problems,
) -> Option<Field<T>> {
    let key = shape.section().and_then(|section| section.key(&entry.key));
    let place = Place { example: key.map(|key| key.example), ..place.key(&entry.key, entry.key_span) };
    let is_built = key.is_none_or(|key| key.support == Support::Built);
    if is_built {
        return spanned(&entry.value, entry.key_span, &place, problems);
    }
    if problems.unsupported == 0 {
        problems.push(not_supported(&place, &place.what, entry.key_span));
    }
    // What is inside is read all the same, so that slips in it are found together with the rest.
    problems.unsupported += 1;
    drop(spanned::<T>(&entry.value, entry.key_span, &place, problems));
    problems.unsupported -= 1;
    None
}

fn spanned<T: Read>(node: &Node, key_span: Span, place: &Place, problems: &mut Problems) -> Option<Field<T>> {
    T::read(node, place, problems).map(|value| Field { key_span, span: node.span, value })
}

pub(crate) fn not_supported(place: &Place, what: &str, span: Span) -> Problem {
    let problem = place.problem(Code::NotSupported, format!("{what} is not supported yet"), span);
    problem.label("remove it; nothing is skipped silently")
}

/// A key that the section does not have.
pub(crate) fn unknown(entry: &Entry, shape: &Shape, place: &Place, problems: &mut Problems) {
    let Some(section) = shape.section() else { return };
    let inside = if place.what.is_empty() { String::new() } else { format!(" in {}", place.what) };
    let message = format!("unknown key `{}`{inside}", shown(&entry.key));
    let place = place.key(&entry.key, entry.key_span);
    let problem = place.problem(Code::UnknownKey, message, entry.key_span);
    problems.push(match suggestion(&entry.key, section) {
        Some(meant) => problem.label(format!("did you mean `{meant}`?")),
        None => problem.label(format!("known here: {}", known(section))),
    });
}

/// A text, or a problem that asks for one.
pub(crate) fn text<'a>(
    node: &'a Node,
    expected: &str,
    place: &Place,
    problems: &mut Problems,
) -> Option<&'a str> {
    match &node.value {
        Value::Text(text) => Some(text),
        Value::Number(number) => {
            problems.push(place.wrong_type(node, expected).label(format!("write \"{}\"", shown(number))));
            None
        }
        Value::Boolean(_) | Value::List(_) | Value::Table(_) | Value::Other(_) => {
            problems.push(place.wrong_type(node, expected).label("write a text in quotes"));
            None
        }
    }
}

impl Read for bool {
    const SHAPE: &'static Shape = &Shape::Boolean;

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        let Value::Boolean(value) = node.value else {
            problems
                .push(place.wrong_type(node, "true or false").label("write true or false, without quotes"));
            return None;
        };
        Some(value)
    }
}

impl Read for u64 {
    const SHAPE: &'static Shape = &Shape::Count;

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        let number = number(node, "a whole number", place, problems)?;
        if let Ok(value) = number.parse() {
            return Some(value);
        }
        let message = format!("`{}` is not a whole number from 0 to {}", shown(number), Self::MAX);
        problems.push(place.value(Code::BadNumber, &message, node.span).label("write a whole number"));
        None
    }
}

impl Read for Cost {
    const SHAPE: &'static Shape = &Shape::Amount;

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        let number = number(node, "a number", place, problems)?;
        if let Some(value) = amount(number) {
            return Some(value);
        }
        let message = format!("`{}` is not a number from 0 to 18446744073709", shown(number));
        problems.push(
            place
                .value(Code::BadNumber, &message, node.span)
                .label("write a number with at most six decimals"),
        );
        None
    }
}

fn number<'a>(node: &'a Node, expected: &str, place: &Place, problems: &mut Problems) -> Option<&'a str> {
    let label = match &node.value {
        Value::Number(number) => return Some(number),
        Value::Text(text) if amount(text).is_some() => format!("write {}, without quotes", shown(text)),
        Value::Text(text) if place.key == "limit" && QuotaText::read(text).is_ok() => {
            format!("write `quota = \"{}\"`; `limit` is how many may be in flight", shown(text))
        }
        Value::Text(_) | Value::Boolean(_) | Value::List(_) | Value::Table(_) | Value::Other(_) => {
            format!("write {expected}")
        }
    };
    problems.push(place.wrong_type(node, expected).label(label));
    None
}
