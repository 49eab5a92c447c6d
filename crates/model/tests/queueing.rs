//! The model against what queueing theory knows exactly.

use std::time::Duration;

use tidegate_core::Criticality;
use tidegate_model::arrivals::{Load, Mix, Schedule};
use tidegate_model::caller::Stubborn;
use tidegate_model::spec::{Health, Link, Service, Source, Work};
use tidegate_model::{Record, Spec, run, spec};

const MILLISECOND: Duration = Duration::from_millis(1);

fn link(target: usize, attempts: u32) -> Link {
    Link { target, timeout: Duration::from_secs(60), manners: Box::new(Stubborn::times(attempts)) }
}

fn users(load: f64, length: Duration, link: Link) -> Source {
    let schedule = Schedule::default().steady(length, Load(load));
    Source { schedule, mix: Mix::only(Criticality::Critical), patience: Duration::from_secs(60), link }
}

fn one_worker(work: Work) -> Record {
    let length = Duration::from_secs(300);
    let sources = vec![users(0.8, length, link(0, 1))];
    run(Spec { sources, services: vec![Service::plain(1, work)], changes: vec![], length }, 7)
}

fn assert_near(value: f64, expected: f64, share: f64) {
    assert!((value - expected).abs() <= share * expected, "{value} is not {expected}");
}

#[test]
fn equal_work_waits_as_pollaczek_and_khinchine_say() {
    let record = one_worker(Work::Exact(MILLISECOND));
    assert_near(record.common().mean_latency().as_secs_f64(), 0.003, 0.03);
}

#[test]
fn work_without_memory_waits_twice_as_long() {
    let record = one_worker(Work::Exponential(MILLISECOND));
    assert_near(record.common().mean_latency().as_secs_f64(), 0.005, 0.05);
}

#[test]
fn littles_law_holds() {
    let record = one_worker(Work::Exact(MILLISECOND));
    let all = Duration::ZERO..Duration::from_secs(300);
    let rate = record.common().offered(&all) * 1000.0;
    assert_near(record.mean_inside(), rate * record.common().mean_latency().as_secs_f64(), 0.001);
    assert_near(record.mean_inside(), 2.4, 0.03);
}

#[test]
fn three_layers_of_four_attempts_make_sixty_four() {
    let length = Duration::from_secs(2);
    let service = |needs| Service { needs, ..Service::plain(1000, Work::Exact(MILLISECOND)) };
    let fails = spec::Change {
        at: tidegate_core::Moment::ORIGIN,
        service: 2,
        health: Health { failing: 1.0, ..Health::WELL },
    };
    let record = run(
        Spec {
            sources: vec![users(0.001, length, link(0, 4))],
            services: vec![service(Some(link(1, 4))), service(Some(link(2, 4))), service(None)],
            changes: vec![fails],
            // Time for the last requests to be answered.
            length: length * 2,
        },
        7,
    );
    let all = Duration::ZERO..length * 2;
    assert_near(record.common().amplification(&all), 64.0, 1e-9);
}

#[test]
fn the_unloaded_p99_is_what_an_unloaded_run_shows() {
    let length = Duration::from_secs(600);
    let work = Work::Exponential(MILLISECOND * 10);
    let services = vec![Service::plain(10, work)];
    let record =
        run(Spec { sources: vec![users(0.05, length, link(0, 1))], services, changes: vec![], length }, 1);
    let all = Duration::ZERO..length;
    let shown = record.common().p99(&[Criticality::Critical.index()], &[all]);
    assert_near(shown.as_secs_f64(), work.p99().as_secs_f64(), 0.05);
}
