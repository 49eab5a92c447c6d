use std::fmt;

use super::{Moment, WallTime};

/// A reading of a clock: a [`Moment`], or a [`WallTime`] where the calendar counts.
pub trait Time: Copy + Ord + fmt::Debug {
    /// Nanoseconds since the clock's origin.
    fn nanos(self) -> u64;
}

impl Time for Moment {
    #[inline]
    fn nanos(self) -> u64 {
        self.nanos()
    }
}

impl Time for WallTime {
    #[inline]
    fn nanos(self) -> u64 {
        self.unix_nanos()
    }
}
