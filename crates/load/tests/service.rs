//! The service has the capacity it promises, and suffers what it is told to.

use std::thread;
use std::time::{Duration, Instant};

use tidegate_load::service::{Faults, Queue, Served, Service, Spec, Work};
use tidegate_load::{Pacing, Plan, Protocol, Rate, Report, Schedule, Target};

const TEN: Work = Work::Fixed(Duration::from_millis(10));

fn plan(service: &Service, rate: f64, millis: u64) -> Plan {
    let rate = Rate::per_second(rate).expect("a rate");
    let schedule = Schedule::new(Pacing::Poisson).steady(rate, Duration::from_millis(millis));
    Plan { connections: 1000, ..Plan::new(Target::at(service.address()), schedule) }
}

fn run(plan: &Plan) -> Report {
    plan.start().expect("it starts").wait()
}

/// What the service does a second by its own count, over so many answers during which somebody always waits.
fn measured_capacity(service: &Service, answers: u64) -> f64 {
    while service.served().waiting < 20 {
        thread::yield_now();
    }
    let (begun, before) = (Instant::now(), service.served().ok);
    while service.served().ok < before + answers {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not go on: {:?}", service.served());
        // To look all the time would take a processor from the service.
        thread::park_timeout(Duration::from_millis(1));
    }
    let (elapsed, after) = (begun.elapsed(), service.served());
    assert!(after.waiting > 0, "the queue ran empty: {after:?}");
    (after.ok - before) as f64 / elapsed.as_secs_f64()
}

#[test]
fn offered_twice_its_capacity_it_serves_its_capacity() {
    let bimodal =
        Work::Bimodal { usual: Duration::from_millis(5), long: Duration::from_millis(30), share: 0.2 };
    // What varies needs room for chance: 800 exponential times have a sum that strays by 3.5 %.
    for (work, tolerance) in [(TEN, 0.05), (Work::Exponential(TEN.mean()), 0.1), (bimodal, 0.1)] {
        let spec = Spec::new(4, work);
        assert!((spec.capacity() - 400.0).abs() < 1e-6);
        let service = Service::start(&spec).unwrap();
        let run = plan(&service, 800.0, 4000).start().unwrap();
        let capacity = measured_capacity(&service, 800);
        assert!((capacity / 400.0 - 1.0).abs() < tolerance, "{work:?}: {capacity}");
        drop(run);
    }
}

#[test]
fn both_protocols_are_spoken_on_one_port() {
    let service = Service::start(&Spec::new(4, TEN)).unwrap();
    for protocol in [Protocol::Http1, Protocol::H2 { streams: 50 }] {
        let report = run(&Plan { protocol, connections: 10, ..plan(&service, 100.0, 300) });
        assert_eq!(report.total.answers.ok, report.total.due(), "{protocol:?}");
        let fastest = report.total.admitted.unwrap().p50;
        assert!(fastest >= Duration::from_millis(10), "{fastest:?}");
    }
}

#[test]
fn a_bounded_queue_refuses_and_keeps_latency_low() {
    let spec = Spec { queue: Queue::Bounded(4), ..Spec::new(4, TEN) };
    let service = Service::start(&spec).unwrap();
    let report = run(&Plan { connections: 50, ..plan(&service, 800.0, 1000) });
    let total = &report.total;
    assert!(total.answers.unavailable > 300, "{:?}", total.answers);
    assert!(total.admitted.unwrap().p50 < Duration::from_millis(300), "{:?}", total.admitted);
    let Served { arrived, ok, failed, refused, waiting, busy, .. } = service.served();
    assert_eq!(arrived, ok + failed + refused);
    assert_eq!((refused, waiting, busy), (total.answers.unavailable, 0, 0));
}

#[test]
fn work_that_nobody_waits_for_is_done_and_wasted() {
    let service = Service::start(&Spec::new(1, TEN)).unwrap();
    let plan = Plan { timeout: Duration::from_millis(50), ..plan(&service, 400.0, 500) };
    let report = run(&plan);
    assert!(report.total.failures.timed_out > 100, "{:?}", report.total.failures);
    let served = service.served();
    assert!(served.wasted > 0 && served.waiting > 0, "{served:?}");
}

#[test]
fn faults_come_and_go() {
    let service = Service::start(&Spec::new(10, TEN)).unwrap();
    let brief = Plan { connections: 10, timeout: Duration::from_millis(500), ..plan(&service, 100.0, 200) };
    let with = |faults| {
        service.set(faults).unwrap();
        run(&brief).total
    };
    let slow = with(Faults { slow: 5.0, ..Faults::NONE });
    assert!(slow.admitted.unwrap().p50 >= Duration::from_millis(50), "{slow:?}");
    let failing = with(Faults { fail: 1.0, ..Faults::NONE });
    assert_eq!((failing.answers.server_error, failing.answers.ok), (failing.due(), 0));
    let hung = with(Faults { is_hung: true, ..Faults::NONE });
    assert_eq!(hung.failures.timed_out + hung.unsent, hung.due());
    let stopped = with(Faults { is_stopped: true, ..Faults::NONE });
    assert_eq!(stopped.failures.connect + stopped.failures.reset, stopped.due(), "{stopped:?}");
    let healed = with(Faults::NONE);
    // The change is told to another thread: the first requests may still be too early.
    assert!(healed.answers.ok * 2 > healed.due(), "{healed:?}");
}

#[test]
fn what_cannot_be_is_said() {
    let problem = |spec: &Spec| Service::start(spec).unwrap_err().to_string();
    assert_eq!(problem(&Spec::new(0, TEN)), "a service has 1 to 100000 workers, not 0");
    let service = Service::start(&Spec::new(1, TEN)).unwrap();
    let faults = Faults { fail: 1.5, ..Faults::NONE };
    assert_eq!(service.set(faults).unwrap_err().to_string(), "a share is between 0 and 1, not 1.5");
    let taken = Spec { bind: service.address(), ..Spec::new(1, TEN) };
    assert!(problem(&taken).contains("in use"), "{}", problem(&taken));
}
