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

pub(super) fn assignments(
    written: &[Field<AssignDoc>],
    problems: &mut Problems,
) -> Vec<(Matcher, Criticality)> {
    let assignment = |(index, field): (usize, &Field<AssignDoc>)| {
        let path = format!("criticality.assign[{index}].match");
        let matcher = compile(field.value.matches.as_ref().map(|field| &field.value), &path, problems);
        field.value.criticality.as_ref().map(|criticality| (matcher, criticality.value))
    };
    written.iter().enumerate().filter_map(assignment).collect()
}
