//! `tidegate bench`: sends requests on schedule and says how they were answered.
//!
//! The schedule does not wait for the server, and latency counts from the moment a request was meant to be sent;
//! `tidegate-load` says why.

pub mod words;

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use tidegate_load::{
    BadTarget, Class, Draw, Exponent, Keys, Pacing, Place, Plan, Protocol, Rate, Reach, Report, Schedule,
    Stopper, Target,
};
use tokio::signal::unix::{SignalKind, signal};

use super::{Ended, Failure};

/// Streams on each connection, as many as most servers allow.
const STREAMS: usize = 100;

/// What `bench` was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bench {
    /// Where the requests go.
    pub url: String,
    /// Which machines may be aimed at.
    pub reach: Reach,
    /// How many a second.
    pub rate: Rate,
    /// For how long.
    pub length: Duration,
    /// How they are spaced.
    pub pacing: Pacing,
    /// How many connections may be open.
    pub connections: usize,
    /// How many requests may wait for one.
    pub waiting: usize,
    /// How long each may take, and how long it may wait for a connection.
    pub timeout: Duration,
    /// How HTTP is spoken.
    pub is_h2: bool,
    /// The method, if one was given.
    pub method: Option<Method>,
    /// Header fields.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body; none is empty.
    pub body: String,
    /// Where a key goes and how it looks.
    pub key: Option<(Place, String)>,
    /// How many keys there are.
    pub keys: Option<u64>,
    /// How unequally they are drawn.
    pub zipf: Option<Exponent>,
    /// Fixes gaps and keys.
    pub seed: u64,
    /// Whether to answer in JSON.
    pub is_json: bool,
}

/// Sends the requests and writes what became of them.
///
/// # Errors
/// When there is nothing that can be sent, nothing was answered, or the answer cannot be written.
pub fn write(bench: &Bench, page: &mut dyn Write, errors: &mut dyn Write) -> Result<Ended, crate::Problem> {
    let plan = plan(bench)?;
    let run = plan.start()?;
    stop_on_interrupt(run.stopper())?;
    writeln!(errors, "{}", announcement(bench, &plan))?;
    let report = run.wait();
    if bench.is_json {
        writeln!(page, "{:#}", report.to_json())?;
    } else {
        write!(page, "{report}")?;
    }
    if report.is_stopped {
        return Ok(Ended::Interrupted);
    }
    if report.total.answers.sum() == 0 {
        return Err(Failure::new(no_answer(&report)).into());
    }
    Ok(Ended::Done)
}

fn plan(bench: &Bench) -> Result<Plan, Failure> {
    let target = Target::read(&bench.url, bench.reach).map_err(|problem| match problem {
        BadTarget::OutOfReach { .. } => Failure::new(format!("{problem} (--anywhere)")),
        problem => Failure::new(problem.to_string()),
    })?;
    let schedule = Schedule::new(bench.pacing).steady(bench.rate, bench.length);
    let class = Class {
        method: method(bench),
        headers: bench.headers.iter().cloned().collect(),
        body: bench.body.clone().into(),
        keys: bench.key.as_ref().map(|(place, format)| Keys {
            place: place.clone(),
            format: format.clone(),
            draw: draw(bench),
        }),
        ..Class::get("all", target.path())
    };
    Ok(Plan {
        classes: vec![class],
        protocol: if bench.is_h2 { Protocol::H2 { streams: STREAMS } } else { Protocol::Http1 },
        connections: bench.connections,
        waiting: bench.waiting,
        timeout: bench.timeout,
        seed: bench.seed,
        ..Plan::new(target, schedule)
    })
}

fn method(bench: &Bench) -> Method {
    let usual = if bench.body.is_empty() { Method::GET } else { Method::POST };
    bench.method.clone().unwrap_or(usual)
}

fn draw(bench: &Bench) -> Draw {
    match (bench.keys, bench.zipf) {
        (None, _) => Draw::One,
        (Some(keys), None) => Draw::Uniform { keys },
        (Some(keys), Some(exponent)) => Draw::Zipf { keys, exponent },
    }
}

/// Ends the run, but not the program, on Ctrl-C. The thread waits for as long as the program lives.
fn stop_on_interrupt(stopper: Stopper) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut interrupt = {
        let _within = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    let wait = move || {
        runtime.block_on(interrupt.recv());
        stopper.stop();
    };
    thread::Builder::new().name("interrupt".to_owned()).spawn(wait).map(drop)
}

fn announcement(bench: &Bench, plan: &Plan) -> String {
    let protocol = if bench.is_h2 { "HTTP/2" } else { "HTTP/1.1" };
    format!(
        "{} {} at {}/s for {:?} over up to {} connections ({protocol}), seed {}; Ctrl-C ends it early",
        method(bench),
        bench.url,
        bench.rate.get(),
        plan.length(),
        plan.connections,
        plan.seed,
    )
}

fn no_answer(report: &Report) -> String {
    let failures = &report.total.failures;
    let kinds = [
        (failures.connect, "got no connection"),
        (failures.timed_out, "timed out"),
        (failures.reset, "were cut off"),
        (failures.protocol, "got something that is not HTTP"),
        (report.total.unsent, "were not sent"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(count, what)| format!("{count} {what}")).collect();
    format!("nothing at {} answered: {}", report.authority, kinds.join(", "))
}
