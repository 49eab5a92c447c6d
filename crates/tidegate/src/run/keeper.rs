//! Keeps the running policy and the files the same.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_policy::problem;
use tidegate_proxy::Gateway;
use tokio::sync::Notify;

use super::Run;
use crate::commands::Failure;
use crate::commands::files::Files;

/// Where a policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This file, or the first of the usual places.
    File(Option<PathBuf>),
    /// What flags on the command line made.
    Flags(String),
}

impl Origin {
    pub(super) fn read(&self) -> Result<Files, Failure> {
        match self {
            Self::File(path) => Files::read(path.as_deref()),
            Self::Flags(text) => Ok(Files::given("command line", text.clone().into_bytes())),
        }
    }
}

/// What is known of the policy in force and of the files.
#[derive(Debug)]
pub(crate) struct Keeper {
    run: Run,
    gateway: Gateway,
    state: Mutex<State>,
    load_failures: AtomicU64,
    is_draining: AtomicBool,
    asked_to_drain: Notify,
}

#[derive(Debug)]
struct State {
    /// The files as they were last read, right or wrong.
    seen: Files,
    /// The files in force.
    taken: Files,
    /// What was wrong with the last files; none if they are in force.
    failure: Option<String>,
}

impl Keeper {
    pub(super) fn new(run: Run, files: Files, gateway: Gateway) -> Self {
        let state = State { seen: files.clone(), taken: files, failure: None };
        Self {
            run,
            gateway,
            state: Mutex::new(state),
            load_failures: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            asked_to_drain: Notify::new(),
        }
    }

    pub(crate) const fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again and takes them if they differ from what was read last, or in any case if it
    /// `is_ordered`. What is wrong is written to `errors`; the policy in force stays then.
    pub(super) fn reload(&self, is_ordered: bool, errors: &mut dyn Write) -> io::Result<()> {
        let mut state = self.state();
        let files = match self.run.origin.read() {
            Ok(files) if files == state.seen && !is_ordered => return Ok(()),
            Ok(files) => files,
            Err(failure) => {
                // An editor may be between removing and writing; it is told once.
                let failure = failure.to_string();
                if is_ordered || state.failure.as_deref() != Some(failure.as_str()) {
                    self.refused(&mut state, failure, errors)?;
                }
                return Ok(());
            }
        };
        state.seen = files.clone();
        match self.take(&files) {
            Ok(version) => {
                writeln!(errors, "tidegate: {} in force as version {version}", files.policy().name)?;
                state.taken = files;
                state.failure = None;
                Ok(())
            }
            Err(why) => self.refused(&mut state, why, errors),
        }
    }

    fn refused(&self, state: &mut State, why: String, errors: &mut dyn Write) -> io::Result<()> {
        self.load_failures.fetch_add(1, Ordering::Relaxed);
        let version = self.gateway.version();
        writeln!(
            errors,
            "{}\nPolicy not loaded; the running one (version {version}) stays.",
            why.trim_end()
        )?;
        state.failure = Some(why);
        Ok(())
    }

    fn take(&self, files: &Files) -> Result<u64, String> {
        let (mut policy, _warnings) = tidegate_policy::read(files.policy(), files.callers())
            .map_err(|problems| files.rendered(&problems) + &problem::summary(&problems))?;
        self.run.adjust(&mut policy);
        self.gateway.take(policy).map_err(|failure| format!("error: {failure}"))
    }

    pub(super) fn begin_to_drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Waits until somebody asks over the admin API.
    pub(super) async fn drain_was_asked(&self) {
        self.asked_to_drain.notified().await;
    }
}
