//! Turns that a hypervisor disturbed, taken again.
//!
//! A virtual machine's core may be given to somebody else's for milliseconds, and whoever has the turn just then is
//! measured too slow. The kernel counts that time as stolen, in hundredths of a second. A turn in which the count moved
//! says more about the neighbours than about the contender, so it is taken again, as long as the patience for a whole
//! run lasts. After that it counts as it is, and the tables say how often that happened.

use std::error::Error;
use std::time::{Duration, Instant};

use tidegate_load::machine::CoreTime;

/// How much time a run may spend on turns that do not count.
pub struct Patience {
    left: Duration,
    again: usize,
    kept: usize,
}

impl Patience {
    /// This much time for a whole run.
    pub const fn of(left: Duration) -> Self {
        Self { left, again: 0, kept: 0 }
    }

    /// What comes of `turn` when it is left alone, or when patience ends.
    pub fn undisturbed<T>(
        &mut self,
        turn: impl FnMut() -> Result<T, Box<dyn Error>>,
    ) -> Result<T, Box<dyn Error>> {
        self.until_still(|| Ok(CoreTime::so_far()?.stolen), turn)
    }

    fn until_still<T>(
        &mut self,
        mut stolen: impl FnMut() -> Result<Duration, Box<dyn Error>>,
        mut turn: impl FnMut() -> Result<T, Box<dyn Error>>,
    ) -> Result<T, Box<dyn Error>> {
        loop {
            let (began, before) = (Instant::now(), stolen()?);
            let found = turn()?;
            if stolen()? == before {
                return Ok(found);
            }
            let Some(left) = self.left.checked_sub(began.elapsed()) else {
                self.kept += 1;
                return Ok(found);
            };
            self.left = left;
            self.again += 1;
        }
    }

    /// What a reader should know of it, as a sentence.
    pub fn told(&self) -> String {
        let Self { again, kept, .. } = self;
        format!(
            "Turns taken again because a hypervisor took time away: {again}; counted although it did: {kept}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which turn counts when the first two are stolen from.
    fn after_two_thefts(patience: &mut Patience) -> u64 {
        let mut readings = [0, 3, 3, 4, 4, 4].map(Duration::from_millis).into_iter();
        let mut turns = 1..;
        let stolen = || readings.next().ok_or_else(|| "read too often".into());
        patience.until_still(stolen, || turns.next().ok_or_else(|| "unreachable".into())).unwrap()
    }

    #[test]
    fn a_disturbed_turn_is_taken_again() {
        let mut patience = Patience::of(Duration::from_mins(1));
        assert_eq!(after_two_thefts(&mut patience), 3);
        assert!(patience.told().ends_with("away: 2; counted although it did: 0."));
    }

    #[test]
    fn without_patience_it_counts_and_is_told() {
        let mut patience = Patience::of(Duration::ZERO);
        assert_eq!(after_two_thefts(&mut patience), 1);
        assert!(patience.told().ends_with("away: 0; counted although it did: 1."));
    }
}
