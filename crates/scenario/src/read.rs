//! From a text to a scenario, or to all that is wrong with it.
//!
//! | key | is |
//! |---|---|
//! | `id`, `what` | its name, and what happens in one line |
//! | `runs` | who can run it, `["model", "real"]`; both where nothing is said |
//! | `timeline` | phases: `{ phase, length, real }`, where `real` is how long it takes over sockets; or `{ times, real, phases }` |
//! | `[service]` | `workers`, `work`, `then`, `crowding = { free, slope, most }`, `queue`, `tells_utilisation` |
//! | work | `{ exact = "10ms" }`, `{ exponential = "10ms" }` or `{ short, long, share_of_long }` |
//! | `[traffic]` | `load`, `timeout`, `attempts`, `pause`, `patience` |
//! | load | by phase, in multiples of the capacity: `{ calm = 0.5, flood = 10, down = [10, 0] }` |
//! | `[class.NAME]` | `share` of the traffic's load or a `load` of its own; `criticality`, `callers`, `path` |
//! | `[[fault]]` | `during` a phase: `slow`, `fail`, `delay`, `hang`, `stop` |
//! | `[gateway]` | `policy`, a text in which `{service}` stands for the service's address |
//! | `[[assert]]` | `what`, `measure`, `of`, `over`, `from`, `until`, `against`, `at_least` or `at_most`, `naive = { … }`, `only` |

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tidegate_core::Criticality;

use crate::bins::BIN;
use crate::measure::{Assertion, Bound, Measure, Shown};
use crate::timeline::{Pace, Part, Timeline};
use crate::tree::{self, Lines, Node, Table};
use crate::{Amount, Class, Crowding, Fault, Level, Load, MAX_CLASSES, Scenario, Service, Traffic, Work};

/// The longest run, so that a slip of the pen does not run for days.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The most phases, repeated ones counted each time.
const MAX_PHASES: usize = 1000;

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// In which line, counted from one.
    pub line: usize,
    /// What.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// All that is wrong with a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// What the file is called.
    pub name: String,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let end = if index + 1 == self.problems.len() { "" } else { "\n" };
            write!(f, "{}:{}: {}{end}", self.name, problem.line, problem.what)?;
        }
        Ok(())
    }
}

impl Error for Problems {}

pub(crate) fn read(name: &str, text: &str) -> Result<Scenario, Problems> {
    let lines = Lines::of(text);
    let mut reader = Reader { lines: &lines, problems: Vec::new() };
    let scenario = match tree::parse(text, &lines) {
        Ok(file) => reader.scenario(file),
        Err(problem) => reader.wrong(problem),
    };
    let mut problems = reader.problems;
    problems.sort_by_key(|problem| problem.line);
    match scenario {
        Some(scenario) if problems.is_empty() => Ok(scenario),
        Some(_) | None => Err(Problems { name: name.to_owned(), problems }),
    }
}

/// Goes on after a problem, so that all of them are told at once.
struct Reader<'l> {
    lines: &'l Lines,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn wrong<T>(&mut self, problem: Problem) -> Option<T> {
        self.problems.push(problem);
        None
    }

    /// Notes the problem, if it is one.
    fn noted<T>(&mut self, read: Result<T, Problem>) -> Option<T> {
        read.map_or_else(|problem| self.wrong(problem), Some)
    }

    fn scenario(&mut self, mut file: Table<'_>) -> Option<Scenario> {
        let id = self.needed(&mut file, "id", |node, _| node.text());
        let what = self.needed(&mut file, "what", |node, _| node.text());
        let runs =
            file.take("runs").map_or(Ok(vec![Pace::Virtual, Pace::Real]), |node| runs(node, self.lines));
        let runs = self.noted(runs);
        let timeline = self.needed(&mut file, "timeline", timeline);
        let service = self.needed(&mut file, "service", service);
        // What refers to phases cannot be judged without them.
        let phases = timeline.clone()?;
        let traffic = file.need("traffic").and_then(|node| traffic(node, &phases, self.lines));
        let traffic = self.noted(traffic);
        let classes = self.classes(&mut file, &phases);
        let faults = self.each(&mut file, "fault", |node, lines| fault(node, &phases, lines));
        let policy = file.take("gateway").map(|node| gateway(node, self.lines)).transpose();
        let policy = self.noted(policy);
        let words: Vec<String> = classes
            .iter()
            .flat_map(|class| [class.name.clone(), class.criticality.as_str().to_owned()])
            .collect();
        let assertions =
            self.each(&mut file, "assert", |node, lines| assertion(node, &phases, &words, lines));
        let finished = file.finish();
        self.noted(finished);
        Some(Scenario {
            id: id?,
            what: what?,
            runs: runs?,
            timeline: timeline?,
            service: service?,
            traffic: traffic?,
            classes,
            faults,
            policy: policy?,
            assertions,
        })
    }

    fn needed<'a, T>(
        &mut self,
        table: &mut Table<'a>,
        key: &'static str,
        read: fn(Node<'a>, &Lines) -> Result<T, Problem>,
    ) -> Option<T> {
        let read = table.need(key).and_then(|node| read(node, self.lines));
        self.noted(read)
    }

    /// A list of tables; nothing where it is left out.
    fn each<'a, T>(
        &mut self,
        file: &mut Table<'a>,
        key: &'static str,
        read: impl Fn(Node<'a>, &Lines) -> Result<T, Problem>,
    ) -> Vec<T> {
        let Some(node) = file.take(key) else { return Vec::new() };
        let items = node.list(self.lines);
        let items = self.noted(items).unwrap_or_default();
        items.into_iter().filter_map(|node| self.noted(read(node, self.lines))).collect()
    }

    fn classes(&mut self, file: &mut Table<'_>, phases: &Timeline) -> Vec<Class> {
        let tables = file.need("class").and_then(|node| {
            let line = node.line();
            Ok((line, node.table("`class`", self.lines)?.entries()))
        });
        let Some((line, tables)) = self.noted(tables) else { return Vec::new() };
        if tables.len() > MAX_CLASSES {
            self.problems.push(Problem::new(line, format!("there are at most {MAX_CLASSES} classes")));
        }
        let read = |(_, name, node)| class(node, name, phases, self.lines);
        let (mut classes, mut problems) = (Vec::new(), Vec::new());
        for table in tables {
            match read(table) {
                Ok(class) => classes.push(class),
                Err(problem) => problems.push(problem),
            }
        }
        let is_whole = problems.is_empty();
        self.problems.extend(problems);
        let shares: Vec<f64> = classes.iter().filter_map(share).collect();
        let all: f64 = shares.iter().sum();
        if is_whole && !shares.is_empty() && (all - 1.0).abs() > 1e-9 {
            let what = format!("the shares of the classes make {:.4} %, not 100", all * 100.0);
            self.problems.push(Problem::new(line, what));
        }
        classes
    }
}

fn share(class: &Class) -> Option<f64> {
    match class.amount {
        Amount::Share(share) => Some(share),
        Amount::Own(_) => None,
    }
}

fn runs(node: Node<'_>, lines: &Lines) -> Result<Vec<Pace>, Problem> {
    let line = node.line();
    node.texts(lines)?.iter().map(|word| pace(word, line)).collect()
}

fn pace(word: &str, line: usize) -> Result<Pace, Problem> {
    match word {
        "model" => Ok(Pace::Virtual),
        "real" => Ok(Pace::Real),
        _ => Err(Problem::new(line, format!("`{word}` is no runner; there are \"model\" and \"real\""))),
    }
}

fn timeline(node: Node<'_>, lines: &Lines) -> Result<Timeline, Problem> {
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

fn service(node: Node<'_>, lines: &Lines) -> Result<Service, Problem> {
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

fn positive(node: &Node<'_>) -> Result<Duration, Problem> {
    let length = node.length()?;
    if length.is_zero() { Err(Problem::new(node.line(), "this must take some time")) } else { Ok(length) }
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

fn traffic(node: Node<'_>, phases: &Timeline, lines: &Lines) -> Result<Traffic, Problem> {
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

/// The name of a phase.
fn known(phase: String, phases: &Timeline, line: usize) -> Result<String, Problem> {
    if phases.has(&phase) {
        return Ok(phase);
    }
    let what = format!("the timeline has no phase `{phase}`; it has {}", phases.names().join(", "));
    Err(Problem::new(line, what))
}

fn class(node: Node<'_>, name: String, phases: &Timeline, lines: &Lines) -> Result<Class, Problem> {
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

fn fault(node: Node<'_>, phases: &Timeline, lines: &Lines) -> Result<Fault, Problem> {
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

fn gateway(node: Node<'_>, lines: &Lines) -> Result<String, Problem> {
    let mut table = node.table("`gateway`", lines)?;
    let policy = table.need("policy")?;
    let (line, policy) = (policy.line(), policy.text()?);
    table.finish()?;
    if !policy.contains("{service}") {
        return Err(Problem::new(
            line,
            "the policy does not say `{service}`, so nothing would reach the service",
        ));
    }
    Ok(policy)
}

fn assertion(
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

#[cfg(test)]
mod tests;
