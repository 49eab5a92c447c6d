//! One directory for each code: files that have the problem, and exactly what is said about them.
//!
//! `case.toml` and `case.yaml` say the same in both spellings; `callers.toml`, where there is one, is the
//! table of callers. What is expected is in `case.toml.txt` and `case.yaml.txt`.

#![expect(clippy::disallowed_methods, reason = "the cases are files")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidegate_policy::problem::{Code, Problem, json, render, summary};
use tidegate_policy::{Purpose, Reading, Source};

/// What only a driver can find, since it takes files and sockets: their cases are those of `tidegate check`.
const OF_DRIVERS: [Code; 5] =
    [Code::NoFile, Code::BadCertificate, Code::BadToken, Code::CannotBind, Code::NoLog];

/// What is wrong for everybody is so whoever is to carry a policy out.
fn purpose(code: Code) -> Purpose {
    match code {
        Code::NoListener | Code::NoUpstream => Purpose::Run { admin: None },
        Code::NotForLibrary => Purpose::Library,
        _ => Purpose::Any,
    }
}

fn with_cases() -> impl Iterator<Item = Code> {
    Code::ALL.iter().copied().filter(|code| !OF_DRIVERS.contains(code))
}

fn directory(code: Code) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(code.to_string())
}

/// All problems of one file of a case, errors or warnings, and the text that shows them.
fn problems(code: Code, name: &str) -> Option<(Vec<Problem>, String)> {
    let directory = directory(code);
    let text = fs::read(directory.join(name)).ok()?;
    let callers = fs::read(directory.join("callers.toml")).ok();
    let source = Source::named(name, &text);
    let callers = callers.as_deref().map(|text| Source::named("callers.toml", text));
    let reading = Reading { policy: source, callers: callers.map(Ok), purpose: purpose(code) };
    let problems = match reading.read() {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    let shown = format!("{}{}\n", render(source, callers, &problems), summary(&problems));
    let objects = json(source, callers, &problems);
    assert_eq!(objects.as_array().map(Vec::len), Some(problems.len()));
    Some((problems, shown))
}

#[test]
fn every_code_has_its_case_with_the_exact_text() {
    let mut wrong = Vec::new();
    for code in with_cases() {
        let directory = directory(code);
        let mut has_case = false;
        for name in ["case.toml", "case.yaml"] {
            let Some((problems, shown)) = problems(code, name) else { continue };
            has_case = true;
            assert!(problems.iter().any(|problem| problem.code == code), "{code} {name} lacks it:\n{shown}");
            let expected = directory.join(format!("{name}.txt"));
            if std::env::var_os("BLESS").is_some() {
                fs::write(&expected, &shown).unwrap();
            }
            if fs::read_to_string(&expected).unwrap_or_default() != shown {
                wrong.push(format!("{code} {name} says something else now:\n{shown}"));
            }
        }
        assert!(has_case, "{code} has no case");
    }
    assert!(wrong.is_empty(), "{}\nif that is right, BLESS=1 writes it anew", wrong.join("\n"));
}

#[test]
fn both_spellings_have_the_same_problems() {
    for code in with_cases().filter(|code| *code != Code::Syntax && *code != Code::WrongType) {
        let said = |name: &str| -> Option<BTreeSet<(String, String)>> {
            let (problems, _) = problems(code, name)?;
            Some(problems.into_iter().map(|problem| (problem.path, problem.message)).collect())
        };
        if let (Some(toml), Some(yaml)) = (said("case.toml"), said("case.yaml")) {
            assert_eq!(toml, yaml, "{code}");
        }
    }
}
