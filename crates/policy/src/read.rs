//! The one road from text to policy.

use crate::compile::compile;
use crate::document::callers::CallerEntryDoc;
use crate::document::read::{Named, Place, Read};
use crate::document::top::PolicyDoc;
use crate::policy::Policy;
use crate::problem::{File, Problem, Problems};
use crate::text::{self, Positions, Source};

/// Reads a policy, with the table of callers that it may name.
///
/// ```
/// use tidegate_policy::{Source, read};
///
/// let text = br#"
/// listen   = "0.0.0.0:8080"
/// upstream = "http://127.0.0.1:3000"
///
/// [rule.everybody]
/// quota = "10/s"
/// burst = 20
/// "#;
/// let (policy, warnings) = read(Source::named("tidegate.toml", text), None).unwrap();
/// assert_eq!(policy.rules[0].name, "everybody");
/// assert!(warnings.is_empty());
/// ```
///
/// # Errors
/// With everything that is wrong, in the order of the text, warnings included. Without errors the warnings
/// come with the policy.
pub fn read(policy: Source<'_>, callers: Option<Source<'_>>) -> Result<(Policy, Vec<Problem>), Vec<Problem>> {
    let mut problems = Problems::of(policy.format);
    let document = document(policy, &mut problems);
    problems.turn_to(File::Callers);
    let callers = callers.map(|source| {
        let node = text::read(source, &mut problems);
        let known = node.and_then(|node| Named::<CallerEntryDoc>::read(&node, &Place::top(), &mut problems));
        known.unwrap_or_default()
    });
    problems.turn_to(File::Policy);
    let Some(document) = document else { return Err(problems.sorted()) };
    let policy = compile(&document, callers.as_ref(), &Positions::new(policy.text), &mut problems);
    if problems.has_errors() { Err(problems.sorted()) } else { Ok((policy, problems.sorted())) }
}

/// The table of callers that a policy names, for the driver to bring; nothing when it names none, or when
/// the policy cannot be read that far.
#[must_use]
pub fn callers_file(policy: Source<'_>) -> Option<String> {
    let document = document(policy, &mut Problems::default())?;
    Some(document.caller?.value.table?.value)
}

fn document(source: Source<'_>, problems: &mut Problems) -> Option<PolicyDoc> {
    let node = text::read(source, problems)?;
    PolicyDoc::read(&node, &Place::top(), problems)
}
