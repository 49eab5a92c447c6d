//! Counts by the tenth of a second in which something happened.

use std::ops::Range;
use std::time::Duration;

/// The length of a bin. Ten make the second over which recovery is judged.
pub const BIN: Duration = Duration::from_millis(100);

/// One `B` for each tenth of a second, from the start to the last that anything was counted in.
#[derive(Clone, Debug, Default)]
pub struct Bins<B>(Vec<B>);

impl<B: Default> Bins<B> {
    /// The bin of this moment.
    pub fn at(&mut self, at: Duration) -> &mut B {
        let index = bins_in(at);
        if index >= self.0.len() {
            self.0.resize_with(index + 1, B::default);
        }
        &mut self.0[index]
    }
}

impl<B> Bins<B> {
    /// All that begin in this stretch; there may be fewer than its length says.
    #[must_use]
    pub fn within(&self, time: &Range<Duration>) -> &[B] {
        let end = bins_in(time.end).min(self.0.len());
        &self.0[bins_in(time.start).min(end)..end]
    }

    /// All there are.
    #[must_use]
    pub fn all(&self) -> &[B] {
        &self.0
    }
}

/// How many whole bins fit into this time.
pub(crate) fn bins_in(time: Duration) -> usize {
    usize::try_from(time.as_nanos() / BIN.as_nanos()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_the_bins_that_begin_in_it() {
        let millis = Duration::from_millis;
        let mut bins = Bins::<u32>::default();
        for at in [0, 99, 100, 350] {
            *bins.at(millis(at)) += 1;
        }
        assert_eq!(bins.all(), [2, 1, 0, 1]);
        assert_eq!(bins.within(&(millis(100)..millis(300))), [1, 0]);
        assert_eq!(bins.within(&(millis(300)..millis(9000))), [1]);
        assert_eq!(bins.within(&(millis(8000)..millis(9000))), [0; 0]);
    }
}
