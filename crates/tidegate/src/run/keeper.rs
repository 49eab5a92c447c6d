//! Keeps the running policy and the files the same.
//!
//! A policy comes from the file, whoever noticed that it changed, or from the admin API. One is taken after another,
//! whole or not at all; a policy that is not taken leaves everything as it is, and is remembered until one is.

mod guard;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_core::WallTime;
use tidegate_policy::policy::LogLevel;
use tidegate_policy::{Format, Policy, Problem, Purpose};
use tidegate_proxy::{Gateway, TakeFailure};
use tidegate_tower::{Clock, SystemClock};
use tokio::sync::Notify;

use self::guard::Held;
use super::Run;
use crate::admin::{
    Change, Changes, Checked, Findings, LoadFailure, NotTaken, Offer, PolicyText, Stage, Taken, Unloaded,
};
use crate::commands::Failure;
use crate::commands::files::{Files, Reach, usual_place};
use crate::judge;
use crate::log::{self, Line};

/// What a policy is called that came over the admin API.
const SENT: &str = "sent";

/// Where a policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This file, or the first of the usual places.
    File(Option<PathBuf>),
    /// What flags on the command line made.
    Flags(String),
}

impl Origin {
    /// The same, with the place that was found: a file that appears elsewhere later changes nothing.
    pub(super) fn found(&self) -> Result<Self, Failure> {
        match self {
            Self::File(None) => {
                let path = usual_place().map_err(|failure| {
                    let also =
                        "or name a service to protect: `tidegate run --upstream http://127.0.0.1:3000`";
                    Failure::new(format!("{failure}, {also}"))
                });
                Ok(Self::File(Some(path?)))
            }
            Self::File(Some(_)) | Self::Flags(_) => Ok(self.clone()),
        }
    }

    pub(super) fn read(&self) -> Result<Files, Failure> {
        match self {
            Self::File(path) => Files::read(path.as_deref()),
            Self::Flags(text) => {
                let text = text.clone().into_bytes();
                Ok(Files::given("command line", Format::Toml, text, Path::new(""), Reach::Anywhere))
            }
        }
    }
}

/// What is known of the policy in force and of the files.
#[derive(Debug)]
pub(super) struct Keeper {
    run: Run,
    gateway: Gateway,
    clock: SystemClock,
    started: WallTime,
    /// Where the policy lies.
    folder: PathBuf,
    /// Held by whoever brings a policy, from reading it until it is in force. Looking does not wait for it.
    turn: Mutex<()>,
    state: Mutex<State>,
    load_failures: AtomicU64,
    changes: Changes,
    stage: Mutex<Stage>,
    asked_to_drain: Notify,
}

#[derive(Debug)]
struct State {
    /// The files as they were last read, right or wrong; none when they could not be read.
    seen: Option<Files>,
    /// What is in force.
    taken: Files,
    /// What the policy in force does not have of the one before.
    lost: Vec<String>,
    /// Files that wait for an operator's word.
    held: Option<Held>,
    /// What was wrong with the last files; none if they are in force.
    failure: Option<LoadFailure>,
}

impl Keeper {
    pub(super) fn new(run: Run, files: Files, gateway: Gateway, clock: SystemClock) -> Self {
        let folder = files.folder();
        let state =
            State { seen: Some(files.clone()), taken: files, lost: Vec::new(), held: None, failure: None };
        Self {
            run,
            gateway,
            clock,
            started: clock.now().wall,
            folder,
            turn: Mutex::default(),
            state: Mutex::new(state),
            load_failures: AtomicU64::new(0),
            changes: Changes::default(),
            stage: Mutex::new(Stage::Starting),
            asked_to_drain: Notify::new(),
        }
    }

    pub(super) const fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(super) const fn clock(&self) -> &SystemClock {
        &self.clock
    }

    pub(super) const fn started(&self) -> WallTime {
        self.started
    }

    /// The files that were read last, or else those in force.
    pub(super) fn files(&self) -> Files {
        let state = self.state();
        state.seen.as_ref().unwrap_or(&state.taken).clone()
    }

    /// Whether the files are not what was read last.
    pub(super) fn differs_from_files(&self) -> bool {
        let files = self.run.origin.read().ok();
        self.state().seen != files
    }

    /// Where the files come from.
    pub(super) const fn origin(&self) -> &Origin {
        &self.run.origin
    }

    /// Takes the files at once if they differ from what is in force.
    pub(super) fn reload(&self) {
        self.renew(self.run.origin.read(), true);
    }

    /// Takes files that were read, if they differ from what was read last.
    pub(super) fn follow(&self, read: Result<Files, Failure>) {
        self.renew(read, false);
    }

    /// If it `is_ordered`, it counts whether they differ from what is in force. What is wrong with them is said, and the
    /// policy in force stays.
    fn renew(&self, read: Result<Files, Failure>, is_ordered: bool) {
        let _turn = self.turn();
        let files = match read {
            Ok(files) => files,
            Err(failure) => return self.unreadable(&failure.to_string(), is_ordered),
        };
        {
            let mut state = self.state();
            let is_seen = state.seen.as_ref() == Some(&files);
            state.seen = Some(files.clone());
            if state.held.as_ref().is_some_and(|held| !held.is_of(&files)) {
                state.held = None;
            }
            if state.taken == files {
                if state.failure.take().is_some() || is_ordered {
                    log::info(&format!(
                        "{} is the policy in force; version {} stays",
                        name(&files),
                        self.version()
                    ));
                }
                return;
            }
            if is_seen && !is_ordered {
                return;
            }
        }
        let was = self.spoken();
        match self.put_in_force(&files, |wanted| self.guarded(&files, wanted)) {
            Ok(taken) => {
                let introduction = format!("{} in force as version {}", name(&files), taken.version);
                self.took(files.clone(), &taken);
                log_taken(&introduction, &taken);
                self.changed_by_file(was);
                self.tell_loss(&files, &taken);
            }
            // That was said.
            Err(NotTaken::Held) => {}
            Err(why) => self.not_loaded(why),
        }
    }

    /// An editor may be between removing and writing, and a disk may be away for long: it is told once.
    fn unreadable(&self, why: &str, is_ordered: bool) {
        let is_known = {
            let mut state = self.state();
            state.seen = None;
            state.failure.as_ref().is_some_and(|failure| failure.summary == why)
        };
        if is_ordered || !is_known {
            self.not_loaded(NotTaken::Failed(why.to_owned()));
        }
    }

    fn not_loaded(&self, why: NotTaken) {
        self.load_failures.fetch_add(1, Ordering::Relaxed);
        let how = match why {
            NotTaken::NeedsRestart(_) => Unloaded::NeedsRestart,
            _ => Unloaded::Wrong,
        };
        let (summary, findings) = match why {
            NotTaken::Wrong(findings) => (findings.summary.clone(), Some(findings)),
            NotTaken::NeedsRestart(what) | NotTaken::Failed(what) => (what, None),
            // Files replace whatever is there.
            NotTaken::Replaced { .. } | NotTaken::Held => return,
        };
        {
            let mut state = self.state();
            let since = state.failure.as_ref().map_or_else(|| self.clock.now().wall, |failure| failure.since);
            state.failure =
                Some(LoadFailure { since, how, summary: summary.clone(), findings: findings.clone() });
        }
        // Now whoever reads it and asks finds it so.
        let sentence = format!("Policy not loaded; the running one (version {}) stays.", self.version());
        match &findings {
            Some(findings) => log::findings(LogLevel::Error, &sentence, findings),
            None => {
                let above = format!("error: {summary}");
                Line::new(LogLevel::Error, &sentence).above("why", summary.as_str(), &above).write();
            }
        }
    }

    /// Takes a policy that was sent.
    pub(super) fn take(&self, offer: Offer<'_>) -> Result<Taken, NotTaken> {
        self.replaces(&offer)?;
        // Before its turn: a slow disk holds up nobody else who brings a policy.
        let files = self.sent(offer.text, offer.format);
        let _turn = self.turn();
        self.replaces(&offer)?;
        let taken = self.put_in_force(&files, |_| Ok(())).inspect(|taken| {
            self.took(files, taken);
            let introduction =
                format!("a policy sent to the admin API in force as version {}", taken.version);
            log_taken(&introduction, taken);
        });
        if taken.is_err() {
            self.load_failures.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// What is wrong with a policy that was sent.
    pub(super) fn check(&self, text: &[u8], format: Format) -> Checked {
        let files = self.sent(text, format);
        match self.judge(&files) {
            Ok((_, warnings)) => Checked { is_fine: true, findings: findings(&files, warnings) },
            Err(problems) => Checked { is_fine: false, findings: findings(&files, problems) },
        }
    }

    /// Whether the policy in force is the one that is to be replaced.
    fn replaces(&self, offer: &Offer<'_>) -> Result<(), NotTaken> {
        let version = self.version();
        if offer.replaces.is_some_and(|replaces| replaces != version) {
            return Err(NotTaken::Replaced { version });
        }
        Ok(())
    }

    /// A policy that was sent, with the table it names if it may name that one.
    fn sent(&self, text: &[u8], format: Format) -> Files {
        let reach = Reach::Beside { folder: self.folder.clone(), also: self.read_anyway() };
        Files::given(SENT, format, text.to_vec(), &self.folder, reach)
    }

    /// The files that the policy in force names.
    fn read_anyway(&self) -> Vec<PathBuf> {
        let table = self.state().taken.callers().map(|table| PathBuf::from(table.name));
        let policy = self.gateway.gate().policy();
        let tls = policy.listeners.iter().filter_map(|listener| listener.tls.as_ref());
        let certificates = tls.flat_map(|tls| [&tls.cert, &tls.key]).map(|name| self.folder.join(name));
        table.into_iter().chain(certificates).collect()
    }

    fn judge(&self, files: &Files) -> Result<(Policy, Vec<Problem>), Vec<Problem>> {
        judge::language(files, Purpose::Run { admin: self.run.admin })
    }

    /// Takes files whose policy is right, if `may` it be taken.
    fn put_in_force(
        &self,
        files: &Files,
        may: impl FnOnce(&Policy) -> Result<(), NotTaken>,
    ) -> Result<Taken, NotTaken> {
        let (policy, warnings) =
            self.judge(files).map_err(|problems| NotTaken::Wrong(findings(files, problems)))?;
        may(&policy)?;
        let (log, lost) = (policy.log, self.losses(&policy));
        let version = self.gateway.take(policy).map_err(|failure| {
            let what = format!("{}: {failure}", name(files));
            match failure {
                TakeFailure::NeedsRestart(_) => NotTaken::NeedsRestart(what),
                _ => NotTaken::Failed(what),
            }
        })?;
        log::adopt(log);
        Ok(Taken { version, lost, warnings: findings(files, warnings) })
    }

    fn took(&self, files: Files, taken: &Taken) {
        let mut state = self.state();
        state.taken = files;
        state.lost.clone_from(&taken.lost);
        state.held = None;
        state.failure = None;
    }

    /// The text in force with its number.
    pub(super) fn policy(&self) -> PolicyText {
        let state = self.state();
        let source = state.taken.policy();
        PolicyText {
            version: self.version(),
            name: source.name.to_owned(),
            format: source.format,
            text: source.text.to_vec(),
        }
    }

    /// Keeps that the policy from the file is in force now.
    fn changed_by_file(&self, was: String) {
        let by = format!("file {}", name(&self.state().taken));
        let (what, now, at) = ("policy".to_owned(), self.spoken(), self.clock.now().wall);
        self.changes.record(Change { at, by, what, was, now, until: None });
    }

    /// The policy in force, for those who read what was changed.
    fn spoken(&self) -> String {
        format!("version {} ({})", self.version(), name(&self.state().taken))
    }

    fn version(&self) -> u64 {
        self.gateway.version()
    }

    pub(super) fn lost(&self) -> Vec<String> {
        self.state().lost.clone()
    }

    pub(super) fn load_failure(&self) -> Option<LoadFailure> {
        self.state().failure.clone()
    }

    pub(super) const fn changes(&self) -> &Changes {
        &self.changes
    }

    pub(super) fn load_failures(&self) -> u64 {
        self.load_failures.load(Ordering::Relaxed)
    }

    pub(super) fn stage(&self) -> Stage {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It serves from now on, unless it was told to end already.
    pub(super) fn is_ready(&self) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if *stage == Stage::Starting {
            *stage = Stage::Ready;
        }
    }

    /// It wants no more traffic from now on.
    pub(super) fn begin_to_drain(&self) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Draining;
    }

    /// Somebody asks it over the admin API to drain.
    pub(super) fn ask_to_drain(&self) {
        self.begin_to_drain();
        self.asked_to_drain.notify_one();
    }

    /// Waits until somebody asks over the admin API.
    pub(super) async fn drain_was_asked(&self) {
        self.asked_to_drain.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_taken(introduction: &str, taken: &Taken) {
    if !taken.warnings.text.is_empty() {
        log::findings(LogLevel::Warn, "the policy has warnings", &taken.warnings);
    }
    log::info(introduction);
}

fn name(files: &Files) -> &str {
    files.policy().name
}

fn findings(files: &Files, problems: Vec<Problem>) -> Findings {
    Findings::of(files.policy(), files.callers(), &files.tellable(problems))
}
