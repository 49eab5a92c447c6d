//! `tidegate run`: the gateway, from a policy to its end.
//!
//! ```text
//! read the policy ──> bind, start workers ──> admin ──> ready ──> signals, reloads ──> drain ──> exit
//! ```
//!
//! The main thread does nothing but wait for signals and changes of the files; requests are served by the workers and
//! operators by the admin's own thread, so none of them can keep another from its work.

mod access_log;
mod keeper;
mod limits;
mod systemd;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate_policy::policy::Policy;
use tidegate_policy::{Gate, problem};
use tidegate_proxy::{Gateway, Parts, Pem};
use tidegate_tower::{Clock, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::keeper::Keeper;
pub use self::keeper::Origin;
use crate::commands::{Ended, Failure};

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
    let files = run.origin.read()?;
    let (mut policy, warnings) = match tidegate_policy::read(files.policy(), files.callers()) {
        Ok(read) => read,
        Err(problems) => {
            files.complain(&problems, errors)?;
            writeln!(errors, "{}", problem::summary(&problems))?;
            return Ok(Ended::BadPolicy);
        }
    };
    files.complain(&warnings, errors)?;
    if let Some(what) = missing(&policy) {
        writeln!(errors, "error: {} {what}", files.policy().name)?;
        return Ok(Ended::BadPolicy);
    }
    run.adjust(&mut policy);
    limits::raise();
    let clock = SystemClock::new();
    // The standard library's hasher is seeded by the system; what it makes of nothing is a random number.
    let seed = RandomState::new().hash_one(());
    let gate = Arc::new(Gate::new(policy.clone(), seed, clock.now())?);
    let beside = files.folder();
    let log = access_log::start(policy.access_log.as_ref(), &beside)?;
    let gateway = Gateway::start(Parts {
        gate,
        clock,
        tls: certificates(&policy, &beside)?,
        sockets: systemd::sockets(),
        log: log.as_ref().map(access_log::AccessLog::sender),
    })?;
    let addresses: Vec<String> = gateway.addresses().iter().map(SocketAddr::to_string).collect();
    writeln!(errors, "tidegate: {} in force, serving {}", files.policy().name, addresses.join(", "))?;
    let keeper = Arc::new(Keeper::new(run.clone(), files, gateway.clone()));
    let ended = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(watch_over(&keeper, &policy, errors));
    drop(gateway);
    drop(keeper);
    if let Some(log) = log {
        log.finish();
    }
    ended
}

impl Run {
    /// What the command line says wins over the policy.
    fn adjust(&self, policy: &mut Policy) {
        policy.server.admin = self.admin.or(policy.server.admin);
    }
}

/// What a policy lacks that a gateway needs.
fn missing(policy: &Policy) -> Option<&'static str> {
    if policy.listeners.is_empty() {
        Some("does not say where to listen: add `listen = \"0.0.0.0:8080\"`")
    } else if policy.upstreams.is_empty() {
        Some("does not say where requests go: add `upstream = \"http://127.0.0.1:3000\"`")
    } else {
        None
    }
}

/// Everything in a policy is meant from where the policy lies.
fn certificates(policy: &Policy, beside: &Path) -> Result<BTreeMap<String, Pem>, Failure> {
    let read = |name: &str| {
        let path = beside.join(name);
        std::fs::read(&path).map_err(|problem| Failure::unreadable(&path, &problem))
    };
    let listeners = policy.listeners.iter().filter_map(|listener| Some((listener, listener.tls.as_ref()?)));
    listeners
        .map(|(listener, tls)| {
            Ok((listener.name.clone(), Pem { cert: read(&tls.cert)?, key: read(&tls.key)? }))
        })
        .collect()
}

/// Signals and changed files, until the end.
async fn watch_over(
    keeper: &Arc<Keeper>,
    policy: &Policy,
    errors: &mut dyn Write,
) -> Result<Ended, crate::Problem> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut look = interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    systemd::ready();
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            () = keeper.drain_was_asked() => break,
            _ = hang_up.recv() => keeper.reload(true, errors)?,
            _ = look.tick() => {
                systemd::alive();
                keeper.reload(false, errors)?;
            }
        }
    }
    systemd::stopping();
    keeper.begin_to_drain();
    writeln!(errors, "tidegate: draining")?;
    let gateway = keeper.gateway().clone();
    tokio::select! {
        () = sleep(policy.server.drain_delay) => {}
        _ = interrupt.recv() => {}
    }
    gateway.drain();
    let waiting = tokio::task::spawn_blocking(move || gateway.wait());
    tokio::select! {
        ended = waiting => ended?,
        // Whoever asks twice does not want to wait.
        _ = interrupt.recv() => return Err(Failure::new("interrupted while draining").into()),
    }
    Ok(Ended::Done)
}
