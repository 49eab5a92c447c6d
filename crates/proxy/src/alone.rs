//! For how long a request goes on without its caller.
//!
//! | its end matters to                                                | it goes on for |
//! |--------------------------------------------------------------------|----------------|
//! | nothing but an upstream's limit that finds itself                   | its grace |
//! | a rule that allows so many in flight, or a limit that is fixed      | as long as the upstream may take |
//! | a cost that only the answer tells                                   | as long as the upstream may take |
//! | any of them, and its answer is a stream that may never end          | its grace, from there on |
//!
//! A limit that finds itself gets its place back after the grace in any case, and learns that such work takes as long at
//! least: it promises no number, and what it must not do is stand still.
//!
//! The upstream's own word is all that is believed. To close the connection earlier and call the work ended would be to
//! guess: most services work on, and many close their side at once while they do.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use http::{HeaderMap, header};
use tidegate_policy::policy::{LimitAlgorithm, Upstream};
use tidegate_tower::Admission;
use tokio::task_local;
use tokio::time::timeout;

/// How long work without its caller may take where the policy gives the upstream any time: as long as by default.
const LONGEST: Duration = Duration::from_secs(60);

/// The types of answers that have no end of their own.
const STREAMS: [&str; 3] = ["text/event-stream", "application/grpc", "multipart/x-mixed-replace"];

task_local! {
    /// Known where a request goes on without its caller, and whether beyond its grace.
    static LATE: Cell<bool>;
}

/// For how long a request goes on without its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    grace: Duration,
    /// Where its end matters to something that counts.
    longest: Option<Duration>,
}

impl Patience {
    pub(crate) fn of(admission: &Admission, upstream: &Upstream, grace: Duration) -> Self {
        let is_fixed = upstream.concurrency.algorithm == LimitAlgorithm::Fixed;
        let is_counted = is_fixed || admission.holds_place() || admission.awaits_cost();
        let longest = upstream.timeout.unwrap_or(LONGEST).max(grace);
        Self { grace, longest: is_counted.then_some(longest) }
    }

    /// From when its body has broken off: the connection is closed, of which the upstream has to hear.
    pub(crate) fn for_broken_off(self) -> Self {
        Self { longest: None, ..self }
    }

    /// From when the head of its answer has come; none ends it at once.
    pub(crate) fn for_body(self, head: &HeaderMap) -> Option<Self> {
        let longest = self.longest?;
        Some(Self { longest: (!is_stream(head)).then_some(longest), ..self })
    }
}

fn is_stream(head: &HeaderMap) -> bool {
    let kind = head.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    kind.is_some_and(|kind| STREAMS.iter().any(|stream| kind.starts_with(stream.as_bytes())))
}

/// Whether the request that is being worked on has lost its caller.
pub(crate) fn is_alone() -> bool {
    LATE.try_with(|_| ()).is_ok()
}

/// Whether that was longer ago than its grace.
pub(crate) fn is_late() -> bool {
    LATE.try_with(Cell::get).unwrap_or(false)
}

/// Does the work without its caller; it is dropped when its time is over.
pub(crate) async fn alone(work: impl Future<Output = ()>, patience: Patience) {
    let Patience { grace, longest } = patience;
    let within_patience = async move {
        let mut work = pin!(work);
        if timeout(grace, &mut work).await.is_err()
            && let Some(longest) = longest
        {
            LATE.with(|late| late.set(true));
            // What passed of it before is no more than the grace.
            drop(timeout(longest, work).await);
        }
    };
    LATE.scope(Cell::new(false), within_patience).await;
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tokio::time::{Instant, sleep};

    use super::*;

    const PATIENCE: Patience =
        Patience { grace: Duration::from_millis(200), longest: Some(Duration::from_secs(60)) };

    /// When work that never ends is late, and when it is cut off.
    async fn late_and_cut(patience: Patience) -> (Option<Duration>, Duration) {
        let (began, late) = (Instant::now(), Cell::new(None));
        let work = async {
            loop {
                assert!(is_alone());
                if is_late() && late.get().is_none() {
                    late.set(Some(began.elapsed()));
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        alone(work, patience).await;
        (late.get(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn what_nothing_counts_is_cut_off_after_its_grace() {
        let patience = Patience { longest: None, ..PATIENCE };
        assert_eq!(late_and_cut(patience).await, (None, PATIENCE.grace));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_counted_goes_on_beyond_it() {
        let (late, cut) = late_and_cut(PATIENCE).await;
        assert!(late.is_some_and(|late| late >= PATIENCE.grace), "{late:?}");
        assert_eq!(cut, PATIENCE.grace + Duration::from_secs(60));
        assert!(!is_alone() && !is_late());
    }

    #[test]
    fn streams_are_not_read_on_to_their_end() {
        let of = |kind: Option<&'static str>| {
            let fields = kind.map(|kind| (header::CONTENT_TYPE, HeaderValue::from_static(kind)));
            PATIENCE.for_body(&fields.into_iter().collect()).unwrap().longest.is_some()
        };
        assert!(of(None) && of(Some("application/json")) && of(Some("text/plain")));
        for stream in ["text/event-stream", "Text/Event-Stream; charset=utf-8", "application/grpc+proto"] {
            assert!(!of(Some(stream)), "{stream}");
        }
    }
}
