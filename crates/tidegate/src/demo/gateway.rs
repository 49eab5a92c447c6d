//! One greedy caller and a service that nobody protects; then the same with a gateway between.
//!
//! ```text
//! 8 polite callers, 80 a second ──┐
//!                                 ├──> [gateway] ──> a service for 200 requests a second
//! 1 greedy caller, 600 a second ──┘
//! ```
//!
//! Everything runs in this process, over loopback sockets that the system chooses, so there is nothing to clean up
//! when it ends, by itself or by Ctrl-C.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use tidegate_load::service::{Service, Spec, Work};
use tidegate_load::{Class, Draw, Keys, Pacing, Place, Plan, Rate, Report, Schedule, Share, Target};
use tidegate_policy::{Gate, Source};
use tidegate_proxy::{Gateway, Parts};
use tidegate_tower::{Clock, SystemClock};

use crate::Problem;
use crate::commands::Failure;
use crate::commands::imagined::Imagined;
use crate::run::limits;

const WORKERS: usize = 4;
const WORK: Duration = Duration::from_millis(20);
const POLITE_CALLERS: u64 = 8;
const POLITE_RATE: f64 = 80.0;
const GREEDY_RATE: f64 = 600.0;

/// How long callers wait for an answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the refused request is tried before we wonder.
const MOST_TRIES: usize = 100;

const RULE: &str = r#"[rule.per_key]
key   = "header:x-api-key"
quota = "20/s"
burst = 20"#;

/// Shows it, sending for this long each time.
///
/// # Errors
/// When a socket cannot be had or the page cannot be written.
pub fn write(page: &mut dyn Write, length: Duration) -> Result<(), Problem> {
    limits::raise();
    let service = service()?;
    writeln!(page, "Tidegate: one greedy caller, and a service that can do 200 requests a second.\n")?;
    writeln!(page, "  polite   {POLITE_CALLERS} callers, {POLITE_RATE} requests a second together")?;
    writeln!(page, "  greedy   1 caller, {GREEDY_RATE} requests a second")?;
    writeln!(page, "  Whoever has no answer after {} s gives up.\n", PATIENCE.as_secs())?;
    writeln!(
        page,
        "{:<26}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "", "answered", "refused", "failed", "p50", "p99"
    )?;
    page.flush()?;
    let unprotected = send(service.address(), length)?;
    table(page, "without Tidegate", &unprotected)?;

    // Another one, since the first still works for callers that have given up.
    let service = self::service()?;
    let policy = policy(service.address());
    let gateway = Running::start(&policy)?;
    let protected = send(gateway.address, length)?;
    table(page, "behind Tidegate", &protected)?;
    writeln!(
        page,
        "\nWhat was between them, besides where to listen and where to send:\n\n{}",
        indented(RULE)
    )?;
    refusal(page, &gateway)?;
    gateway.stop();
    writeln!(
        page,
        "\nNext: `tidegate init` writes a policy, `tidegate run` serves it, `tidegate demo --quotas` shows"
    )?;
    writeln!(page, "what each kind of quota does.")?;
    Ok(())
}

fn service() -> io::Result<Service> {
    Service::start(&Spec::new(WORKERS, Work::Fixed(WORK)))
}

fn policy(upstream: SocketAddr) -> String {
    format!("listen   = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n\n{RULE}\n")
}

/// Sends both kinds of requests at once.
fn send(to: SocketAddr, length: Duration) -> Result<Report, Problem> {
    let key = HeaderName::from_static("x-api-key");
    let steady = |rate: f64| {
        let rate = Rate::per_second(rate).ok_or_else(|| Failure::new("that is no rate"))?;
        Ok::<_, Problem>(Schedule::new(Pacing::Even).steady(rate, length))
    };
    let class = |name: &str, rate: f64, keys: u64| {
        let draw = if keys == 1 { Draw::One } else { Draw::Uniform { keys } };
        let keys = Keys { place: Place::Header(key.clone()), format: format!("{name}-%"), draw };
        Ok::<_, Problem>(Class {
            share: Share::Own(steady(rate)?),
            keys: Some(keys),
            ..Class::get(name, "/orders")
        })
    };
    let plan = Plan {
        classes: vec![class("polite", POLITE_RATE, POLITE_CALLERS)?, class("greedy", GREEDY_RATE, 1)?],
        connections: 1000,
        timeout: PATIENCE,
        ..Plan::new(Target::at(to), steady(POLITE_RATE)?)
    };
    Ok(plan.start()?.wait())
}

fn table(page: &mut dyn Write, title: &str, report: &Report) -> io::Result<()> {
    writeln!(page, "{title}")?;
    for class in &report.classes {
        let millis = |latency: Duration| format!("{:.0} ms", latency.as_secs_f64() * 1000.0);
        let answered = class.admitted.as_ref();
        let (p50, p99) = (answered.map(|it| millis(it.p50)), answered.map(|it| millis(it.p99)));
        let refused = class.answers.refused();
        let share = |count: u64| format!("{:.0} %", 100.0 * count as f64 / class.due().max(1) as f64);
        let failed = class.due().saturating_sub(class.answers.ok + refused);
        let (p50, p99) = (p50.unwrap_or_else(|| "-".to_owned()), p99.unwrap_or_else(|| "-".to_owned()));
        writeln!(
            page,
            "  {:<24}{:>10}{:>10}{:>10}{p50:>10}{p99:>10}",
            class.name,
            share(class.answers.ok),
            share(refused),
            share(failed),
        )?;
    }
    page.flush()
}

/// A gateway in this process.
struct Running {
    gateway: Gateway,
    gate: Arc<Gate>,
    clock: SystemClock,
    address: SocketAddr,
}

impl Running {
    fn start(policy: &str) -> Result<Self, Problem> {
        let read = tidegate_policy::read(Source::named("demo.toml", policy.as_bytes()), None);
        let (policy, _) =
            read.map_err(|problems| Failure::new(tidegate_policy::problem::summary(&problems)))?;
        let clock = SystemClock::new();
        let gate = Arc::new(Gate::new(policy, RandomState::new().hash_one(()), clock.now())?);
        let parts = Parts {
            gate: Arc::clone(&gate),
            clock,
            tls: std::collections::BTreeMap::new(),
            sockets: Vec::new(),
            log: None,
        };
        let gateway = Gateway::start(parts)?;
        let address = *gateway.addresses().first().ok_or_else(|| Failure::new("nothing was bound"))?;
        Ok(Self { gateway, gate, clock, address })
    }

    fn stop(&self) {
        self.gateway.drain();
        self.gateway.wait();
    }
}

/// One request of the greedy caller until it is refused, and why it was.
fn refusal(page: &mut dyn Write, running: &Running) -> Result<(), Problem> {
    let mut answer = ask(running.address)?;
    for _ in 1..MOST_TRIES {
        if answer.starts_with("HTTP/1.1 429") {
            break;
        }
        answer = ask(running.address)?;
    }
    writeln!(page, "\nWhat the greedy caller is told:\n\n{}", indented(&readable(&answer)))?;
    let request = Imagined::read("GET /orders x-api-key:greedy-1", &[], None).map_err(Failure::new)?;
    let explanation = running.gate.explain(running.clock.now(), &request.attributes());
    writeln!(
        page,
        "\nWhat an operator is told (`tidegate explain`):\n\n{}",
        indented(explanation.to_string().trim_end())
    )?;
    Ok(())
}

/// The whole answer to one request.
fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /orders HTTP/1.1\r\nhost: demo\r\nx-api-key: greedy-1\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    BufReader::new(stream).read_to_string(&mut answer)?;
    Ok(answer)
}

/// The answer with its JSON on several lines; the same to a program, better for a reader.
fn readable(answer: &str) -> String {
    let parts = answer.split_once("\r\n\r\n");
    let parsed =
        parts.and_then(|(head, body)| Some((head, serde_json::from_str::<serde_json::Value>(body).ok()?)));
    parsed.map_or_else(|| answer.trim_end().to_owned(), |(head, body)| format!("{head}\n\n{body:#}"))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
