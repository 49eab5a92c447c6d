//! Shedding: refusing the least important first, as much of it as must be and no more.
//!
//! A service that takes more than it can do does nothing well: everything waits, callers give up, and the
//! work done for them is wasted. Refusing at random saves the service and fails users at random. So requests
//! carry a [`Criticality`](crate::Criticality), and what has to go goes from below, in **strict order**: of a
//! level nothing is refused before all lower levels are refused entirely. Inside the level at the edge, whole
//! [cohorts](Cohort) of users go, the same at every service, so that those who pass, pass everywhere.
//!
//! Both together are one number, the [`Edge`]. Everything else here moves it or shows it:
//!
//! | what | does | when to use it |
//! |---|---|---|
//! | [`SharedEdge`] | answers requests, one load each | always |
//! | [`Steering`] | moves the edge within seconds, by flow and signals | overload of any kind |
//! | [`SlowRamp`] | moves it within minutes, by busy workers | pools of slow workers |
//! | [`Reserve`], [`ReservedPlaces`] | keeps places for critical requests | bursts, before any signal |
//!
//! A driver asks `SharedEdge` with each request, counts, and once a tick (500 ms) tells `Steering` what it
//! counted and publishes the edge it gets back. The edge can travel on responses, so that a caller refuses
//! by itself what would be refused anyway: the cheapest refusal is the one that is never sent.
//!
//! The walk of an overload: 1000 requests a second fit, 800 come and from 0 s on 1400, three in ten of them
//! sheddable. A tick is half a second, so 500 fit:
//!
//! | moment | entered | served | waiting | error | edge | of sheddable, refused                    |
//! |--------|---------|--------|---------|-------|------|------------------------------------------|
//! | 0 s    | 382     | 385    | 2       | −0.26 | 0    | none                                     |
//! | 0.5 s  | 689     | 500    | 35      | 0.36  | 0    | none: the head start                     |
//! | 1.5 s  | 700     | 500    | 53      | 0.40  | 35   | a quarter                                |
//! | 2 s    | 648     | 500    | 33      | 0.30  | 69   | more than half                           |
//! | 3.5 s  | 559     | 500    | 25      | 0.15  | 100  | three quarters                           |
//! | 6 s    | 509     | 491    | 0       | 0.02  | 105  | the last few ranks take ten seconds      |
//!
//! Meanwhile the queue keeps the wait short and serves the more critical first; shedding spares those who
//! would wait in vain the waiting, and the service the work of queueing them.
//!
//! Why the edge stays is told in [`Dimmer`] and [`Steering`]: it is what keeps shedding from flapping.

mod cohort;
mod dimmer;
mod edge;
mod flow;
mod mix;
mod ramp;
mod reserve;
mod shared;
mod steering;

pub use cohort::{Cohort, Epoch};
pub use dimmer::Dimmer;
pub use edge::Edge;
pub use flow::Flow;
pub use ramp::SlowRamp;
pub use reserve::{Reserve, ReservedPlaces};
pub use shared::SharedEdge;
pub use steering::{Steering, Tick};
