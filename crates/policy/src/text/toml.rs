//! TOML, by the crate `toml`, which gives a place to every key and value and goes on after an error.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::{DEEPEST, Entry, Node, Positions, Span, Value, too_deep, twice};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;

pub(super) fn read(text: &str, problems: &mut Problems) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut is_readable = true;
    let positions = Positions::new(text.as_bytes());
    let mut last_line = None;
    let mut errors: Vec<_> = errors.into_iter().map(|error| (span(error.span()), error)).collect();
    errors.sort_by_key(|(span, _)| *span);
    for (span, error) in errors {
        if error.message() == "duplicate key" {
            problems.push(twice(text.get(span.start..span.end).unwrap_or_default(), span));
            continue;
        }
        is_readable = false;
        // One slip often makes the parser stumble several times on the same line; the first says it best.
        let line = Some(positions.of(span.start).line);
        if last_line != line {
            problems.push(syntax(text, span, error.message()));
            last_line = line;
        }
    }
    let value = convert_table(table.into_inner(), 0, problems)?;
    is_readable.then_some(Node { span: Span::default(), value })
}

fn span(range: Option<std::ops::Range<usize>>) -> Span {
    range.map_or(Span::default(), |range| Span { start: range.start, end: range.end })
}

fn syntax(text: &str, span: Span, message: &str) -> Problem {
    let problem = Problem::new(Code::Syntax, format!("this is not TOML: {message}")).at(span);
    let found = text.get(span.start..span.end).unwrap_or_default().trim();
    if message.starts_with("cannot extend value of type") {
        return value_and_table(found, span);
    }
    if message.starts_with("string values must be quoted") && !found.contains(['"', '\'', '\n']) {
        problem.label(format!("write \"{found}\""))
    } else if message.starts_with("key with no value") || found == ":" {
        problem.label("write `key = value`; a YAML file must be called .yaml")
    } else {
        problem.label("here")
    }
}

/// `[upstream.default]` below `upstream = "…"`: a key's short form, and its table.
fn value_and_table(key: &str, span: Span) -> Problem {
    let problem =
        Problem::new(Code::Syntax, format!("`{}` is a value already, and a table here", shown(key)));
    problem.at(span).label(match key {
        "upstream" => {
            "write `[upstream.default]` with `endpoints = [\"http://…\"]` instead of `upstream = …`"
        }
        _ => "write one of the two",
    })
}

/// The same as a node, or nothing when it is nested too deeply.
fn convert(node: Spanned<DeValue<'_>>, depth: usize, problems: &mut Problems) -> Option<Node> {
    let span = span(Some(node.span()));
    if depth > DEEPEST {
        problems.push(too_deep(span));
        return None;
    }
    let value = match node.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => integer(&number),
        DeValue::Float(number) => Value::Number(number.as_str().replace('_', "")),
        DeValue::Boolean(value) => Value::Boolean(value),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(list) => {
            let items = list.into_iter().map(|node| convert(node, depth + 1, problems));
            Value::List(items.collect::<Option<_>>()?)
        }
        DeValue::Table(table) => convert_table(table, depth + 1, problems)?,
    };
    Some(Node { span, value })
}

fn integer(number: &DeInteger<'_>) -> Value {
    match i128::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => Value::Number(value.to_string()),
        Err(_) => Value::Number(number.as_str().to_owned()),
    }
}

fn convert_table(table: DeTable<'_>, depth: usize, problems: &mut Problems) -> Option<Value> {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| {
            let key_span = span(Some(key.span()));
            let value = convert(value, depth, problems)?;
            // A list of tables has as its key's place the last of its headers; it begins at the first.
            let first = match &value.value {
                Value::List(list) => list.first().map(|first| first.span),
                _ => None,
            };
            let key_span = first.filter(|first| first.start < key_span.start).unwrap_or(key_span);
            Some(Entry { key: key.into_inner().into_owned(), key_span, value })
        })
        .collect::<Option<_>>()?;
    entries.sort_by_key(|entry| entry.key_span);
    Some(Value::Table(entries))
}
