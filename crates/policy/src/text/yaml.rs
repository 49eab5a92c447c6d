//! YAML, by the events of `saphyr-parser`, put together without recursion.
//!
//! A policy needs little of YAML, and much of the rest is a trap: aliases can unfold to gigabytes, tags
//! change what a value is, and a second document would be silently left out. Those are refused. Plain
//! scalars are read by the core schema of YAML 1.2, in which `no` and `on` are texts.

use std::borrow::Cow;
use std::collections::HashSet;

use saphyr_parser::{Event, Parser, ScalarStyle, Span as Marks, Tag};

use super::{DEEPEST, Entry, Node, Span, Value, too_deep, twice};
use crate::problem::{Code, Problem, Problems};

pub(super) fn read(text: &str, problems: &mut Problems) -> Option<Node> {
    let offset = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let body = &text[offset..];
    let places = Places::new(body, offset);
    let mut builder = Builder::default();
    for event in Parser::new_from_str(body) {
        let (event, marks) = match event {
            Ok(found) => found,
            Err(error) => {
                let start = places.byte(error.marker().index());
                let message = format!("this is not YAML: {}", error.info());
                let at = start.min(text.trim_end().len().saturating_sub(1));
                problems.push(
                    Problem::new(Code::Syntax, message).at(Span { start: at, end: at + 1 }).label("here"),
                );
                return None;
            }
        };
        let span = places.span(&marks);
        builder.take(event, span, problems)?;
    }
    let empty = Node { span: Span::default(), value: Value::Table(Vec::new()) };
    Some(builder.root.filter(|root| !matches!(root.value, Value::Other(_))).unwrap_or(empty))
}

/// The parser counts characters; we point at bytes.
struct Places {
    /// Where each character begins, unless they are all one byte long.
    starts: Option<Vec<usize>>,
    offset: usize,
    length: usize,
}

impl Places {
    fn new(text: &str, offset: usize) -> Self {
        let starts = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { starts, offset, length: text.len() }
    }

    fn byte(&self, character: usize) -> usize {
        let byte = match &self.starts {
            None => character.min(self.length),
            Some(starts) => starts.get(character).copied().unwrap_or(self.length),
        };
        byte + self.offset
    }

    fn span(&self, marks: &Marks) -> Span {
        let start = self.byte(marks.start.index());
        Span { start, end: self.byte(marks.end.index()).max(start) }
    }
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
    has_document: bool,
}

/// A list or table whose end has not come yet.
enum Open {
    List { start: Span, items: Vec<Node> },
    Table { start: Span, entries: Vec<Entry>, seen: HashSet<String>, key: Option<(Option<String>, Span)> },
}

impl Builder {
    /// Takes one event; `None` when going on makes no sense.
    fn take(&mut self, event: Event<'_>, span: Span, problems: &mut Problems) -> Option<()> {
        let refused = |what: &str, label: &str| Problem::new(Code::Yaml, what).at(span).label(label);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            Event::DocumentStart(_) if self.has_document => {
                problems.push(refused("a policy is one YAML document, not several", "a second begins here"));
                return None;
            }
            Event::DocumentStart(_) => self.has_document = true,
            Event::Alias(_) => {
                problems.push(refused("YAML aliases are not read", "write the value out"));
                self.add(Node { span, value: Value::Other("an alias") }, problems);
            }
            Event::Scalar(text, style, _, tag) => {
                let value = scalar(&text, style, tag.as_ref());
                let Some(value) = value else {
                    problems.push(refused("YAML tags are not read", "remove the tag"));
                    return None;
                };
                self.add(Node { span, value }, problems);
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if self.open.len() >= DEEPEST => {
                problems.push(too_deep(span));
                return None;
            }
            Event::SequenceStart(..) => self.open.push(Open::List { start: span, items: Vec::new() }),
            Event::MappingStart(..) => {
                let (entries, seen) = (Vec::new(), HashSet::new());
                self.open.push(Open::Table { start: span, entries, seen, key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let node = self.open.pop()?.close(span);
                self.add(node, problems);
            }
        }
        Some(())
    }

    fn add(&mut self, node: Node, problems: &mut Problems) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Table { entries, seen, key, .. }) => match key.take() {
                None => *key = Some((key_text(&node, problems), node.span)),
                // It could not be read, and that has been said.
                Some((None, _)) => {}
                Some((Some(key), key_span)) if seen.contains(&key) => problems.push(twice(&key, key_span)),
                Some((Some(key), key_span)) => {
                    seen.insert(key.clone());
                    entries.push(Entry { key, key_span, value: node });
                }
            },
        }
    }
}

impl Open {
    fn close(self, end: Span) -> Node {
        let (start, value) = match self {
            Self::List { start, items } => (start, Value::List(items)),
            Self::Table { start, entries, .. } => (start, Value::Table(entries)),
        };
        Node { span: Span { start: start.start, end: end.end.max(start.end) }, value }
    }
}

/// Keys that look like numbers or like true and false are texts all the same: a caller may be called `1`.
fn key_text(node: &Node, problems: &mut Problems) -> Option<String> {
    match &node.value {
        Value::Text(text) | Value::Number(text) => Some(text.clone()),
        Value::Boolean(value) => Some(value.to_string()),
        Value::List(_) | Value::Table(_) | Value::Other(_) => {
            let problem = Problem::new(Code::Yaml, format!("a key is a text, not {}", node.value.kind()));
            problems.push(problem.at(node.span).label("write a name"));
            None
        }
    }
}

/// What a scalar is, or nothing when its tag is none that we read.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Cow<'_, Tag>>) -> Option<Value> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Some(Value::Text(text.to_owned())),
        Some(_) => None,
        None if style == ScalarStyle::Plain => Some(plain(text)),
        None => Some(Value::Text(text.to_owned())),
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Other("nothing"),
        "true" | "True" | "TRUE" => Value::Boolean(true),
        "false" | "False" | "FALSE" => Value::Boolean(false),
        _ => number(text).map_or_else(|| Value::Text(text.to_owned()), Value::Number),
    }
}

/// A number in decimal, without underscores, which TOML has between digits and people expect here too.
fn number(text: &str) -> Option<String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return i128::from_str_radix(digits, radix).ok().map(|value| value.to_string());
        }
    }
    let plain = text.replace('_', "");
    let is_number =
        digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'_' | b'e' | b'E' | b'-' | b'+'));
    (is_number && plain.parse::<f64>().is_ok()).then(|| plain.trim_start_matches('+').to_owned())
}
