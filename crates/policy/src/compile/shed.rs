//! Rules that shed by criticality while signals are above their targets.

use std::time::Duration;

use tidegate_core::{Cost, Criticality};

use super::range::{outside, patience};
use crate::document::read::Field;
use crate::document::rule::RuleDoc;
use crate::document::values::Target;
use crate::policy::{Shed, SignalName, SignalSpec, SignalUnit};
use crate::problem::{Code, Problem, Problems, nearest};
use crate::quantity::{Length, Percent, Unreadable, amount, shown};

/// See the declaration of `ramp`.
const RAMP: Duration = Duration::from_secs(120);

/// Who would wait longer for a level to go wants a quota.
const LONGEST_RAMP: Duration = Duration::from_secs(86_400);

/// What a rule asks for, where it says all that is needed.
pub(super) fn compile(
    written: &RuleDoc,
    signals: &[SignalSpec],
    path: &str,
    problems: &mut Problems,
) -> Option<Shed> {
    let (order, ramp) = (order(written, path, problems), ramp(written, path, problems));
    let written = written.target.as_ref()?;
    let path = format!("{path}.target");
    if written.value.0.is_empty() && !problems.mentions(&path) {
        let problem = Problem::new(Code::MissingKey, "`target` names no signal").at(written.span).path(&path);
        let entry = problems.inner_entry("target", "cpu", "\"85%\"");
        problems.push(problem.label(format!("write {entry}")));
    }
    let mut targets = Vec::new();
    for (name, field) in &written.value.0 {
        let Some(signal) = signal(name, signals) else {
            // One that is there and could not be read has been reported.
            if !problems.mentions(&format!("signal.{name}")) {
                problems.push(unknown_signal(name, field, signals, problems).path(&path));
            }
            continue;
        };
        match target(&field.value, signal.unit()) {
            Ok(target) => targets.push((signal, target)),
            Err(wrong) => {
                let problem = Problem::new(wrong.code, format!("{} {}", shown(name), wrong.message));
                problems.push(problem.at(field.span).path(format!("{path}.{name}")).help(wrong.help));
            }
        }
    }
    Some(Shed { targets, order, ramp })
}

fn signal(name: &str, own: &[SignalSpec]) -> Option<SignalName> {
    let known = SignalName::KNOWN.into_iter().find(|known| known.as_str() == name);
    let own = || own.iter().find(|signal| *signal.name == *name);
    known.or_else(|| own().map(|signal| SignalName::Own(signal.name.clone())))
}

fn unknown_signal(name: &str, field: &Field<Target>, own: &[SignalSpec], problems: &Problems) -> Problem {
    let known = SignalName::KNOWN;
    let own = own.iter().map(|signal| &*signal.name);
    let own = own.filter(|name| !known.iter().any(|known| known.as_str() == *name));
    let names = known.iter().map(SignalName::as_str).chain(own);
    let label = match nearest(name, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            let table = problems.table("signal", &shown(name));
            format!("known: {}; or add {table}", names.join(", "))
        }
    };
    let message = format!("there is no signal `{}`", shown(name));
    Problem::new(Code::UnknownSignal, message).at(field.key_span).label(label)
}

/// The target in the signal's unit, or what is wrong with it, following the name of the signal.
fn target(written: &Target, unit: SignalUnit) -> Result<f64, Unreadable> {
    let text = &written.written;
    match unit {
        SignalUnit::Time if Percent::read(text).is_ok() => {
            Err(other(Code::BadDuration, text, "a percentage", "a length of time", "5ms"))
        }
        SignalUnit::Time => match Length::read(text)?.duration {
            Duration::ZERO => Err(always_above(Code::BadDuration, text)),
            length => Ok(length.as_secs_f64()),
        },
        SignalUnit::Share => share(text),
        SignalUnit::Number if written.is_number => number(text),
        SignalUnit::Number if amount(text).is_some() => Err(Unreadable {
            code: Code::BadNumber,
            message: format!("`{}` is a number in quotes", shown(text)),
            help: format!("write {} without quotes, or \"{}%\"", shown(text), shown(text)),
        }),
        SignalUnit::Number if Length::read(text).is_ok() => {
            Err(other(Code::BadNumber, text, "a length of time", "a number or a percentage", "80%"))
        }
        SignalUnit::Number => share(text),
    }
}

/// A share that can be exceeded, and is not always.
fn share(text: &str) -> Result<f64, Unreadable> {
    if Length::read(text).is_ok() {
        return Err(other(Code::BadPercent, text, "a length of time", "a percentage", "80%"));
    }
    // Who writes 0.85 means a share and not 0.85 %.
    if let Some(fraction) = amount(text).filter(|fraction| *fraction < Cost::ONE) {
        return Err(Unreadable {
            code: Code::BadPercent,
            message: format!("`{}` has no unit", shown(text)),
            help: format!("write \"{}%\"", Cost::from_micros(fraction.micros() * 100)),
        });
    }
    let percent = Percent::read(text)?;
    match percent.ratio().value() {
        share if share <= 0.0 => Err(always_above(Code::BadPercent, text)),
        share if share >= 1.0 => Err(Unreadable {
            code: Code::BadPercent,
            message: format!("`{}` is never exceeded: nothing would ever be shed", shown(text)),
            help: "write less, such as \"80%\"".to_owned(),
        }),
        share => Ok(share),
    }
}

fn number(text: &str) -> Result<f64, Unreadable> {
    let number = amount(text).and_then(|_| text.replace('_', "").parse::<f64>().ok());
    match number {
        Some(number) if number > 0.0 => Ok(number),
        Some(_) => Err(always_above(Code::BadNumber, text)),
        None => Err(Unreadable {
            code: Code::BadNumber,
            message: format!("`{}` is not a number above 0", shown(text)),
            help: "write a number with at most six decimals, or a percentage".to_owned(),
        }),
    }
}

fn other(code: Code, text: &str, is: &str, must: &str, example: &str) -> Unreadable {
    let message = format!("`{}` is {is}, but must be {must}", shown(text));
    Unreadable { code, message, help: format!("write {must} such as \"{example}\"") }
}

fn always_above(code: Code, text: &str) -> Unreadable {
    let message = format!("`{}` is always exceeded: everything would be shed", shown(text));
    Unreadable { code, message, help: "write what it should stay below".to_owned() }
}

/// The levels from the lowest on, none left out.
fn order(written: &RuleDoc, path: &str, problems: &mut Problems) -> Vec<Criticality> {
    let [first, second, third, _] = Criticality::ALL;
    let Some(field) = &written.order else { return vec![first, second, third] };
    let path = format!("{path}.order");
    let order: Vec<Criticality> = field.value.iter().map(|level| level.value).collect();
    let is_beginning = !order.is_empty() && Criticality::ALL.starts_with(&order);
    if !is_beginning && !problems.mentions(&path) {
        let wrong = field.value.iter().zip(Criticality::ALL).find(|(level, next)| level.value != *next);
        let (message, at) = match wrong {
            Some((level, next)) => {
                let message = format!("order has `{}` where `{next}` comes next", level.value);
                (message, level.span)
            }
            None if order.is_empty() => ("order sheds nothing".to_owned(), field.span),
            None => ("order has more than the four criticalities".to_owned(), field.span),
        };
        let problem = Problem::new(Code::BadOrder, message).at(at).path(path);
        problems.push(problem.label("write the levels from `sheddable` on, without gaps"));
    }
    order
}

fn ramp(written: &RuleDoc, path: &str, problems: &mut Problems) -> Duration {
    let path = format!("{path}.ramp");
    let Some(field) = &written.ramp else { return RAMP };
    if field.value.duration > LONGEST_RAMP {
        problems.push(outside(&field.value.written, "at most a day", field.span, &path));
    }
    patience(Some(field), &path, problems).unwrap_or(RAMP)
}
