//! Readiness is the inner service's word; waiting is the gate's.

use std::pin::pin;
use std::time::Duration;

use http::Request;
use tower::{Service, ServiceExt};

use crate::policies::{PER_KEY, SHAPED, concurrent};
use crate::support::{Inner, Steps, answer, poll_once, request, serve};

#[tokio::test(start_paused = true)]
async fn a_service_that_hesitates_is_not_overloaded() {
    let inner = Inner { hesitations: 1, ..Inner::default() };
    let service = serve([PER_KEY, &concurrent(1)], inner.clone());
    let mut waiting = service.clone();
    let mut ready = pin!(ServiceExt::<Request<Steps>>::ready(&mut waiting));
    assert!(poll_once(ready.as_mut()).is_pending());
    assert!(poll_once(ready.as_mut()).is_ready());
    for _ in 0..20 {
        assert_eq!(answer(&service, request("alice")).await.status(), 200);
    }
    assert_eq!(inner.calls(), 20);
}

#[tokio::test(start_paused = true)]
async fn asking_for_readiness_takes_nothing() {
    let mut service = serve([PER_KEY, &concurrent(1)], Inner::default());
    for _ in 0..100 {
        ServiceExt::<Request<Steps>>::ready(&mut service).await.unwrap();
    }
    for _ in 0..20 {
        assert_eq!(answer(&service, request("alice")).await.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_leaves_the_service_ready_and_uncalled() {
    let inner = Inner { hesitations: 1, ..Inner::default() };
    let mut service = serve([PER_KEY], inner.clone());
    let mut statuses = Vec::new();
    for _ in 0..25 {
        // The service is asked for readiness once a request, as the contract of tower has it.
        let ready = ServiceExt::<Request<Steps>>::ready(&mut service).await.unwrap();
        statuses.push(ready.call(request("alice")).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses[..20], [200; 20]);
    assert_eq!(statuses[20..], [429; 5]);
    assert_eq!(inner.calls(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_shaped_request_waits_its_turn_before_the_service_is_called() {
    // The service asserts that whoever is called has said it is ready.
    let inner = Inner { hesitations: 1, ..Inner::default() };
    let mut service = serve([SHAPED], inner.clone());
    let started = tokio::time::Instant::now();
    let mut answers = Vec::new();
    for _ in 0..4 {
        let ready = ServiceExt::<Request<Steps>>::ready(&mut service).await.unwrap();
        answers.push(tokio::spawn(ready.call(request("alice"))));
    }
    tokio::task::yield_now().await;
    assert_eq!(inner.calls(), 1);
    for (seconds, answer) in (0..).zip(answers) {
        assert_eq!(answer.await.unwrap().unwrap().status(), 200);
        assert_eq!((started.elapsed().as_secs(), inner.calls()), (seconds, seconds + 1));
    }
    // What has waited is gone; a fifth at the same moment would have found no room.
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(answer(&service, request("alice")).await.status(), 200);
}
