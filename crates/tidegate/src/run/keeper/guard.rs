//! What a changed file would lose, and the operator's word for it.
//!
//! The policy in force says what becomes of such a file, not the new one: a file that was cut has lost that too.

use tidegate_core::WallTime;
use tidegate_policy::policy::{Guard, LogLevel, Policy};
use tidegate_tower::Clock;

use super::{Keeper, log_taken, name};
use crate::admin::{LoadFailure, NotConfirmed, NotTaken, Taken, Unloaded};
use crate::commands::files::Files;
use crate::log::Line;

/// How much of a loss a sentence names.
const MOST_NAMED: usize = 5;

/// Files that wait for an operator's word.
#[derive(Debug)]
pub(super) struct Held {
    files: Files,
    since: WallTime,
}

impl Held {
    pub(super) fn is_of(&self, files: &Files) -> bool {
        self.files == *files
    }
}

impl Keeper {
    /// What the policy in force would lose by this one.
    pub(super) fn losses(&self, wanted: &Policy) -> Vec<String> {
        tidegate_policy::lost(&self.gateway.gate().policy(), wanted)
    }

    /// Whether what would be lost takes an operator's word.
    pub(super) fn is_guarded(&self) -> bool {
        match self.gateway.gate().policy().server.guard {
            Guard::Warn => false,
            Guard::Refuse => true,
        }
    }

    /// Keeps files until an operator says yes, or they change.
    pub(super) fn hold(&self, files: &Files, losses: &[String]) {
        let (now, losses) = (self.clock.now().wall, spoken(losses));
        {
            let mut state = self.state();
            let is_held = state.held.as_ref().filter(|held| held.is_of(files));
            let since = is_held.map_or(now, |held| held.since);
            state.held = Some(Held { files: files.clone(), since });
            let summary = format!("it loses {losses}; `tidegate ctl policy confirm` takes it");
            state.failure = Some(LoadFailure { since, how: Unloaded::Held, summary, findings: None });
        }
        let (file, version) = (name(files), self.version());
        let sentence = format!(
            "{file} would lose {losses}, so it is held until `tidegate ctl policy confirm`; version {version} stays"
        );
        Line::new(LogLevel::Warn, &sentence).with("policy", file).with("lost", losses.as_str()).write();
    }

    /// Takes what is held, if the file still is what was held.
    pub(in crate::run) fn confirm(&self) -> Result<Taken, NotConfirmed> {
        let _turn = self.turn();
        let Some(held) = self.state().held.as_ref().map(|held| held.files.clone()) else {
            return Err(NotConfirmed::NothingHeld);
        };
        if self.run.origin.read().ok().as_ref() != Some(&held) {
            return Err(NotConfirmed::Changed);
        }
        let taken = self.put_in_force(&held, |_| Ok(())).map_err(NotConfirmed::NotTaken)?;
        let sentence = format!("{} in force as version {}, as confirmed", name(&held), taken.version);
        self.took(held, &taken);
        log_taken(&sentence, &taken);
        Ok(taken)
    }

    /// Says what a policy that is in force now has lost.
    pub(super) fn tell_loss(&self, files: &Files, taken: &Taken) {
        if taken.lost.is_empty() {
            return;
        }
        let (file, losses) = (name(files), spoken(&taken.lost));
        let sentence = format!("version {} of {file} has lost {losses}", taken.version);
        Line::new(LogLevel::Warn, &sentence).with("policy", file).with("lost", losses.as_str()).write();
    }

    /// The last policy loses nothing of what is in force, or is held.
    pub(super) fn guarded(&self, files: &Files, wanted: &Policy) -> Result<(), NotTaken> {
        let losses = self.losses(wanted);
        if losses.is_empty() || !self.is_guarded() {
            return Ok(());
        }
        self.hold(files, &losses);
        Err(NotTaken::Held)
    }
}

/// The first few, and how many more.
fn spoken(losses: &[String]) -> String {
    let named = losses.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match losses.len().saturating_sub(MOST_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
