//! One side: a service, and its callers.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use tidegate_load::report::{Attempt, AttemptEnding};
use tidegate_load::service::{Service, Spec, Work};
use tidegate_load::{
    Class, Draw, Keep, Keys, Pacing, Place, Plan, Rate, Run, Schedule, Share, SoFar, Target,
};

use super::{LEVELS, PATIENCE, Phase, Show, WORK};
use crate::Problem;

/// How many callers there are of each level.
const CALLERS: u64 = 50;

/// Connections beyond what callers hold who all wait as long as they can, so that chance in the arrivals
/// finds room.
const SPARE: usize = 200;

/// A service, and the requests that are sent to it.
pub(super) struct Side {
    service: Service,
    run: Run,
}

/// What is seen while it goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// By level.
    pub(super) levels: [SoFar; 4],
    /// Requests that wait in the service at this moment.
    pub(super) waiting: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Right answers in time a second, in the flood.
    pub(super) goodput: f64,
    /// Which share of each level was served in the flood.
    pub(super) levels: [f64; 4],
    /// Of what was answered in the flood.
    pub(super) p99: Option<Duration>,
    /// Which share of all was served after the flood.
    pub(super) after: f64,
}

pub(super) fn service(show: &Show) -> io::Result<Service> {
    Service::start(&Spec::new(show.workers, Work::Fixed(WORK)))
}

impl Side {
    /// Begins to send, to the service itself or to what is before it.
    pub(super) fn start(show: &Show, service: Service, before: Option<SocketAddr>) -> Result<Self, Problem> {
        let target = before.unwrap_or_else(|| service.address());
        let run = plan(show, target).start()?;
        Ok(Self { service, run })
    }

    pub(super) fn began(&self) -> Instant {
        self.run.began()
    }

    pub(super) fn look(&self) -> Look {
        let mut levels = [SoFar::default(); 4];
        levels.iter_mut().zip(self.run.so_far()).for_each(|(level, so_far)| *level = so_far);
        Look { levels, waiting: self.service.served().waiting }
    }

    /// Waits for the last answers.
    pub(super) fn end(self, show: &Show) -> Seen {
        let attempts = self.run.wait().attempts;
        let end = show.before + show.flood;
        let (flood, after) = (show.before..end, end..show.length());
        let served = |level: usize| share(&attempts, &flood, |attempt| attempt.class == level);
        let in_time = attempts.iter().filter(|attempt| is_well(attempt) && flood.contains(&attempt.ended));
        Seen {
            goodput: in_time.count() as f64 / show.flood.as_secs_f64(),
            levels: [served(0), served(1), served(2), served(3)],
            p99: p99(&attempts, &flood),
            after: share(&attempts, &after, |_| true),
        }
    }
}

impl Look {
    /// What happened since an earlier look.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut levels = self.levels;
        levels.iter_mut().zip(&earlier.levels).for_each(|(level, earlier)| *level = level.since(earlier));
        Self { levels, waiting: self.waiting }
    }
}

/// Which share of what was due then, and is meant, was served.
fn share(attempts: &[Attempt], time: &Range<Duration>, is_meant: impl Fn(&Attempt) -> bool) -> f64 {
    let meant = attempts.iter().filter(|attempt| time.contains(&attempt.due) && is_meant(attempt));
    let (all, well) =
        meant.fold((0_u32, 0_u32), |(all, well), attempt| (all + 1, well + u32::from(is_well(attempt))));
    f64::from(well) / f64::from(all.max(1))
}

fn p99(attempts: &[Attempt], time: &Range<Duration>) -> Option<Duration> {
    let meant = attempts.iter().filter(|attempt| time.contains(&attempt.due) && is_well(attempt));
    let mut times: Vec<Duration> = meant.map(|attempt| attempt.ended.saturating_sub(attempt.due)).collect();
    let rank = (times.len() * 99).div_ceil(100).checked_sub(1)?;
    Some(*times.select_nth_unstable(rank).1)
}

fn is_well(attempt: &Attempt) -> bool {
    attempt.ending == AttemptEnding::Ok
}

fn plan(show: &Show, target: SocketAddr) -> Plan {
    let classes = LEVELS.map(|(name, share)| class(show, name, share)).into();
    let at_once = show.capacity() * Phase::Flood.load() * PATIENCE.as_secs_f64();
    Plan {
        classes,
        connections: whole(at_once) + SPARE,
        timeout: PATIENCE,
        keep: Keep::Attempts,
        ..Plan::new(Target::at(target), Schedule::new(Pacing::Poisson))
    }
}

fn class(show: &Show, name: &'static str, share: f64) -> Class {
    let rate = |phase: Phase| Rate::per_second(show.capacity() * phase.load() * share).unwrap_or(Rate::ZERO);
    let schedule = Schedule::new(Pacing::Poisson)
        .steady(rate(Phase::Before), show.before)
        .steady(rate(Phase::Flood), show.flood)
        .steady(rate(Phase::After), show.after);
    let level = HeaderValue::from_static(name);
    Class {
        share: Share::Own(schedule),
        keys: Some(Keys {
            place: Place::Header(HeaderName::from_static("x-api-key")),
            format: format!("{name}-%"),
            draw: Draw::Uniform { keys: CALLERS },
        }),
        headers: [(HeaderName::from_static("x-criticality"), level)].into_iter().collect(),
        ..Class::get(name, "/orders")
    }
}

/// How many seconds there are in as many seconds: the only sound way from a float to a whole number.
fn whole(number: f64) -> usize {
    let seconds = Duration::try_from_secs_f64(number).map_or(0, |time| time.as_secs());
    usize::try_from(seconds).unwrap_or(usize::MAX)
}
