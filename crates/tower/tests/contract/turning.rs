//! An upstream without room turns away what the gate had admitted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tidegate_core::{Reason, Refusal, Retry};
use tidegate_policy::{Attributes, Gate};
use tidegate_tower::respond::Speech;
use tidegate_tower::{Admission, Clock, Respond};

use crate::policies::{PER_KEY, concurrent, policy};
use crate::support::{TokioClock, field};

const FULL: Refusal = Refusal { reason: Reason::QueueFull, retry: Retry::After(Duration::ZERO) };

fn admission(gate: &Gate, clock: &Arc<TokioClock>) -> Admission {
    let headers = vec![("x-api-key".to_owned(), "alice".to_owned())];
    let (method, path, host, headers) = ("GET", "/", "", &headers);
    let attributes = Attributes { method, path, host, headers, client: None, criticality: None };
    let admitted = gate.decide(clock.now(), &attributes).admitted().unwrap();
    Admission::new(admitted, &Method::GET, Arc::<TokioClock>::clone(clock), Arc::default())
}

#[tokio::test(start_paused = true)]
async fn nothing_is_charged_held_or_abandoned() {
    let clock = Arc::new(TokioClock::new());
    let gate = Gate::new(policy([PER_KEY, &concurrent(1)]), 1, clock.now()).unwrap();
    for _ in 0..50 {
        let refused = admission(&gate, &clock).turn_away(&gate, "default", FULL);
        assert_eq!(refused.by().name(), "upstream:default");
    }
    let statistics = gate.statistics(clock.now());
    assert_eq!((statistics.admitted, statistics.refused, statistics.ended), (0, 50, [0; 4]));
    assert_eq!(gate.counter("per_key", "alice", clock.now()).unwrap().used.whole(), 0);
    assert_eq!(gate.counter("concurrent", "", clock.now()).unwrap().used.whole(), 0);
}

#[tokio::test(start_paused = true)]
async fn those_refused_at_once_are_not_told_to_come_back_at_once() {
    let clock = Arc::new(TokioClock::new());
    let gate = Gate::new(policy([PER_KEY]), 1, clock.now()).unwrap();
    let (mut seconds, mut millis) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..200 {
        let refused = admission(&gate, &clock).turn_away(&gate, "default", FULL);
        let answer = |speech| Respond::default().refused(clock.now(), &refused, speech);
        seconds.insert(field(answer(Speech::Http).headers(), "retry-after"));
        millis
            .insert(field(answer(Speech::Grpc).headers(), "grpc-retry-pushback-ms").parse::<u32>().unwrap());
    }
    assert_eq!(seconds.into_iter().collect::<Vec<_>>(), ["1", "2", "3"]);
    assert!(millis.iter().all(|millis| (500..=2_500).contains(millis)) && millis.len() > 150, "{millis:?}");
}
