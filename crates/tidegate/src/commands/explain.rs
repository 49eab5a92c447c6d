//! `tidegate explain`: what would happen to a request, rule by rule, and why.
//!
//! The gate here is fresh: nobody has used anything yet. `--after 20` lets that many such requests pass the gate
//! in the same instant first, so that a quota can be seen to run out. How busy the upstream is, only a running gateway knows.

use std::io::Write;

use tidegate_core::{Moment, WallTime};
use tidegate_policy::{Decision, Gate, Now, Purpose, problem};

use super::files::Files;
use super::imagined::Imagined;
use super::{Ended, Failure};
use crate::cli::Explain;
use crate::judge;

/// Any moment will do: nothing has happened before it.
const NOW: Now = Now { moment: Moment::from_nanos(1_000_000_000_000), wall: WallTime::from_unix_seconds(0) };

/// What the answer leaves open.
const RULES_ONLY: &str =
    "This is what the rules say; how busy the upstream is, a running gateway knows: `tidegate ctl explain`.";

/// Nobody chooses keys against a gate that lives for one answer.
const SEED: u64 = 0;

/// Writes what the policy makes of the request.
///
/// # Errors
/// When a file cannot be read, the request is not understood, or the answer cannot be written.
pub fn write(
    explain: &Explain,
    page: &mut dyn Write,
    errors: &mut dyn Write,
) -> Result<Ended, crate::Problem> {
    let files = Files::read(explain.file.as_deref())?;
    let request = Imagined::read(&explain.request, &explain.headers, explain.client).map_err(Failure::new)?;
    let policy = match judge::language(&files, Purpose::Any) {
        Ok((policy, _)) => policy,
        Err(problems) => {
            files.complain(&problems, errors)?;
            writeln!(errors, "{}", problem::summary(&problems))?;
            return Ok(Ended::BadPolicy);
        }
    };
    let gate = Gate::new(policy, SEED, NOW)?;
    // What was admitted stays in flight, so that limits of concurrency fill up too.
    let asked = request.ask(&gate, |attributes| {
        let before: Vec<Decision> = (0..explain.after).map(|_| gate.decide(NOW, attributes)).collect();
        (gate.explain(NOW, attributes), before)
    });
    let (explanation, before) = asked.map_err(Failure::new)?;
    if explain.is_json {
        writeln!(page, "{:#}", explanation.to_json())?;
    } else {
        write!(page, "{explanation}")?;
        // Of others there is nothing more to know.
        if explanation.route.as_ref().is_some_and(|route| !route.is_exempt) {
            write!(page, "\n{RULES_ONLY}\n")?;
        }
    }
    drop(before);
    Ok(Ended::Done)
}
