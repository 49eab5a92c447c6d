//! `tidegate check`: everything that is wrong with a policy, at once.

use std::io::Write;

use serde_json::json;
use tidegate_policy::{Policy, problem};

use super::files::Files;
use super::{Ended, Failure};
use crate::cli::Check;
use crate::judge;

/// Reads the policy and writes what is to be said of it: findings to `errors`, answers to `page`.
///
/// # Errors
/// When a file cannot be read or the answer cannot be written.
pub fn write(check: &Check, page: &mut dyn Write, errors: &mut dyn Write) -> Result<Ended, crate::Problem> {
    let files = Files::read(check.file.as_deref())?;
    let (policy, problems) = match judge::for_check(&files, check.purpose) {
        Ok((policy, warnings)) => (Some(policy), warnings),
        Err(problems) => (None, problems),
    };
    if check.is_json {
        let found = problem::json(files.policy(), files.callers(), &problems);
        let mut answer = json!({ "file": files.policy().name, "ok": policy.is_some(), "problems": found });
        if check.is_effective && policy.is_some() {
            let whole = tidegate_policy::effective_json(files.policy(), files.callers());
            answer["effective"] = whole.map_err(|problems| Failure::new(problem::summary(&problems)))?;
        }
        writeln!(page, "{answer:#}")?;
        return Ok(ended(policy.as_ref()));
    }
    files.complain(&problems, errors)?;
    let Some(policy) = policy else {
        writeln!(errors, "{}", problem::summary(&problems))?;
        return Ok(Ended::BadPolicy);
    };
    if check.is_effective {
        let text = tidegate_policy::effective(files.policy(), files.callers());
        page.write_all(text.map_err(|problems| Failure::new(problem::summary(&problems)))?.as_bytes())?;
    } else {
        writeln!(page, "{}: fine. {}", files.policy().name, counted(&policy))?;
    }
    Ok(Ended::Done)
}

fn ended(policy: Option<&Policy>) -> Ended {
    if policy.is_some() { Ended::Done } else { Ended::BadPolicy }
}

/// `2 rules, 1 route, 1 upstream.`
fn counted(policy: &Policy) -> String {
    let upstreams = policy.upstreams.len();
    let parts = [(policy.rules.len(), "rule"), (policy.routes.len(), "route"), (upstreams, "upstream")];
    let parts = parts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    format!("{}.", parts.join(", "))
}
