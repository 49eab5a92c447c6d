//! Every request of a plan in the order of its moment, the same for the same seed.
//!
//! Classes with a weight share one schedule; each request of it goes to one of them by chance. A class with a
//! schedule of its own is a stream beside it. The streams are merged by time. Chance is drawn from a stream of
//! its own for each purpose, so that a class that is added changes nothing for the others' keys.

use std::time::Duration;

use crate::chance::Chance;
use crate::keys::Drawer;
use crate::plan::{Plan, Share};
use crate::schedule::Moments;

/// One request to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it is meant to be sent, counted from the start.
    pub due: Duration,
    /// Which class it belongs to, as an index.
    pub class: usize,
    /// The number of its key; 1 when the class has none.
    pub key: u64,
}

/// The requests of a plan, in order.
#[derive(Clone, Debug)]
pub struct Arrivals {
    streams: Vec<Stream>,
    pick: Chance,
    keys: Vec<(Drawer, Chance)>,
}

#[derive(Clone, Debug)]
struct Stream {
    next: Option<Duration>,
    moments: Moments,
    classes: Classes,
}

#[derive(Clone, Debug)]
enum Classes {
    One(usize),
    /// Classes with the running sum of their weights.
    Weighted(Vec<(usize, u64)>),
}

/// Streams of chance: one to pick classes; two for each class, after these; one for the plan's schedule.
const PICK: u64 = 0;
const SHARED: u64 = 1;
const FIRST_CLASS: u64 = 2;

impl Arrivals {
    pub(crate) fn new(plan: &Plan) -> Self {
        let class_chance = |class: usize, use_: u64| {
            Chance::stream(plan.seed, FIRST_CLASS + 2 * u64::try_from(class).unwrap_or(u64::MAX / 4) + use_)
        };
        let (mut streams, mut weighted, mut sum) = (Vec::new(), Vec::new(), 0);
        for (index, class) in plan.classes.iter().enumerate() {
            match &class.share {
                Share::Own(schedule) => {
                    let moments = Moments::new(schedule.clone(), class_chance(index, 0));
                    streams.push(Stream::new(moments, Classes::One(index)));
                }
                Share::Weight(weight) => {
                    sum += u64::from(*weight);
                    weighted.push((index, sum));
                }
            }
        }
        if !weighted.is_empty() {
            let moments = Moments::new(plan.schedule.clone(), Chance::stream(plan.seed, SHARED));
            streams.push(Stream::new(moments, Classes::Weighted(weighted)));
        }
        let keys = plan.classes.iter().enumerate().map(|(index, class)| {
            let drawer = class.keys.as_ref().map_or(Drawer::One, |keys| Drawer::new(keys.draw));
            (drawer, class_chance(index, 1))
        });
        Self { streams, pick: Chance::stream(plan.seed, PICK), keys: keys.collect() }
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let waiting = self.streams.iter_mut().filter(|stream| stream.next.is_some());
        let stream = waiting.min_by_key(|stream| stream.next)?;
        let due = stream.next?;
        stream.next = stream.moments.next();
        let class = match &stream.classes {
            Classes::One(class) => *class,
            Classes::Weighted(classes) => {
                let drawn = self.pick.below(classes.last()?.1);
                classes.get(classes.partition_point(|(_, sum)| *sum <= drawn))?.0
            }
        };
        let (drawer, chance) = self.keys.get_mut(class)?;
        Some(Arrival { due, class, key: drawer.draw(chance) })
    }
}

impl Stream {
    fn new(mut moments: Moments, classes: Classes) -> Self {
        Self { next: moments.next(), moments, classes }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::keys::{Draw, Exponent, Keys, Place};
    use crate::plan::Class;
    use crate::schedule::{Pacing, Rate, Schedule};
    use crate::target::Target;

    fn schedule(pacing: Pacing, rate: f64) -> Schedule {
        Schedule::new(pacing).steady(Rate::per_second(rate).unwrap(), Duration::from_secs(10))
    }

    fn plan(seed: u64) -> Plan {
        let place = Place::Header(HeaderName::from_static("x-api-key"));
        let draw = Draw::Zipf { keys: 1000, exponent: Exponent::new(1.1).unwrap() };
        let keys = Keys { place, format: "%".to_owned(), draw };
        let class = |name: &str, share| Class { share, keys: Some(keys.clone()), ..Class::get(name, "/") };
        let target = Target::at("127.0.0.1:1".parse().unwrap());
        let mut plan = Plan { seed, ..Plan::new(target, schedule(Pacing::Poisson, 1000.0)) };
        plan.classes = vec![
            class("three", Share::Weight(3)),
            class("one", Share::Weight(1)),
            class("own", Share::Own(schedule(Pacing::Even, 100.0))),
        ];
        plan
    }

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        let drawn = |seed| plan(seed).arrivals().unwrap().collect::<Vec<_>>();
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }

    #[test]
    fn a_class_more_changes_nothing_for_the_others() {
        let before: Vec<Arrival> = plan(7).arrivals().unwrap().filter(|arrival| arrival.class == 2).collect();
        let mut larger = plan(7);
        larger.classes.push(Class::get("new", "/"));
        let after: Vec<Arrival> = larger.arrivals().unwrap().filter(|arrival| arrival.class == 2).collect();
        assert_eq!(before, after);
    }

    #[test]
    fn classes_come_by_weight_or_by_their_own_schedule_and_in_order() {
        let arrivals: Vec<Arrival> = plan(7).arrivals().unwrap().collect();
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.due));
        let count = |class| arrivals.iter().filter(|arrival| arrival.class == class).count();
        assert!(count(0).abs_diff(7500) < 260, "{}", count(0));
        assert!(count(1).abs_diff(2500) < 150, "{}", count(1));
        assert_eq!(count(2), 1000);
    }
}
