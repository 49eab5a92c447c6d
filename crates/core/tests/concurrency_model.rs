//! Adaptive limits in front of a service in virtual time: workers, a queue before them, callers who do not
//! wait for each other. Nothing sleeps and nothing is random: chance comes from a counter.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use tidegate_core::concurrency::{
    Adaptive, Aimd, Bounds, Controller, Gradient, LimitAlgorithm, Objective, Vegas, Windowing,
};
use tidegate_core::permit::{Outcome, Permit};
use tidegate_core::{Criticality, Moment};

/// A service: so many workers, each request takes what the law says at that second.
struct Service {
    workers: fn(u64) -> usize,
    takes: fn(u64, &mut Chance) -> f64,
}

/// Requests per second at each second.
type Demand = fn(u64) -> f64;

/// What a second looked like.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    limit: u32,
    asked: u32,
    refused: u32,
    done: u32,
    latency: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive,
    Finish(usize),
}

/// A sequence that looks random and is always the same (splitmix64).
struct Chance(u64);

impl Chance {
    /// From 0 to 1, neither included.
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON / 4.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.draw().ln()
    }
}

fn nanos(seconds: f64) -> u64 {
    u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap_or(u64::MAX)
}

struct Model<'a> {
    limiter: &'a Adaptive,
    service: &'a Service,
    chance: Chance,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    serial: u64,
    waiting: VecDeque<usize>,
    busy: usize,
    in_flight: Vec<Option<(u64, Permit<&'a Adaptive>)>>,
    free: Vec<usize>,
}

impl<'a> Model<'a> {
    fn run(limiter: &'a Adaptive, service: &'a Service, demand: Demand, seconds: u64) -> Vec<Second> {
        let mut model = Self {
            limiter,
            service,
            chance: Chance(7),
            events: BinaryHeap::new(),
            serial: 0,
            waiting: VecDeque::new(),
            busy: 0,
            in_flight: Vec::new(),
            free: Vec::new(),
        };
        let mut history = vec![Second::default(); usize::try_from(seconds).unwrap_or(0)];
        model.after(0, 0.0, Event::Arrive);
        while let Some(Reverse((now, _, event))) = model.events.pop() {
            let Some(second) = history.get_mut(usize::try_from(now / 1_000_000_000).unwrap_or(0)) else {
                break;
            };
            match event {
                Event::Arrive => {
                    let gap = model.chance.exponential(1.0 / demand(now / 1_000_000_000));
                    model.after(now, gap, Event::Arrive);
                    model.arrive(now, second);
                }
                Event::Finish(place) => model.finish(now, place, second),
            }
            second.limit = limiter.limit();
        }
        history
    }

    fn after(&mut self, now: u64, seconds: f64, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((now + nanos(seconds), self.serial, event)));
    }

    fn arrive(&mut self, now: u64, second: &mut Second) {
        second.asked += 1;
        let Some(permit) = self.limiter.admit(Moment::from_nanos(now), Criticality::Critical).admitted()
        else {
            second.refused += 1;
            return;
        };
        assert!(self.limiter.in_flight() <= u64::from(self.limiter.limit()));
        let place = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        self.in_flight[place] = Some((now, permit));
        self.waiting.push_back(place);
        self.work(now);
    }

    fn work(&mut self, now: u64) {
        let second = now / 1_000_000_000;
        while self.busy < (self.service.workers)(second) {
            let Some(place) = self.waiting.pop_front() else { return };
            self.busy += 1;
            let takes = (self.service.takes)(second, &mut self.chance);
            self.after(now, takes, Event::Finish(place));
        }
    }

    fn finish(&mut self, now: u64, place: usize, second: &mut Second) {
        self.busy -= 1;
        if let Some((started, permit)) = self.in_flight[place].take() {
            second.done += 1;
            second.latency += (now - started) as f64 / 1e9;
            permit.complete(Moment::from_nanos(now), Outcome::Ok);
        }
        self.free.push(place);
        self.work(now);
    }
}

fn limiter(algorithm: impl LimitAlgorithm + 'static) -> Adaptive {
    let bounds = Bounds::new(2..=1_000).and_then(|bounds| bounds.starting_at(10)).expect("in order");
    let objective = Objective::half_of(Duration::from_secs(2)).expect("not zero");
    let windowing = Windowing::new(Duration::from_millis(500), 50).expect("not too short");
    Adaptive::new(Controller::new(algorithm, bounds, objective), windowing, Moment::ORIGIN)
}

fn limiters() -> [(&'static str, Adaptive); 3] {
    [
        ("aimd", limiter(Aimd::default())),
        ("vegas", limiter(Vegas)),
        ("gradient", limiter(Gradient::default())),
    ]
}

/// 20 workers and 10 ms on average: 2000 requests a second, and the knee at 20 in flight.
const EXPONENTIAL: Service = Service { workers: |_| 20, takes: |_, chance| chance.exponential(0.010) };
const EVEN: Service = Service { workers: |_| 20, takes: |_, chance| 0.009 + 0.002 * chance.draw() };
/// One request in twenty takes 100 ms, the others 1 ms.
const TWO_COSTS: Service =
    Service { workers: |_| 20, takes: |_, chance| if chance.draw() < 0.05 { 0.100 } else { 0.001 } };

fn limits(history: &[Second]) -> (u32, u32) {
    let limits = || history.iter().map(|second| second.limit);
    (limits().min().unwrap_or(0), limits().max().unwrap_or(0))
}

fn mean(history: &[Second], what: fn(&Second) -> u32) -> f64 {
    history.iter().map(|second| f64::from(what(second))).sum::<f64>() / history.len() as f64
}

fn latency(history: &[Second]) -> f64 {
    history.iter().map(|second| second.latency).sum::<f64>()
        / mean(history, |second| second.done)
        / history.len() as f64
}

#[test]
fn every_algorithm_settles_near_the_knee_and_stays_there() {
    for service in [&EXPONENTIAL, &EVEN] {
        for demand in [(|_| 3_000.0) as Demand, |_| 6_000.0] {
            for (name, limiter) in limiters() {
                let history = Model::run(&limiter, service, demand, 90);
                let settled = &history[30..];
                // The band, for a minute: probes of a quarter, and AIMD, which only sees that growing does
                // not pay.
                let (least, most) = limits(settled);
                assert!(least >= 18 && most <= 40, "{name} swings from {least} to {most}");
                let (done, took) = (mean(settled, |second| second.done), latency(settled));
                assert!(done >= 0.93 * 2_000.0, "{name} lets {done:.0} a second through");
                assert!(took <= 0.014, "{name}: {took} s, where without a limit callers would wait for ever");
            }
        }
    }
}

#[test]
fn nobody_is_refused_at_seven_tenths_of_the_load() {
    for (name, limiter) in limiters() {
        let history = Model::run(&limiter, &EXPONENTIAL, |_| 1_400.0, 90);
        assert_eq!(history[30..].iter().map(|second| second.refused).sum::<u32>(), 0, "{name}");
    }
}

#[test]
fn two_costs_do_not_push_the_limit_below_what_is_useful() {
    // O7. The mean is 5.95 ms, so 20 workers do 3361 a second. Their slow requests come in clusters that
    // really queue: for moments all workers are taken by them.
    for (name, limiter) in limiters() {
        let history = Model::run(&limiter, &TWO_COSTS, |_| 0.9 * 3_361.0, 90);
        let settled = &history[30..];
        assert!(limits(settled).0 >= 20, "{name} fell to {}", limits(settled).0);
        assert!(mean(settled, |second| second.done) >= 0.94 * 0.9 * 3_361.0, "{name}");
    }
    for (name, limiter) in limiters() {
        let history = Model::run(&limiter, &TWO_COSTS, |_| 0.7 * 3_361.0, 120);
        let refused = mean(&history[60..], |second| second.refused);
        assert!(refused <= 0.001 * 0.7 * 3_361.0, "{name} refuses {refused} a second");
    }
}

#[test]
fn the_limit_follows_a_service_that_loses_half_of_its_workers_and_gets_them_back() {
    let halved = Service {
        workers: |second| if (30..60).contains(&second) { 10 } else { 20 },
        takes: EXPONENTIAL.takes,
    };
    for (name, limiter) in limiters() {
        let history = Model::run(&limiter, &halved, |_| 3_000.0, 90);
        // AIMD hears of nothing: nobody says that he is overloaded. It stays where it was, and callers wait
        // longer.
        let most = if name == "aimd" { 50 } else { 20 };
        assert!(limits(&history[45..60]).1 <= most, "{name}: {:?}", limits(&history[45..60]));
        assert!(limits(&history[75..]).0 >= 18, "{name}: {:?}", limits(&history[75..]));
        assert!(mean(&history[45..60], |second| second.done) >= 0.93 * 1_000.0, "{name}");
    }
}

#[test]
fn a_service_that_becomes_three_times_slower_keeps_its_limit() {
    // Nobody said that a dependency is slow. The limit dips until the dip itself proves that nobody waited.
    let slower = Service {
        workers: |_| 20,
        takes: |second, chance| chance.exponential(if second < 30 { 0.010 } else { 0.030 }),
    };
    for (name, limiter) in limiters() {
        let history = Model::run(&limiter, &slower, |_| 3_000.0, 120);
        assert!(limits(&history[30..]).0 >= 4, "{name}: {:?}", limits(&history[30..]));
        assert!(limits(&history[80..]).0 >= 15, "{name}: {:?}", limits(&history[80..]));
        assert!(mean(&history[80..], |second| second.done) >= 0.93 * 667.0, "{name}");
    }
}

#[test]
fn the_limit_does_not_grow_while_every_response_takes_the_timeout() {
    // M6 through the whole limiter: after a minute of health everything takes 2 s, whatever is in flight.
    let hung = Service {
        workers: |_| 100_000,
        takes: |second, chance| if second < 60 { chance.exponential(0.010) } else { 2.0 },
    };
    for (name, limiter) in limiters() {
        let history = Model::run(&limiter, &hung, |_| 500.0, 660);
        let before = history[59].limit;
        assert!(
            limits(&history[60..]).1 <= before,
            "{name} grew from {before} to {}",
            limits(&history[60..]).1
        );
    }
}

#[test]
fn the_same_traffic_moves_the_limit_the_same_way_twice() {
    let run = || {
        let limiter = limiter(Gradient::default());
        Model::run(&limiter, &TWO_COSTS, |_| 5_000.0, 30)
            .iter()
            .map(|second| second.limit)
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
