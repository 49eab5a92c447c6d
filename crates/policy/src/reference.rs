//! The reference, written from the same declarations that are read by.

use std::fmt::Write;

use crate::document::callers::CallerEntryDoc;
use crate::document::read::Read;
use crate::document::spec::{Absent, Key, Section, Shape, Support};
use crate::document::top::PolicyDoc;
use crate::problem::{Code, Severity};

const GENERATED: &str = "<!-- Generated from the declarations in crates/policy. To change it, change those, then run\n     BLESS=1 cargo test -p tidegate-policy --test reference -->\n";

/// Every key of the language, in Markdown.
#[must_use]
pub fn keys() -> String {
    let mut out = format!("# Policy files: every key\n\n{GENERATED}\n");
    out.push_str(
        "A policy is TOML, or YAML or JSON by the ending of its name; the keys are the same. Unknown keys are\n\
         errors. Keys marked *not yet* belong to the language and are refused by this version.\n\n\
         Quantities are texts with units: quotas `\"10/s\"`, `\"100/30s\"`, `\"5000/day\"`; lengths of time\n\
         `\"250ms\"`, `\"25s\"`, `\"10min\"`, `\"1h\"`, `\"1day\"`; sizes `\"64KiB\"`, `\"10MB\"`; shares `\"20%\"`.\n",
    );
    if let Some(top) = PolicyDoc::SHAPE.section() {
        section(&mut out, top, "");
    }
    if let Some(caller) = CallerEntryDoc::SHAPE.section() {
        out.push_str("\n# The table of callers: every key\n\n");
        out.push_str("The file that `table` of `[caller]` names has one table for each identity.\n");
        section(&mut out, caller, "[IDENTITY]");
    }
    out
}

/// Every code, in Markdown.
#[must_use]
pub fn codes() -> String {
    let mut out = format!("# Problems with policy files: every code\n\n{GENERATED}");
    for code in Code::ALL {
        let kind = match code.severity() {
            Severity::Error => "An error: the policy is not loaded.",
            Severity::Warning => "A warning: the policy is loaded all the same.",
        };
        let (title, meaning, remedy) = (code.title(), code.meaning(), code.remedy());
        // Writing to a text cannot fail.
        let _ = write!(out, "\n## {code}: {title}\n\n{kind} {meaning}\n\n**What to do.** {remedy}\n");
    }
    out
}

fn section(out: &mut String, section: &Section, header: &str) {
    let title = if header.is_empty() { "The top of the file".to_owned() } else { format!("`{header}`") };
    let _ = write!(out, "\n## {title}\n\n{}\n\n", section.about.trim());
    out.push_str("| key | what it is for | value | when left out | example |\n|---|---|---|---|---|\n");
    for key in section.keys {
        let note = match key.support {
            Support::Built => "",
            Support::NotYet => " *Not yet.*",
        };
        let cells = [
            format!("`{}`", key.name),
            format!("{}{note}", key.about.trim()),
            value(key.shape),
            absent(key.absent),
            format!("`{}`", key.example),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    for key in section.keys {
        inner(out, key, header);
    }
}

/// The tables below a key.
fn inner(out: &mut String, key: &Key, header: &str) {
    let Some(below) = key.shape.section() else { return };
    let path = header.trim_matches(['[', ']']);
    let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
    section(
        out,
        below,
        &match key.shape {
            Shape::List(_) => format!("[[{path}]]"),
            Shape::Named(_) | Shape::Either(..) => format!("[{path}.NAME]"),
            _ => format!("[{path}]"),
        },
    );
}

fn value(shape: &Shape) -> String {
    match shape {
        Shape::Choice(words) => {
            let word = |(word, support): &(&str, Support)| match support {
                Support::Built => format!("`\"{word}\"`"),
                Support::NotYet => format!("`\"{word}\"` (not yet)"),
            };
            words.iter().map(word).collect::<Vec<_>>().join(", ")
        }
        Shape::Named(inner) if inner.section().is_some() => "tables by name, see below".to_owned(),
        Shape::List(inner) if inner.section().is_some() => "a list of tables, see below".to_owned(),
        Shape::Section(_) => "a table, see below".to_owned(),
        Shape::Either(smaller, larger) => format!("{}, or {}", value(smaller), value(larger)),
        other => other.what(),
    }
}

fn absent(absent: Absent) -> String {
    match absent {
        Absent::Required => "required".to_owned(),
        Absent::Default(value, reason) => format!("`{value}`: {reason}"),
        Absent::Follows(words) | Absent::Nothing(words) => words.to_owned(),
        Absent::EachDefault => "every key of it has its default".to_owned(),
    }
}
