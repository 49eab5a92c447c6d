//! `[service]` and `[[fault]]`: what there is to protect, and what goes wrong with it.

use super::{Problem, known, positive};
use crate::timeline::Timeline;
use crate::tree::{Lines, Node};
use crate::{Crowding, Fault, Service, Work};

pub(super) fn service(node: Node<'_>, lines: &Lines) -> Result<Service, Problem> {
    let mut table = node.table("`service`", lines)?;
    let service = Service {
        workers: table.need("workers")?.count()?,
        work: work(table.need("work")?, lines)?,
        then: table.take("then").map(|node| work(node, lines)).transpose()?,
        crowding: table.take("crowding").map(|node| crowding(node, lines)).transpose()?,
        queue: table.take("queue").map(|node| node.count()).transpose()?,
        tells_utilisation: table.take("tells_utilisation").map_or(Ok(false), |node| node.boolean())?,
    };
    table.finish()?;
    Ok(service)
}

fn work(node: Node<'_>, lines: &Lines) -> Result<Work, Problem> {
    let mut table = node.table("the work", lines)?;
    let work = if let Some(exact) = table.take("exact") {
        Work::Exact(positive(&exact)?)
    } else if let Some(mean) = table.take("exponential") {
        Work::Exponential(positive(&mean)?)
    } else {
        let line = table.line;
        let Some(short) = table.take("short") else {
            return Err(Problem::new(
                line,
                "work is `exact`, `exponential`, or `short`, `long` and `share_of_long`",
            ));
        };
        Work::TwoKinds {
            short: positive(&short)?,
            long: positive(&table.need("long")?)?,
            share_of_long: table.need("share_of_long")?.share()?,
        }
    };
    table.finish()?;
    Ok(work)
}

fn crowding(node: Node<'_>, lines: &Lines) -> Result<Crowding, Problem> {
    let mut table = node.table("`crowding`", lines)?;
    let free = table.need("free")?.count()?;
    let slope = table.need("slope")?.number()?;
    let most = table.need("most")?;
    let (line, most) = (most.line(), most.number()?);
    table.finish()?;
    if most < 1.0 {
        return Err(Problem::new(line, "a crowd makes work longer: `most` is at least 1"));
    }
    Ok(Crowding { free, slope, most })
}

pub(super) fn fault(node: Node<'_>, phases: &Timeline, lines: &Lines) -> Result<Fault, Problem> {
    let mut table = node.table("a fault", lines)?;
    let during = table.need("during")?;
    let mut fault = Fault::none(&known(during.text()?, phases, during.line())?);
    if let Some(slow) = table.take("slow") {
        fault.slow = slow.number()?;
        if fault.slow < 1e-6 {
            return Err(Problem::new(slow.line(), "work cannot take no time at all"));
        }
    }
    if let Some(fail) = table.take("fail") {
        fault.fail = fail.share()?;
    }
    if let Some(delay) = table.take("delay") {
        fault.delay = delay.length()?;
    }
    fault.is_hung = table.take("hang").map_or(Ok(false), |node| node.boolean())?;
    fault.is_stopped = table.take("stop").map_or(Ok(false), |node| node.boolean())?;
    let line = table.line;
    table.finish()?;
    if fault == Fault::none(&fault.during) {
        return Err(Problem::new(
            line,
            "the fault has no effect: give it `slow`, `fail`, `delay`, `hang` or `stop`",
        ));
    }
    Ok(fault)
}
