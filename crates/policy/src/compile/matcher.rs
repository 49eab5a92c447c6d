use tidegate_core::Criticality;

use crate::document::read::Field;
use crate::document::route::MatchDoc;
use crate::document::top::AssignDoc;
use crate::document::values::is_token;
use crate::policy::{HeaderMatch, Matcher};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;

pub(super) fn compile(written: Option<&MatchDoc>, path: &str, problems: &mut Problems) -> Matcher {
    let Some(written) = written else { return Matcher::default() };
    let mut headers = Vec::new();
    for (name, value) in written.header.iter().flat_map(|headers| &headers.value.0) {
        if !is_token(name) {
            let message = format!("`{}` does not name a header field", shown(name));
            let problem = Problem::new(Code::BadField, message).at(value.key_span);
            problems.push(problem.path(format!("{path}.header")).label("write letters, digits and hyphens"));
        }
        headers.push(HeaderMatch { name: name.to_ascii_lowercase(), value: value.value.clone() });
    }
    let methods = written.method.iter().flat_map(|list| &list.value.0);
    let hosts = written.host.iter().flat_map(|list| &list.value.0);
    Matcher {
        methods: methods.map(|method| method.value.0.clone()).collect(),
        hosts: hosts.map(|host| host.value.0.clone()).collect(),
        path: written.path.as_ref().map(|path| path.value.clone()),
        headers,
    }
}

/// Which requests have which criticality: the first that matches decides, so later ones must match something else.
pub(super) fn assignments(
    written: &[Field<AssignDoc>],
    problems: &mut Problems,
) -> Vec<(Matcher, Criticality)> {
    let place = |index: usize| format!("criticality.assign[{index}]");
    let mut matchers: Vec<Matcher> = Vec::with_capacity(written.len());
    let mut are_read: Vec<bool> = Vec::with_capacity(written.len());
    for (index, field) in written.iter().enumerate() {
        let path = format!("{}.match", place(index));
        let matcher = compile(field.value.matches.as_ref().map(|field| &field.value), &path, problems);
        let is_read = field.value.matches.is_some() && !problems.mentions(&path);
        let mut earlier = matchers.iter().zip(&are_read);
        let taken = earlier.position(|(earlier, was_read)| *was_read && is_read && earlier.covers(&matcher));
        if let Some(earlier) = taken {
            let (number, earlier) = (index + 1, earlier + 1);
            let message = format!("assignment {number} is never reached: assignment {earlier} takes it all");
            let problem = Problem::new(Code::NeverReached, message).at(field.span).path(place(index));
            problems.push(problem.label(format!("move it before assignment {earlier}")));
        }
        matchers.push(matcher);
        are_read.push(is_read);
    }
    let assigned = matchers.into_iter().zip(written).filter_map(|(matcher, field)| {
        field.value.criticality.as_ref().map(|criticality| (matcher, criticality.value))
    });
    assigned.collect()
}
