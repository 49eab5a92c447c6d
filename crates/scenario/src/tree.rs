//! TOML with the line of everything, and tables that notice what nobody asked for.

use std::fmt::Display;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::read::Problem;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    line: usize,
    value: DeValue<'a>,
}

/// A table whose keys are taken one by one; what is left over was not meant to be there.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub(crate) line: usize,
    /// What it is called in messages: "class `users`".
    name: String,
    entries: Vec<(usize, String, Node<'a>)>,
    /// The keys that were asked for, to suggest one.
    known: Vec<&'static str>,
}

/// Where lines begin.
#[derive(Debug)]
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte)
    }
}

/// The whole file.
pub(crate) fn parse<'a>(text: &'a str, lines: &Lines) -> Result<Table<'a>, Problem> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| lines.at(span.start));
        Problem::new(line, format!("this is not TOML: {}", error.message()))
    })?;
    Ok(Table::new(table.into_inner(), 1, "the file", lines))
}

impl<'a> Table<'a> {
    fn new(table: DeTable<'a>, line: usize, name: impl Into<String>, lines: &Lines) -> Self {
        let entry = |(key, value): (Spanned<std::borrow::Cow<'a, str>>, Spanned<DeValue<'a>>)| {
            let node = Node { line: lines.at(value.span().start), value: value.into_inner() };
            (lines.at(key.span().start), key.into_inner().into_owned(), node)
        };
        let mut entries: Vec<_> = table.into_iter().map(entry).collect();
        entries.sort_by_key(|(line, ..)| *line);
        Self { line, name: name.into(), entries, known: Vec::new() }
    }

    /// Takes a key, if it is there.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Node<'a>> {
        self.known.push(key);
        let index = self.entries.iter().position(|(_, name, _)| name == key)?;
        Some(self.entries.remove(index).2)
    }

    /// Takes a key that must be there.
    pub(crate) fn need(&mut self, key: &'static str) -> Result<Node<'a>, Problem> {
        let line = self.line;
        self.take(key).ok_or_else(|| Problem::new(line, format!("{} has no `{key}`", self.name)))
    }

    /// All entries: for tables whose keys are names.
    pub(crate) fn entries(self) -> Vec<(usize, String, Node<'a>)> {
        self.entries
    }

    /// Nothing may be left.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        let Some((line, key, _)) = self.entries.into_iter().next() else { return Ok(()) };
        let near = self.known.iter().map(|known| (strsim::damerau_levenshtein(known, &key), *known)).min();
        let hint = match near {
            Some((distance, known)) if distance <= 2 => format!("; did you mean `{known}`?"),
            _ => format!("; it knows {}", self.known.join(", ")),
        };
        Err(Problem::new(line, format!("unknown key `{key}` in {}{hint}", self.name)))
    }
}

impl<'a> Node<'a> {
    pub(crate) const fn line(&self) -> usize {
        self.line
    }

    fn wrong(&self, wanted: impl Display) -> Problem {
        let found = match &self.value {
            DeValue::String(text) => format!("the text \"{text}\""),
            DeValue::Integer(number) => format!("the number {}", number.as_str()),
            DeValue::Float(number) => format!("the number {}", number.as_str()),
            DeValue::Boolean(value) => format!("{value}"),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        Problem::new(self.line, format!("{wanted} is wanted here, not {found}"))
    }

    pub(crate) fn text(&self) -> Result<String, Problem> {
        match &self.value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.wrong("a text")),
        }
    }

    pub(crate) fn number(&self) -> Result<f64, Problem> {
        let written = match &self.value {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("a number")),
        };
        let number: f64 = written.replace('_', "").parse().map_err(|_| self.wrong("a number"))?;
        if number.is_nan() || number < 0.0 { Err(self.wrong("a number from 0")) } else { Ok(number) }
    }

    /// A whole number from 1.
    pub(crate) fn count(&self) -> Result<u32, Problem> {
        let wrong = || self.wrong("a whole number from 1");
        let DeValue::Integer(number) = &self.value else { return Err(wrong()) };
        let count: u32 = number.as_str().replace('_', "").parse().map_err(|_| wrong())?;
        if count == 0 { Err(wrong()) } else { Ok(count) }
    }

    pub(crate) fn boolean(&self) -> Result<bool, Problem> {
        match self.value {
            DeValue::Boolean(value) => Ok(value),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// `"60%"`, as a share of one.
    pub(crate) fn share(&self) -> Result<f64, Problem> {
        let wrong = || self.wrong("a share such as \"60%\"");
        let text = self.text().map_err(|_| wrong())?;
        let percent: f64 =
            text.strip_suffix('%').and_then(|number| number.trim().parse().ok()).ok_or_else(wrong)?;
        if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err(wrong()) }
    }

    /// `"250ms"`.
    pub(crate) fn length(&self) -> Result<Duration, Problem> {
        const UNITS: [(&str, f64); 5] =
            [("us", 1e-6), ("ms", 1e-3), ("min", 60.0), ("h", 3600.0), ("s", 1.0)];
        let wrong = || self.wrong("a length of time such as \"250ms\", \"20s\" or \"10min\"");
        let text = self.text().map_err(|_| wrong())?;
        let (number, seconds) = UNITS
            .iter()
            .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
            .ok_or_else(wrong)?;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
    }

    pub(crate) fn list(self, lines: &Lines) -> Result<Vec<Self>, Problem> {
        match self.value {
            DeValue::Array(list) => Ok(list
                .into_iter()
                .map(|item| Self { line: lines.at(item.span().start), value: item.into_inner() })
                .collect()),
            _ => Err(self.wrong("a list")),
        }
    }

    /// One text, or a list of them.
    pub(crate) fn texts(self, lines: &Lines) -> Result<Vec<String>, Problem> {
        match self.value {
            DeValue::Array(_) => self.list(lines)?.iter().map(Self::text).collect(),
            _ => Ok(vec![self.text()?]),
        }
    }

    pub(crate) fn table(self, name: impl Into<String>, lines: &Lines) -> Result<Table<'a>, Problem> {
        match self.value {
            DeValue::Table(table) => Ok(Table::new(table, self.line, name, lines)),
            _ => Err(self.wrong("a table")),
        }
    }
}
