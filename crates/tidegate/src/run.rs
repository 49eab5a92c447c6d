//! `tidegate run`: the gateway, from a policy to its end.
//!
//! ```text
//! read the policy ──> bind, start workers ──> admin ──> ready ──> signals, reloads ──> drain ──> exit
//! ```
//!
//! The main thread does nothing but wait for signals and changes of the files; requests are served by the workers and
//! operators by the admin's own thread, so none of them can keep another from its work.

mod access_log;
mod certificates;
mod introduction;
mod keeper;
pub(crate) mod limits;
mod operators;
mod refusals;
mod signals;
mod station;
mod systemd;
mod vitals;
mod watch;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_policy::policy::{LogLevel, Policy, SignalName};
use tidegate_policy::{Gate, Problem, listener_path, locate, problem};
use tidegate_proxy::{Gateway, Parts, StartFailure};
use tidegate_tower::{Clock, SystemClock};
use tokio::time::{MissedTickBehavior, interval};

use self::certificates::Certificates;
use self::keeper::Keeper;
pub use self::keeper::Origin;
use self::operators::{NotServed, Operators};
use self::refusals::Refusals;
use self::signals::{Order, Signals};
use self::vitals::Vitals;
use self::watch::Watch;
use crate::admin::Findings;
use crate::commands::Ended;
use crate::commands::files::Files;
use crate::judge::{self, Judged};
use crate::log;

/// How often the files are looked at, in case nobody tells us of a change: links that are swapped, network disks.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What `run` was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The policy file, or the first of the usual places; or a policy made of flags.
    pub origin: Origin,
    /// Where the admin API listens, over what the policy says.
    pub admin: Option<SocketAddr>,
}

/// Serves until a signal ends it.
///
/// # Errors
/// When a file cannot be read, or something cannot be bound or started.
pub fn serve(run: &Run, errors: &mut dyn Write) -> Result<Ended, crate::Problem> {
    if let Err(why) = log::begin() {
        writeln!(errors, "error: {why}")?;
        return Ok(Ended::BadPolicy);
    }
    let run = Run { origin: run.origin.found()?, ..run.clone() };
    let files = run.origin.read()?;
    let Judged { policy, belongings, warnings } = match judge::for_start(&files, run.admin) {
        Ok(judged) => judged,
        Err(problems) => {
            files.complain(&problems, errors)?;
            writeln!(errors, "{}", problem::summary(&problems))?;
            return Ok(Ended::BadPolicy);
        }
    };
    log::adopt(policy.log);
    if !warnings.is_empty() {
        let findings = Findings::of(files.policy(), files.callers(), &warnings);
        log::findings(LogLevel::Warn, "the policy has warnings", &findings);
    }
    let operators = Operators::of(policy.server.admin, belongings.token);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    // Before anybody is told that we are here, so that no signal is missed.
    let signals = Signals::new()?;
    limits::raise();
    let access_log = access_log::start(policy.access_log.as_ref(), &files.folder())?;
    let certificates = Certificates::new(files.folder(), belongings.tls.clone());
    let started = start(policy, belongings.tls, access_log.as_ref(), belongings.fingerprints, &files)?;
    let (gateway, clock) = match started {
        Started::Serves(gateway, clock) => (gateway, clock),
        Started::Kept(problem) => return kept(&files, problem, errors),
    };
    let vitals = vitals(&gateway)?;
    let keeper = Arc::new(Keeper::new(run, files, gateway, clock));
    let admin = match operators.map(|operators| operators.serve(&keeper)).transpose() {
        Ok(admin) => admin,
        Err(NotServed::Kept(problem)) => return kept(&keeper.files(), *problem, errors),
        Err(NotServed::Failed(failure)) => return Err(failure.into()),
    };
    let introduction = introduction::lines(&keeper, admin.as_ref());
    let ended = runtime.block_on(live(&keeper, signals, certificates, &introduction));
    if ended == Ended::Done {
        drop(vitals);
        drop(admin);
        drop(keeper);
        // Now nobody hands over records any more.
        if let Some(log) = access_log {
            log.finish();
        }
    }
    Ok(ended)
}

/// Says what keeps it from serving. Another process may go away, and an address may come; a right does not come by
/// itself, so that starting again would be of no use.
fn kept(
    files: &Files,
    (problem, why): (Problem, ErrorKind),
    errors: &mut dyn Write,
) -> Result<Ended, crate::Problem> {
    files.complain(&locate(files.policy(), vec![problem]), errors)?;
    Ok(if why == ErrorKind::PermissionDenied { Ended::BadPolicy } else { Ended::Failed })
}

/// How the start went.
enum Started {
    Serves(Gateway, SystemClock),
    /// What keeps it from serving, and how the system calls that.
    Kept((Problem, ErrorKind)),
}

fn start(
    policy: Policy,
    tls: certificates::Read,
    log: Option<&access_log::AccessLog>,
    fingerprints: Option<u64>,
    files: &Files,
) -> Result<Started, crate::Problem> {
    let clock = SystemClock::new();
    // The standard library's hasher is seeded by the system; what it makes of nothing is a random number.
    let seed = RandomState::new().hash_one(());
    let sockets = systemd::sockets();
    tell_useless(&sockets, &policy);
    let names: Vec<String> = policy.listeners.iter().map(|listener| listener.name.clone()).collect();
    let gateway = Gateway::start(Parts {
        gate: Arc::new(Gate::with_fingerprints(policy, seed, fingerprints.unwrap_or(seed), clock.now())?),
        clock,
        tls,
        sockets,
        log: log.map(access_log::AccessLog::sender),
    });
    match gateway {
        Ok(gateway) => Ok(Started::Serves(gateway, clock)),
        Err(StartFailure::Bind { listener, address, problem }) => {
            let position = names.iter().position(|name| *name == listener).unwrap_or_default();
            let path = listener_path(files.policy(), position);
            let what = format!("listener `{listener}`");
            Ok(Started::Kept((judge::cannot_bind(&path, &what, address, &problem), problem.kind())))
        }
        Err(other) => Err(other.into()),
    }
}

/// Tells the gateway from now on what this process uses.
fn vitals(gateway: &Gateway) -> io::Result<Vitals> {
    let gateway = gateway.clone();
    let unknown = |signal: &SignalName, why: &str| {
        log::info(&format!("the signal `{signal}` is not known here: {why}"))
    };
    Vitals::start(move |signal, value| gateway.sample(signal, value), unknown)
}

/// Sockets that we were handed and that no listener asks for are closed; whoever bound them should know.
fn tell_useless(sockets: &[TcpListener], policy: &Policy) {
    let bound = sockets.iter().filter_map(|socket| socket.local_addr().ok());
    for address in bound.filter(|address| policy.listeners.iter().all(|listener| listener.bind != *address)) {
        log::warn(&format!(
            "no listener is on {address}, so the socket that was handed over for it is closed"
        ));
    }
}

/// Signals and changed files, until the end.
async fn live(
    keeper: &Keeper,
    mut signals: Signals,
    mut certificates: Certificates,
    introduction: &[String],
) -> Ended {
    let origin = keeper.origin().clone();
    let mut watch = Watch::over(&keeper.files(), move || origin.read());
    let mut look = interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    keeper.is_ready();
    systemd::ready();
    introduction.iter().for_each(|line| log::info(line));
    let mut refusals = Refusals::new(Instant::now());
    loop {
        tokio::select! {
            order = signals.next() => match order {
                Order::End => break,
                Order::Reload => keeper.reload(),
            },
            () = keeper.drain_was_asked() => break,
            read = watch.changed() => keeper.follow(read),
            _ = look.tick() => {
                systemd::alive();
                refusals.look(keeper.gateway().gate().refusals_by_reason(), Instant::now());
                certificates.renew(keeper.gateway());
                if keeper.differs_from_files() {
                    // It may be half written: let it settle.
                    watch.give_sign();
                }
                continue;
            }
        }
        certificates.renew(keeper.gateway());
        watch.follow(&keeper.files());
    }
    let ended = end(keeper, &mut signals).await;
    refusals.end(keeper.gateway().gate().refusals_by_reason(), Instant::now());
    ended
}

/// Lets everything in flight end, unless a signal interrupts it.
async fn end(keeper: &Keeper, signals: &mut Signals) -> Ended {
    systemd::stopping();
    // First of all, so that whoever balances the load looks elsewhere before we stop listening.
    keeper.begin_to_drain();
    log::info("draining");
    tokio::select! {
        cut_off = drained(keeper) => {
            match cut_off {
                0 => {}
                1 => log::warn("1 request was cut off, which had not ended within `drain`"),
                many => log::warn(&format!("{many} requests were cut off, which had not ended within `drain`")),
            }
            Ended::Done
        }
        // Whoever asks twice does not want to wait.
        () = signals.interrupted() => {
            log::warn("ended before everything in flight had");
            Ended::Interrupted
        }
    }
}

/// Waits until everything in flight has ended; returns how many requests had to be cut off.
async fn drained(keeper: &Keeper) -> usize {
    let gateway = keeper.gateway().clone();
    tokio::time::sleep(gateway.gate().policy().server.drain_delay).await;
    gateway.drain();
    let (done, waiting) = tokio::sync::oneshot::channel();
    // A thread that nobody waits for: the one who interrupts does not want to.
    std::thread::spawn(move || {
        let cut_off = gateway.wait();
        // Nobody listens any more after an interruption.
        done.send(cut_off).ok();
    });
    waiting.await.unwrap_or(0)
}
