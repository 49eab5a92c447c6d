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

mod assertion;
mod problem;
mod service;
mod timeline;
mod traffic;

use std::time::Duration;

use self::assertion::assertion;
pub use self::problem::{Problem, Problems};
use self::service::{fault, service};
use self::timeline::timeline;
use self::traffic::{class, traffic};
use crate::timeline::{Pace, Timeline};
use crate::tree::{self, Lines, Node, Table};
use crate::{Amount, Class, MAX_CLASSES, Scenario};

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

fn positive(node: &Node<'_>) -> Result<Duration, Problem> {
    let length = node.length()?;
    if length.is_zero() { Err(Problem::new(node.line(), "this must take some time")) } else { Ok(length) }
}

/// The name of a phase.
fn known(phase: String, phases: &Timeline, line: usize) -> Result<String, Problem> {
    if phases.has(&phase) {
        return Ok(phase);
    }
    let what = format!("the timeline has no phase `{phase}`; it has {}", phases.names().join(", "));
    Err(Problem::new(line, what))
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

#[cfg(test)]
mod tests;
