//! The lines of breaches of protocols in the access log.
//!
//! Whoever can connect can break a protocol, as often as bytes can be sent. So a listener writes some lines a second, and
//! the first of the next second stands for those that were left out as well: a flood costs no disk, and no count is lost.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use http::StatusCode;
use tidegate_core::WallTime;
use tidegate_policy::Record;
use tidegate_policy::record::StandsFor;

use super::ListenerState;
use super::ProtocolError;
use crate::head::Outline;
use crate::worker::Worker;

/// How many lines a listener writes in a second.
const MOST_A_SECOND: u32 = 10;

/// What is known of a breach.
#[derive(Clone, Copy)]
pub(crate) struct Breach<'a> {
    pub(crate) error: ProtocolError,
    /// What is wrong, in a sentence of ours.
    pub(crate) what: Option<&'static str>,
    pub(crate) client: IpAddr,
    /// What it is answered with, if it is.
    pub(crate) status: Option<StatusCode>,
    /// The request, as far as it could be read.
    pub(crate) request: Option<&'a dyn Outline>,
}

impl Breach<'_> {
    fn record(&self, now: WallTime, listener: &ListenerState) -> Record {
        let text = |text: &str| Record::cut(text, Record::MOST_OF_TEXT);
        let host = self.request.and_then(|request| Record::cut_field(Some(request.host()?.first)));
        Record {
            listener: Some(listener.spec().name.clone()),
            method: self.request.map(|request| text(request.method().as_str())).unwrap_or_default(),
            host,
            path: self
                .request
                .map(|request| Record::cut(request.uri().path(), Record::MOST_OF_PATH))
                .unwrap_or_default(),
            client: Some(self.client.to_canonical()),
            status: self.status.map(|status| status.as_u16()),
            error: Some(self.error.as_str().to_owned()),
            detail: self.what.map(str::to_owned),
            ..Record::malformed(now)
        }
    }
}

impl Worker {
    /// Counts a breach of a protocol, and writes its line if there is a log and room.
    pub(crate) fn breached(&self, listener: &ListenerState, breach: Breach<'_>) {
        listener.count_breach(breach.error);
        if self.settings().access_log.is_none() {
            return;
        }
        let now = self.now().wall;
        if let Some(stands_for) = listener.breach_lines.take(now) {
            self.shared.log(Record { stands_for, ..breach.record(now, listener) });
        }
    }
}

/// How many lines were written lately, and left out.
#[derive(Debug, Default)]
pub(super) struct BreachLines(Mutex<Lately>);

#[derive(Debug, Default)]
struct Lately {
    second: u64,
    written: u32,
    left_out: u64,
}

impl BreachLines {
    /// Whether a line is written, and how many breaches it stands for.
    fn take(&self, now: WallTime) -> Option<StandsFor> {
        let second = now.unix_nanos() / 1_000_000_000;
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lately.second != second {
            (lately.second, lately.written) = (second, 0);
        }
        if lately.written >= MOST_A_SECOND {
            lately.left_out += 1;
            return None;
        }
        lately.written += 1;
        Some(StandsFor::of_count(std::mem::take(&mut lately.left_out).saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_gets_some_lines_a_second_and_none_is_lost() {
        let lines = BreachLines::default();
        let at = |second| WallTime::from_unix_seconds(second);
        let first: Vec<_> = (0..1_000).filter_map(|_| lines.take(at(5))).collect();
        assert_eq!(first, [StandsFor::ONE; 10]);
        assert_eq!(lines.take(at(6)), Some(StandsFor::of_count(991)));
        assert_eq!(lines.take(at(6)), Some(StandsFor::ONE));
    }
}
