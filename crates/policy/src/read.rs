//! The one road from text to policy.

use crate::compile::compile;
use crate::document::callers::CallerEntryDoc;
use crate::document::read::{Named, Place, Read};
use crate::document::top::PolicyDoc;
use crate::policy::Policy;
use crate::problem::{File, Problem, Problems};
use crate::purpose::{Purpose, judge};
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
    Reading { policy, callers: callers.map(Ok), purpose: Purpose::Any }.read()
}

/// A policy that is to be read for somebody.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Its text.
    pub policy: Source<'a>,
    /// The table of callers that it names, or why that could not be read.
    pub callers: Option<Result<Source<'a>, &'a str>>,
    /// Who is to carry it out.
    pub purpose: Purpose,
}

impl Reading<'_> {
    /// As [`read`], by the judgement of whoever is to carry it out.
    ///
    /// # Errors
    /// With everything that is wrong, in the order of the text, warnings included.
    pub fn read(self) -> Result<(Policy, Vec<Problem>), Vec<Problem>> {
        let mut problems = Problems::of(self.policy.format);
        let root = text::read(self.policy, &mut problems);
        let document = root.as_ref().and_then(|root| PolicyDoc::read(root, &Place::top(), &mut problems));
        problems.turn_to(File::Callers);
        let callers = self.callers.map(|table| {
            table.map(|source| {
                let node = text::read(source, &mut problems);
                let known =
                    node.and_then(|node| Named::<CallerEntryDoc>::read(&node, &Place::top(), &mut problems));
                known.unwrap_or_default()
            })
        });
        problems.turn_to(File::Policy);
        let (Some(root), Some(document)) = (root, document) else { return Err(problems.sorted()) };
        let known = callers.as_ref().map(|table| table.as_ref().map_err(|why| *why));
        let positions = Positions::new(self.policy.text);
        let policy = compile(&document, known, self.purpose.admin(), &positions, &mut problems);
        judge(self.purpose, &policy, &root, &mut problems);
        if problems.has_errors() { Err(problems.sorted()) } else { Ok((policy, problems.sorted())) }
    }
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
