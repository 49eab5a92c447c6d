//! What operators changed: the last 1024 of it, each with a line in the process's log.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use axum::extract::{RawQuery, State};
use serde_json::{Value, json};
use tidegate_core::WallTime;
use tidegate_policy::policy::LogLevel;
use tidegate_policy::record::time_text;

use super::answer::{Json, Refusal};
use super::input::Query;
use super::serve::Shared;
use crate::log::Line;

/// How many are kept.
const MOST_KEPT: usize = 1024;

/// One thing that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: WallTime,
    /// By whom: the token's name, an address, or the file that was read.
    pub by: String,
    /// What: `mode of rule per_key`.
    pub what: String,
    /// What it was.
    pub was: String,
    /// What it is now.
    pub now: String,
    /// When that ends by itself.
    pub until: Option<WallTime>,
}

/// The last changes.
#[derive(Debug, Default)]
pub struct Changes(Mutex<VecDeque<Change>>);

impl Changes {
    /// Keeps a change and writes a line about it. The oldest leaves when there are 1024.
    pub fn record(&self, change: Change) {
        let until = change.until.map(time_text);
        let mut line = Line::new(LogLevel::Info, "an operator changed something")
            .with("by", change.by.as_str())
            .with("what", change.what.as_str())
            .with("was", change.was.as_str())
            .with("now", change.now.as_str());
        if let Some(until) = until {
            line = line.with("until", until);
        }
        line.write();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.pop_back();
        }
        kept.push_front(change);
    }

    /// Up to so many of them, the newest first.
    #[must_use]
    pub fn last(&self, most: usize) -> Vec<Change> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().take(most).cloned().collect()
    }
}

/// `GET /api/v1/changes?n=100`
pub(super) async fn get(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json, Refusal> {
    let query = Query::read(query.as_deref(), &["n"])?;
    let most = query.count("n", 100, MOST_KEPT)?;
    let changes: Vec<Value> = shared.station.changes().last(most).iter().map(change_json).collect();
    Ok(Json::ok(json!({ "v": 1, "changes": changes })))
}

fn change_json(change: &Change) -> Value {
    json!({
        "at": time_text(change.at),
        "by": change.by,
        "what": change.what,
        "was": change.was,
        "now": change.now,
        "until": change.until.map(time_text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_leave_when_there_are_too_many() {
        let changes = Changes::default();
        for number in 0..MOST_KEPT + 3 {
            let text = number.to_string();
            changes.record(Change {
                at: WallTime::from_unix_seconds(0),
                by: String::new(),
                what: String::new(),
                was: String::new(),
                now: text,
                until: None,
            });
        }
        let kept = changes.last(usize::MAX);
        assert_eq!((kept.len(), kept[0].now.as_str()), (MOST_KEPT, "1026"));
    }
}
