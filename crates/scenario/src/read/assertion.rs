//! `[[assert]]`: what must be measured afterwards.

use std::time::Duration;

use super::{Problem, known, pace};
use crate::measure::{Assertion, Bound, Measure, Shown};
use crate::timeline::{Pace, Timeline};
use crate::tree::{Lines, Node, Table};

pub(super) fn assertion(
    node: Node<'_>,
    phases: &Timeline,
    words: &[String],
    lines: &Lines,
) -> Result<Assertion, Problem> {
    let mut table = node.table("an assertion", lines)?;
    let line = table.line;
    let what = table.need("what")?.text()?;
    let measure = measure(&table.need("measure")?)?;
    let of = table.take("of").map_or(Ok(Vec::new()), |node| node.texts(lines))?;
    if let Some(word) = of.iter().find(|word| !words.contains(word)) {
        return Err(Problem::new(line, format!("`{word}` is neither a class nor the criticality of one")));
    }
    let over = table.take("over").map_or(Ok(Vec::new()), |node| node.texts(lines))?;
    let over = over.into_iter().map(|phase| known(phase, phases, line)).collect::<Result<_, _>>()?;
    let from = table.take("from").map_or(Ok(Duration::ZERO), |node| node.length())?;
    let until = table.take("until").map(|node| node.length()).transpose()?;
    let against = table.take("against").map(|node| known(node.text()?, phases, node.line())).transpose()?;
    let naive = table.take("naive").map(|node| {
        let mut table = node.table("`naive`", lines)?;
        let only = only(&mut table)?;
        let bound = bound(&mut table)?;
        table.finish()?;
        Ok(Shown { bound, only })
    });
    let naive = naive.transpose()?;
    let pass = bound(&mut table)?;
    let only = only(&mut table)?;
    table.finish()?;
    if measure == Measure::RefusalCost && against.is_none() {
        return Err(Problem::new(
            line,
            "`refusal_cost` needs `against`, a phase in which nothing is refused",
        ));
    }
    Ok(Assertion { what, measure, of, over, from, until, against, pass, naive, only })
}

fn measure(node: &Node<'_>) -> Result<Measure, Problem> {
    let word = node.text()?;
    let found = Measure::ALL.iter().find(|(name, _)| *name == word);
    found.map(|(_, measure)| *measure).ok_or_else(|| {
        let names: Vec<&str> = Measure::ALL.iter().map(|(name, _)| *name).collect();
        Problem::new(node.line(), format!("`{word}` is no measure; there are {}", names.join(", ")))
    })
}

/// The one runner, if only one is meant.
fn only(table: &mut Table<'_>) -> Result<Option<Pace>, Problem> {
    table.take("only").map(|node| pace(&node.text()?, node.line())).transpose()
}

/// `at_least` or `at_most`.
fn bound(table: &mut Table<'_>) -> Result<Bound, Problem> {
    let line = table.line;
    match (table.take("at_least"), table.take("at_most")) {
        (Some(least), None) => Ok(Bound::AtLeast(least.number()?)),
        (None, Some(most)) => Ok(Bound::AtMost(most.number()?)),
        (Some(_), Some(_)) | (None, None) => {
            Err(Problem::new(line, "this needs a bound, either `at_least` or `at_most`"))
        }
    }
}
