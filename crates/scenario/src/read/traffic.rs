//! `[traffic]` and `[class.NAME]`: who asks, how much and how patiently.

use std::time::Duration;

use tidegate_core::Criticality;

use super::{Problem, known, positive};
use crate::timeline::Timeline;
use crate::tree::{Lines, Node};
use crate::{Amount, Class, Level, Load, Traffic};

pub(super) fn traffic(node: Node<'_>, phases: &Timeline, lines: &Lines) -> Result<Traffic, Problem> {
    let mut table = node.table("`traffic`", lines)?;
    let load = table.take("load").map_or(Ok(Load::default()), |node| load(node, phases, lines))?;
    let timeout = positive(&table.need("timeout")?)?;
    let attempts = table.take("attempts").map_or(Ok(1), |node| node.count())?;
    let pause = table.take("pause").map_or(Ok(Duration::ZERO), |node| node.length())?;
    let all = timeout.saturating_mul(attempts) + pause.saturating_mul(attempts - 1);
    let patience = table.take("patience").map_or(Ok(all), |node| positive(&node))?;
    table.finish()?;
    Ok(Traffic { load, timeout, attempts, pause, patience })
}

fn load(node: Node<'_>, phases: &Timeline, lines: &Lines) -> Result<Load, Problem> {
    let entries = node.table("`load`", lines)?.entries();
    let level = |(line, phase, node): (usize, String, Node<'_>)| {
        let phase = known(phase, phases, line)?;
        if let Ok(steady) = node.number() {
            return Ok((phase, Level { first: steady, last: steady }));
        }
        let numbers: Result<Vec<f64>, Problem> =
            node.list(lines).and_then(|list| list.iter().map(Node::number).collect());
        match numbers.as_deref() {
            Ok([first, last]) => Ok((phase, Level { first: *first, last: *last })),
            Ok(_) | Err(_) => Err(Problem::new(
                line,
                "a load is a number, or two of them: `[0.5, 2]` goes from one to the other",
            )),
        }
    };
    entries.into_iter().map(level).collect::<Result<_, _>>().map(Load)
}

pub(super) fn class(
    node: Node<'_>,
    name: String,
    phases: &Timeline,
    lines: &Lines,
) -> Result<Class, Problem> {
    let mut table = node.table(format!("class `{name}`"), lines)?;
    let line = table.line;
    let amount = match (table.take("share"), table.take("load")) {
        (Some(share), None) => Amount::Share(share.share()?),
        (None, Some(own)) => Amount::Own(load(own, phases, lines)?),
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::new(
                line,
                format!("class `{name}` needs either a `share` or a `load` of its own"),
            ));
        }
    };
    let level = table.need("criticality")?;
    let criticality: Criticality =
        level.text()?.parse().map_err(|problem| Problem::new(level.line(), format!("{problem}")))?;
    let callers = table.take("callers").map_or(Ok(10_000), |node| node.count())?;
    let path = table.take("path").map_or(Ok("/".to_owned()), |node| node.text())?;
    table.finish()?;
    Ok(Class { name, criticality, amount, callers, path })
}
