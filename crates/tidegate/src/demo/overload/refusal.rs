//! One refusal: what its caller is told, and what an operator is told.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tidegate_core::Criticality;
use tidegate_policy::{DecisionId, Record};
use tidegate_tower::bulkhead::Status;

use super::running::{Running, TOLD};

/// How long the answer may take; a refusal takes none.
const PATIENCE: Duration = Duration::from_secs(1);

/// In a flood not every decision is noted: of some callers only the first in each sixtieth of a second.
const TRIES: usize = 10;
const BETWEEN: Duration = Duration::from_millis(7);

/// What stands before the number of the decision in an answer.
const DECISION: &str = "urn:tidegate:decision:";

/// A refusal with its reasons.
#[derive(Debug)]
pub(super) struct Shown {
    answer: String,
    record: Option<Record>,
    status: Option<Status>,
}

/// Sends requests of the lowest level until one is refused and noted, but not for long; the last refusal if none is
/// noted, and nothing if none is refused.
pub(super) fn of(gateway: &Running) -> Option<Shown> {
    let mut last = None;
    for _ in 0..TRIES {
        last = once(gateway).or(last);
        if last.as_ref().is_some_and(|shown: &Shown| shown.record.is_some()) {
            break;
        }
        thread::sleep(BETWEEN);
    }
    last
}

fn once(gateway: &Running) -> Option<Shown> {
    let answer = ask(gateway).ok().filter(|answer| answer.starts_with("HTTP/1.1 503"))?;
    let number =
        answer.split_once(DECISION).map(|(_, rest)| rest.chars().take_while(char::is_ascii_hexdigit));
    let number: Option<DecisionId> = number.and_then(|digits| digits.collect::<String>().parse().ok());
    let record = number.and_then(|number| gateway.gate.decision(number));
    Some(Shown { answer, record, status: gateway.status() })
}

impl Shown {
    pub(super) fn write(&self, page: &mut dyn Write) -> io::Result<()> {
        writeln!(
            page,
            "\nWhat a caller of level sheddable was told in the flood:\n\n{}",
            indented(&readable(&self.answer))
        )?;
        if let Some(record) = &self.record {
            writeln!(page, "\nWhat an operator is told of it (`tidegate ctl decision`):\n")?;
            writeln!(page, "{}", indented(&format!("{:#}", record.to_json())))?;
        }
        if let Some(status) = &self.status {
            writeln!(page, "\nand why (`tidegate ctl upstreams`):\n\n{}", indented(&reasons(status)))?;
        }
        writeln!(
            page,
            "\nWhat the gateway was told, besides where to listen and where to send:\n\n{}",
            indented(TOLD)
        )
    }
}

fn reasons(status: &Status) -> String {
    let mut text = format!(
        "{} requests at a time is what the service bears, found out from its answers; {} are in flight.\n",
        status.limit, status.in_flight
    );
    // Writing to a text cannot fail.
    for (level, share) in Criticality::ALL.iter().zip(status.shed).rev() {
        let percent = share.value() * 100.0;
        writeln!(text, "{:<16}{percent:>4.0} % refused at the door", level.as_str()).unwrap_or_default();
    }
    text
}

/// The whole answer to one request.
fn ask(gateway: &Running) -> io::Result<String> {
    let mut stream = TcpStream::connect(gateway.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET /orders HTTP/1.1\r\nhost: demo\r\nx-api-key: curious\r\nx-criticality: sheddable\r\n\
         connection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The answer with its JSON on several lines; the same to a program, better for a reader.
fn readable(answer: &str) -> String {
    let parts = answer.split_once("\r\n\r\n");
    let parsed = parts.and_then(|(head, body)| Some((head, serde_json::from_str::<Value>(body).ok()?)));
    parsed.map_or_else(|| answer.trim_end().to_owned(), |(head, body)| format!("{head}\n\n{body:#}"))
}

/// How much of a line fits into the usual width of a terminal beside the margin.
const WIDTH: usize = 78;

fn indented(text: &str) -> String {
    let lines = text.trim_end().lines().flat_map(|line| {
        let chars: Vec<char> = line.chars().collect();
        let parts: Vec<String> = chars.chunks(WIDTH).map(|part| part.iter().collect()).collect();
        if parts.is_empty() { vec![String::new()] } else { parts }
    });
    lines.map(|line| format!("  {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
