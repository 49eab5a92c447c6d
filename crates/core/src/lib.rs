//! The small machines that decide: may this request pass now, and if not, when?
//!
//! Nothing here reads a clock, draws a random number or waits. The caller tells every machine the
//! [`Moment`] and reads the [`Verdict`]. That is why a test of a day's traffic is plain arithmetic,
//! and why the same code answers live requests and replayed logs.
//!
//! | to find | look in |
//! |---|---|
//! | moments, costs, quotas, ratios | [`units`] |
//! | what an answer looks like | [`verdict`], [`permit`] |
//! | the algorithms, each a plain step over plain state | [`rate`] |
//! | one counter shared by threads | [`shell`] |
//! | a counter for each of millions of keys | [`keyed`] |
//! | one request over several limiters | [`together`] |
//! | who costs most, who is refused most | [`heavy`] |
//! | how many may be in flight, found out while serving | [`concurrency`] |
//! | whether calling a dependency makes sense now | [`breaker`], [`throttle`] |
//! | whether, when and how often to try again | [`mod@retry`] |
//! | how long to wait for an answer | [`timeout`] |
//! | who waits, who is served next, who leaves unserved | [`queue`] |
//! | how loaded the service is | [`signal`] |
//! | whom to refuse when it is too much | [`shed`] |
//! | which part a thread writes of what is spread out | [`stripe`] |

pub mod breaker;
pub mod concurrency;
pub mod heavy;
pub mod keyed;
pub mod permit;
pub mod queue;
pub mod rate;
pub mod retry;
pub mod shed;
pub mod shell;
pub mod signal;
pub mod stripe;
mod sync;
mod tally;
pub mod throttle;
pub mod timeout;
pub mod together;
pub mod units;
pub mod verdict;

pub use units::{Cost, Criticality, Invalid, Moment, Quota, Ratio, Roll, WallTime};
pub use verdict::{Charge, Reason, Refusal, Retry, Usage, Verdict};
