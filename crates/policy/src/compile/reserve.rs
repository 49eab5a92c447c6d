//! Rules that keep a share of the places for what matters.

use std::sync::Arc;

use tidegate_core::{Criticality, shed};

use super::rule::unknown_level;
use super::unknown_upstream;
use crate::document::read::{Field, Named};
use crate::document::rule::RuleDoc;
use crate::policy::{Capacity, Reserve, Upstream};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::Percent;

/// Shares are counted in millionths.
const LEAST: f64 = 1e-6;

/// The reserve that a rule asks for, where it says all that is needed.
pub(super) fn compile(
    written: &RuleDoc,
    upstreams: &[Arc<Upstream>],
    path: &str,
    problems: &mut Problems,
) -> Option<Reserve> {
    let capacity = written.capacity.as_ref();
    if let Some(field) = capacity
        && let Capacity::Upstream(name) = &field.value
        && !upstreams.iter().any(|upstream| upstream.name == **name)
    {
        let problem = unknown_upstream(name, field.span, upstreams, problems);
        problems.push(problem.path(format!("{path}.capacity")));
    }
    let (level, share) = kept(written.reserve.as_ref()?, path, problems)?;
    let (capacity, kept) = (capacity?.value.clone(), share.value.ratio());
    if let Capacity::Places(places) = capacity
        && shed::Reserve::new(places, kept).is_err()
    {
        let message = format!("{} of {places} places leaves none for the others", share.value.written);
        problems.push(bad(message, share, path).label("keep less, or raise `capacity`"));
        return None;
    }
    Some(Reserve { capacity, level, kept })
}

/// For whom how much is kept: one level and one share.
fn kept<'a>(
    written: &'a Field<Named<Percent>>,
    path: &str,
    problems: &mut Problems,
) -> Option<(Criticality, &'a Field<Percent>)> {
    let entry = problems.inner_entry("reserve", "critical", "\"20%\"");
    let [(name, share)] = written.value.0.as_slice() else {
        // An entry that could not be read has been reported already.
        if !problems.mentions(&format!("{path}.reserve")) {
            let message = match written.value.0.len() {
                0 => "`reserve` does not say for whom".to_owned(),
                several => format!("`reserve` is for {several} criticalities, and can be for one"),
            };
            let problem = Problem::new(Code::BadReserve, message).at(written.span);
            problems.push(problem.path(format!("{path}.reserve")).label(format!("write {entry}")));
        }
        return None;
    };
    let Ok(level) = name.parse::<Criticality>() else {
        problems.push(unknown_level(name, share.key_span, &format!("{path}.reserve")));
        return None;
    };
    let amount = share.value.ratio().value();
    let (message, label) = if level == Criticality::Sheddable {
        let message = "nothing is below `sheddable`, so places could be kept from nobody".to_owned();
        (message, format!("write {entry}"))
    } else if amount < LEAST {
        let message = format!("a reserve of {} keeps nothing", share.value.written);
        (message, "write more, or remove the rule".to_owned())
    } else if amount >= 1.0 {
        ("a reserve of 100% leaves nothing for the others".to_owned(), "write less".to_owned())
    } else {
        return Some((level, share));
    };
    problems.push(bad(message, share, path).label(label));
    None
}

fn bad(message: String, share: &Field<Percent>, path: &str) -> Problem {
    Problem::new(Code::BadReserve, message).at(share.span).path(format!("{path}.reserve"))
}
