//! The values everything else is told: moments, costs, quotas, ratios, rolls.
//!
//! Each of them is checked where it is made. A zero window or a negative cost cannot exist, so no
//! limiter has to ask.

mod cost;
mod criticality;
mod invalid;
mod moment;
mod quota;
mod ratio;
pub(crate) mod share;
mod time;
mod wall;

pub use cost::Cost;
pub use criticality::Criticality;
pub use invalid::Invalid;
pub use moment::Moment;
pub(crate) use moment::nanos_of;
pub(crate) use quota::LONGEST;
pub use quota::Quota;
pub use ratio::{Ratio, Roll};
pub use time::Time;
pub use wall::WallTime;
