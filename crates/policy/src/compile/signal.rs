//! Signals of the policy's own.

use std::sync::Arc;

use super::{check_name, twice};
use crate::document::top::PolicyDoc;
use crate::policy::{MOST_SIGNALS, SignalName, SignalSpec};
use crate::problem::{Code, Problem, Problems};

pub(super) fn compile(document: &PolicyDoc, problems: &mut Problems) -> Vec<SignalSpec> {
    let Some(field) = &document.signal else { return Vec::new() };
    let written = &field.value.0;
    if written.len() > MOST_SIGNALS {
        let message = format!("there are {} signals, more than {MOST_SIGNALS}", written.len());
        let problem = Problem::new(Code::TooMany, message).at(field.key_span).path("signal");
        problems.push(problem.label("remove some"));
    }
    let mut signals = Vec::new();
    for (name, signal) in written {
        let path = format!("signal.{name}");
        check_name("signal", name, signal.key_span, &path, problems);
        if SignalName::KNOWN.iter().any(|known| known.as_str() == name) {
            let message = format!("signal `{name}` is measured already");
            problems.push(twice(message, signal.key_span, path).label("choose another name"));
        }
        let from = signal.value.from.as_ref().map(|from| from.value.clone());
        signals.extend(from.map(|from| SignalSpec { name: Arc::from(name.as_str()), from }));
    }
    signals
}
