//! How many may be in flight at once, found out while serving.
//!
//! A quota says how much comes in; it has to be right for the service, the machine and the day. What hurts
//! a service is how much it does *at once*, and by Little's law the two are one: in flight = throughput ·
//! latency. A limit on what is in flight needs no knowledge of costs, and when the service slows down, it
//! lets less in.
//!
//! The right limit is at the *knee*. A service of 20 workers that take 10 ms each:
//!
//! | in flight | throughput | latency | |
//! |-----------|------------|---------|---|
//! | 10        | 1000 a second | 10 ms | half of the workers are idle |
//! | 20        | 2000 a second | 10 ms | the knee |
//! | 40        | 2000 a second | 20 ms | twenty work, twenty wait |
//! | 400       | 2000 a second | 200 ms | callers give up, and their work is done for nobody |
//!
//! Nobody knows the knee, and it moves. So requests are measured, [windows](Window) of them close, a
//! [`LimitAlgorithm`] proposes a limit, the [`Controller`] holds it to what must hold for all, and
//! [`Adaptive`] lets threads take places and give them back.
//!
//! | algorithm | sees | choose it when |
//! |---|---|---|
//! | [`Fixed`] | nothing | the capacity is known and does not change |
//! | [`Aimd`] | refusals, timeouts | the service says when it is overloaded |
//! | [`Vegas`] | the queue inside the service | by default |
//! | [`Gradient`] | how much slower requests became | large limits that must move smoothly |
//!
//! | how adaptive limits failed elsewhere | here |
//! |---|---|
//! | every response takes the timeout, so nothing is slower than before, and the limit climbs (NCL#137) | an absolute [`Objective`]; and what callers did not wait for proves nothing, see [`Controller`] |
//! | one lucky request sets the baseline for ever (NCL#37) | medians of windows, see [`Baseline`] |
//! | the flood is there first, and its queue becomes the baseline | the first requests of a burst found nobody, see [`Window::unloaded`] |
//! | a probe during an overload takes the queue for the baseline (NCL#165) | it rises only on proof |
//! | probing for the baseline refuses requests (envoy#8337) | a probe lets *more* in, for one window |
//! | samples from before a change are held against the limit after it (envoy#11579) | see [`Adaptive`] |
//! | a slow dependency looks like overload, and the limit collapses (NCL#171) | [`Surroundings`] |
//! | overloaded answers are ignored (NCL#176) | every adaptive algorithm shrinks |
//! | fast error pages teach that the service is fast | only successes have a latency, see [`Window`] |
//! | the limit climbs while nobody uses it, and is no limit when the flood comes | it holds |
//! | after a cold start it refuses for many seconds what the service could do (vector#3255) | it doubles until the first trouble |
//! | guaranteed shares add up to twice the limit | [`Shares`] never exceed it |

mod adaptive;
mod aimd;
mod algorithm;
mod baseline;
mod bounds;
mod change;
mod controller;
mod crowds;
mod fixed;
mod gradient;
mod histogram;
mod payoff;
mod probe;
mod shares;
mod start;
mod taken;
mod vegas;
mod window;

pub use adaptive::Adaptive;
pub use aimd::Aimd;
pub use algorithm::{LimitAlgorithm, Proposal, Reading};
pub use baseline::Baseline;
pub use bounds::{Bounds, MOST_PLACES, Objective, Surroundings};
pub use change::{Change, Why};
pub use controller::Controller;
pub use fixed::Fixed;
pub use gradient::Gradient;
pub use shares::Shares;
pub use vegas::{Vegas, VegasState};
pub use window::{Gathering, Latency, Sample, Window, Windowing};
