//! The line of a request in the access log, until the request has ended.
//!
//! Three ends have something to say: the answer (its status, how long it took), the upstream's work (who was asked, how
//! often, what went wrong) and what was admitted (how it ended, what its costs were settled to). So all three hold the
//! line. It is written with the end of the answer, which for all but those who leave is the last of them. Work that goes
//! on without its caller has nothing to say any more: operators see at once who leaves, and not a minute later.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::permit::Outcome;
use tidegate_policy::policy::LogAlways;
use tidegate_policy::record::{Decided, StandsFor};
use tidegate_policy::{Record, Refused};
use tidegate_tower::guard::{Ended, Ending};

use super::answer::GONE;
use crate::gateway::Shared;
use crate::upstream::{Called, UpstreamError};

/// A line that is written when it is dropped, if it is to be.
pub(super) struct LogLine {
    shared: Arc<Shared>,
    condition: LogCondition,
    /// None once it is written.
    record: Mutex<Option<Record>>,
}

/// When a line is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogCondition {
    /// Which requests are logged whatever the sample is.
    pub(super) always: LogAlways,
    /// Whether a rule in shadow would have refused it.
    pub(super) is_shadow_refused: bool,
    /// Whether the sample takes it, and how many it stands for then.
    pub(super) drawn: Option<StandsFor>,
}

impl LogCondition {
    /// How many requests the line stands for; none if it is not written.
    fn stands_for(self, record: &Record) -> Option<StandsFor> {
        let is_failed = record.status.is_some_and(|status| status >= 500);
        let is_certain = match record.decided {
            Decided::Refused => self.always.refused,
            Decided::Admitted | Decided::Malformed => {
                self.always.failed && is_failed || self.always.shadow && self.is_shadow_refused
            }
        };
        if is_certain { Some(StandsFor::ONE) } else { self.drawn }
    }

    /// Whether there may be a line of a request that passed so far, and may yet be refused unless it `is_clear`.
    pub(super) const fn may_be_met(self, is_clear: bool) -> bool {
        self.drawn.is_some()
            || self.always.failed
            || self.always.refused && !is_clear
            || self.always.shadow && self.is_shadow_refused
    }
}

impl LogLine {
    pub(super) fn new(shared: &Arc<Shared>, condition: LogCondition, record: Record) -> Arc<Self> {
        Arc::new(Self { shared: Arc::clone(shared), condition, record: Mutex::new(Some(record)) })
    }

    /// Adds something, unless the line is written.
    fn note(&self, note: impl FnOnce(&mut Record)) {
        if let Some(record) = self.record.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            note(record);
        }
    }

    /// Writes it, if it is to be.
    fn write(&self, record: Record) {
        let outcome = record.outcome.or((record.status == Some(GONE)).then_some(Outcome::Abandoned));
        if let Some(stands_for) = self.condition.stands_for(&record) {
            self.shared.log(Record { outcome, stands_for, ..record });
        }
    }

    /// The answer has ended, or its caller has gone.
    pub(super) fn answered(&self, status: u16, took: Duration) {
        let mut line = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(record) = line.as_mut() else { return };
        (record.status, record.duration) = (Some(status), Some(took));
        if let Some(record) = line.take() {
            drop(line);
            self.write(record);
        }
    }

    /// So much of an answer of ours was given.
    pub(super) fn sent(&self, bytes: usize) {
        self.note(|record| record.sent_bytes = u64::try_from(bytes).ok());
    }

    /// It had been let pass, and is refused after all.
    pub(super) fn turned_away(&self, refused: &Refused) {
        self.note(|record| {
            record.decided = Decided::Refused;
            record.rule = Some(refused.by().name().to_owned());
            record.reason = Some(refused.refusal.reason.as_str().to_owned());
            record.retry = Some(refused.refusal.retry);
        });
    }

    /// An upstream was asked, and its answer's head came after so long.
    pub(super) fn asked(&self, called: Called, endpoint: Option<String>, head: Option<Duration>) {
        self.note(|record| {
            (record.endpoint, record.attempts, record.upstream) = (endpoint, called.attempts, head);
        });
    }

    /// There was no answer, or none that is one.
    pub(super) fn failed(&self, error: UpstreamError) {
        self.note(|record| {
            record.error = Some(error.as_str().to_owned());
            record.detail = Some(error.sentence().to_owned());
        });
    }
}

impl Ending for LogLine {
    fn ended(&self, ended: &Ended<'_>) {
        self.note(|record| {
            record.outcome = Some(ended.outcome);
            (record.sent_bytes, record.received_bytes) = (Some(ended.sent), Some(ended.received));
            record.settled = ended.admitted.settled().map(|(rule, cost)| (rule.to_owned(), cost)).collect();
            record.settled.sort();
        });
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        let record = self.record.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(record) = record {
            self.write(record);
        }
    }
}

impl std::fmt::Debug for LogLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogLine").finish_non_exhaustive()
    }
}
