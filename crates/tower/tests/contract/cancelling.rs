//! Whenever a request is cancelled, everything comes back.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http_body::Body;
use tidegate_policy::Now;
use tidegate_tower::GateService;
use tidegate_tower::body::GuardedBody;
use tower::{Layer, ServiceExt};

use crate::policies::{SHAPED, concurrent};
use crate::support::{Inner, Step, Steps, answer, layer, request, serve};

/// A request under way: its answer, then its body.
enum Work {
    Call(Pin<Box<dyn Future<Output = GuardedBody<Steps>>>>),
    Body(Pin<Box<GuardedBody<Steps>>>),
}

impl Work {
    fn start(service: &GateService<Inner>, key: &str) -> Self {
        let call = service.clone().oneshot(request(key));
        Self::Call(Box::pin(async move { call.await.unwrap().into_body() }))
    }

    /// Polls once; whether it has ended.
    fn step(&mut self) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        match self {
            Self::Call(call) => {
                if let Poll::Ready(body) = call.as_mut().poll(cx) {
                    *self = Self::Body(Box::pin(body));
                }
                false
            }
            Self::Body(body) => matches!(body.as_mut().poll_frame(cx), Poll::Ready(None)),
        }
    }
}

fn hesitant() -> Inner {
    let body = vec![Step::Data("a"), Step::Pending, Step::Data("b"), Step::Pending];
    Inner { hesitations: 1, pauses: 2, body, ..Inner::default() }
}

#[tokio::test(start_paused = true)]
async fn cancelling_at_every_await_point_frees_everything() {
    let service = serve([SHAPED, &concurrent(1)], hesitant());
    let mut steps = 0;
    let mut has_ended = false;
    while !has_ended {
        // Each round has a caller of its own, whose first request makes the second one wait.
        let caller = format!("caller {steps}");
        assert_eq!(answer(&service, request(&caller)).await.status(), 200, "after {steps} steps");
        let mut work = Work::start(&service, &caller);
        for _ in 0..steps {
            has_ended = work.step();
            tokio::time::advance(Duration::from_millis(400)).await;
        }
        drop(work);
        steps += 1;
    }
    assert!(steps > 10, "only {steps}: not every state was met");
}

/// How many requests are cancelled at random.
const CANCELS: u32 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

/// How many are under way at once.
const PLACES: u32 = 50;

#[tokio::test(start_paused = true)]
async fn cancelling_at_random_leaks_nothing() {
    let layer = layer([&concurrent(PLACES)]);
    let service = layer.layer(hesitant());
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    let mut works: Vec<Option<Work>> = (0..PLACES).map(|_| None).collect();
    let mut cancelled = 0;
    while cancelled < CANCELS {
        let place = &mut works[chance.below(PLACES) as usize];
        match place {
            None => *place = Some(Work::start(&service, "alice")),
            Some(_) if chance.below(4) == 0 => {
                *place = None;
                cancelled += 1;
            }
            Some(work) => {
                if work.step() {
                    *place = None;
                }
            }
        }
    }
    drop(works);
    let statistics = layer.gate().statistics(Now::default());
    assert_eq!(statistics.admitted, statistics.ended.iter().sum::<u64>(), "each ends exactly once");
    let [ok, .., abandoned] = statistics.ended;
    assert!(ok > 0 && abandoned > u64::from(CANCELS / 2));

    // Every place is free: exactly so many pass at once.
    let mut answers = Vec::new();
    for _ in 0..=PLACES {
        answers.push(service.clone().oneshot(request("alice")).await.unwrap());
    }
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status().as_u16()).collect();
    assert_eq!(statuses[..PLACES as usize], [200; PLACES as usize]);
    assert_eq!(statuses[PLACES as usize..], [429]);
}

/// Marsaglia's xorshift: the same numbers on every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 33) % u64::from(bound)).unwrap()
    }
}
