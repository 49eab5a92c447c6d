//! How problems are shown: to people, and to programs.
//!
//! A pure function of the texts and the problems. One problem looks like this: what is wrong, with its code
//! at the right; where; the source line with a pointer and what to do. Advice that is too long to stand
//! beside a pointer stands beside the place instead, and the line is left out.
//!
//! ```text
//! error: unknown key `brust` in rule `per_key`                                   TG0102
//!  --> tidegate.toml:6:1
//!   |
//! 6 | brust = 20
//!   | ^^^^^ did you mean `burst`?
//! error: quota `10` has no unit                                                  TG0110
//!  --> tidegate.toml:5:9   write "10/s", "10/min", "10/hour", "10/day" or "10/month"
//! ```

use std::fmt::Write;
use std::ops::Range;

use serde_json::{Value, json};

use super::{File, Problem, Severity};
use crate::escape::is_hidden;
use crate::text::{Positions, Source, Span};

/// The column of codes, unless the message is longer; then the next multiple of eight with a gap.
const CODE_COLUMN: usize = 79;

/// The widest part of a source line that is shown: files made by programs can have it all on one line.
const WIDEST: usize = 160;

/// All problems, one after another, without the summary.
#[must_use]
pub fn render(policy: Source<'_>, callers: Option<Source<'_>>, problems: &[Problem]) -> String {
    let mut out = String::new();
    let texts = [Text::new(policy), Text::new(callers.unwrap_or(Source { name: "", text: b"", ..policy }))];
    for problem in problems {
        let text = match problem.file {
            File::Policy => &texts[0],
            File::Callers => &texts[1],
        };
        head(&mut out, problem);
        match (problem.span, &problem.help) {
            (Some(span), help) => text.place(&mut out, span, problem.label.as_deref(), help.as_deref()),
            (None, Some(help)) => out.push_str(&format!("  = {}\n", printable(help))),
            (None, None) => {}
        }
    }
    out
}

/// How many there are of each: `2 errors, 1 warning.` Empty when there are none.
#[must_use]
pub fn summary(problems: &[Problem]) -> String {
    let count = |severity| problems.iter().filter(|problem| problem.severity() == severity).count();
    let counted = |count: usize, noun: &str| match count {
        0 => None,
        1 => Some(format!("1 {noun}")),
        _ => Some(format!("{count} {noun}s")),
    };
    let parts = [counted(count(Severity::Error), "error"), counted(count(Severity::Warning), "warning")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("{}.", parts.join(", ")) }
}

/// The same for programs: a list of objects.
#[must_use]
pub fn json(policy: Source<'_>, callers: Option<Source<'_>>, problems: &[Problem]) -> Value {
    let texts = [Text::new(policy), Text::new(callers.unwrap_or(Source { name: "", text: b"", ..policy }))];
    let list = problems.iter().map(|problem| {
        let text = match problem.file {
            File::Policy => &texts[0],
            File::Callers => &texts[1],
        };
        let position = problem.span.map(|span| text.positions.of(span.start));
        json!({
            "code": problem.code.to_string(),
            "severity": severity(problem.severity()),
            "message": problem.message,
            "file": text.name,
            "line": position.map(|position| position.line),
            "column": position.map(|position| position.column),
            "span": problem.span.map(|span| [span.start, span.end]),
            "path": problem.path,
            "label": problem.label,
            "help": problem.help,
        })
    });
    Value::Array(list.collect())
}

struct Text<'a> {
    name: &'a str,
    positions: Positions<'a>,
}

impl<'a> Text<'a> {
    fn new(source: Source<'a>) -> Self {
        Self { name: source.name, positions: Positions::new(source.text) }
    }

    fn place(&self, out: &mut String, span: Span, label: Option<&str>, help: Option<&str>) {
        let position = self.positions.of(span.start);
        let number = position.line.to_string();
        let gutter = " ".repeat(number.len());
        let help = help.map_or(String::new(), |help| format!("   {}", printable(help)));
        out.push_str(&format!("{gutter}--> {}:{}:{}{help}\n", self.name, position.line, position.column));
        let Some(label) = label else { return };
        let (line, covered) = self.positions.line(span);
        let (line, covered) = excerpt(&line, covered);
        let pointer = format!("{}{}", " ".repeat(covered.start), "^".repeat(covered.len()));
        out.push_str(&format!("{gutter} |\n{number} | {line}\n{gutter} | {pointer} {}\n", printable(label)));
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn head(out: &mut String, problem: &Problem) {
    let line = format!("{}: {}", severity(problem.severity()), printable(&problem.message));
    let length = line.chars().count();
    let column = if length + 3 <= CODE_COLUMN { CODE_COLUMN } else { (length + 3).next_multiple_of(8) };
    // Writing to a text cannot fail.
    let _ = writeln!(out, "{line:column$}{}", problem.code);
}

/// The part of a line around what is pointed at, with what would move the cursor made visible as a space.
fn excerpt(line: &str, covered: Range<usize>) -> (String, Range<usize>) {
    let from = if covered.start < WIDEST / 2 { 0 } else { covered.start - WIDEST / 4 };
    let shown: String = line.chars().skip(from).take(WIDEST).collect();
    let length = shown.chars().count();
    let start = (covered.start - from).min(length);
    let end = (covered.end - from).min(length.max(start + 1));
    (printable(shown.trim_end()), start..end.max(start + 1))
}

fn printable(text: &str) -> String {
    text.chars().map(|shown| if is_hidden(shown) { ' ' } else { shown }).collect()
}
