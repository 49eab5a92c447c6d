//! `timeline`: phases, one after another or several times over.

use std::time::Duration;

use super::Problem;
use crate::bins::BIN;
use crate::timeline::{Pace, Part, Timeline};
use crate::tree::{Lines, Node};

/// The longest run, so that a slip of the pen does not run for days.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The most phases, repeated ones counted each time.
const MAX_PHASES: usize = 1000;

pub(super) fn timeline(node: Node<'_>, lines: &Lines) -> Result<Timeline, Problem> {
    let line = node.line();
    let timeline = Timeline(parts(node, lines)?);
    let is_too_much = |pace| timeline.stretches(pace).len() > MAX_PHASES || timeline.length(pace) > LONGEST;
    if [Pace::Virtual, Pace::Real].into_iter().any(is_too_much) {
        let what = format!("a run has at most {MAX_PHASES} phases and takes at most a day");
        return Err(Problem::new(line, what));
    }
    Ok(timeline)
}

fn parts(node: Node<'_>, lines: &Lines) -> Result<Vec<Part>, Problem> {
    node.list(lines)?.into_iter().map(|node| part(node, lines)).collect()
}

fn part(node: Node<'_>, lines: &Lines) -> Result<Part, Problem> {
    let mut table = node.table("a phase of the timeline", lines)?;
    let part = if let Some(times) = table.take("times") {
        let times = times.count()?;
        if usize::try_from(times).is_ok_and(|times| times > MAX_PHASES) {
            return Err(Problem::new(table.line, format!("a run has at most {MAX_PHASES} phases")));
        }
        let real = table.take("real").map_or(Ok(times), |node| node.count())?.min(times);
        let phases = table.need("phases")?.list(lines)?;
        let inner = |node: Node<'_>| match part(node, lines)? {
            phase @ Part::Phase { .. } => Ok(phase),
            Part::Repeated { .. } => Err(Problem::new(table.line, "what is repeated is repeated once only")),
        };
        Part::Repeated { times, real, parts: phases.into_iter().map(inner).collect::<Result<_, _>>()? }
    } else {
        let name = table.need("phase")?.text()?;
        let length = whole(&table.need("length")?)?;
        let real = table.take("real").map_or(Ok(length), |node| whole(&node))?;
        Part::Phase { name, length, real }
    };
    table.finish()?;
    Ok(part)
}

/// A length of whole bins, so that phases begin where bins do.
fn whole(node: &Node<'_>) -> Result<Duration, Problem> {
    let length = node.length()?;
    if length.as_nanos() % BIN.as_nanos() == 0 && !length.is_zero() {
        return Ok(length);
    }
    Err(Problem::new(node.line(), "a phase lasts for a number of tenths of a second"))
}
