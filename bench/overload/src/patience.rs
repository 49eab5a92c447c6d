//! Plays that prove nothing, played again.
//!
//! One that a neighbour slowed down and that misses something is played again, as in the tests, as long as the
//! patience for a whole run lasts; then it counts as it is, and the tables say so. What misses something on a
//! machine that was left alone counts at once.

use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::behind::Behind;
use crate::play::Play;

/// How much time may go by in plays that prove nothing, over all scenarios.
pub(crate) const USUAL: Duration = Duration::from_mins(15);

/// How often a play of somebody else is played again. The generator can be late because of what it talks to,
/// as callers who give up open new connections, and that would go on until all patience is gone.
const MOST_FOR_PEERS: u32 = 2;

/// What is left of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    left: Duration,
}

impl Patience {
    pub(crate) const fn of(left: Duration) -> Self {
        Self { left }
    }

    /// The first play that is evidence, or the last that there was patience for.
    pub(crate) fn evidence(
        &mut self,
        behind: &Behind,
        mut once: impl FnMut() -> Result<Play, Box<dyn Error>>,
    ) -> Result<Play, Box<dyn Error>> {
        let most = match behind {
            Behind::Nothing | Behind::Nginx | Behind::Envoy(_) => MOST_FOR_PEERS,
            Behind::Ours(_) => u32::MAX,
        };
        let mut repeated = 0;
        loop {
            let began = Instant::now();
            let play = Play { repeated, ..once()? };
            if !play.proves_nothing() || repeated == most || !self.allows(began.elapsed()) {
                return Ok(play);
            }
            repeated += 1;
            writeln!(io::stderr(), "again: {}", play.disturbance.unwrap_or_default())?;
        }
    }

    fn allows(&mut self, time: Duration) -> bool {
        let left = self.left.checked_sub(time);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::tests::play;

    /// What comes of one that misses something each time, on a machine that is left alone the fourth time.
    fn after_three_disturbances(behind: &Behind, left: Duration) -> Play {
        let mut number = 0;
        let once = || {
            number += 1;
            let disturbance = (number <= 3).then(|| "stolen".to_owned());
            Ok(Play { disturbance, is_complete: false, ..play(behind.name(), 0.0) })
        };
        Patience::of(left).evidence(behind, once).unwrap()
    }

    #[test]
    fn what_proves_nothing_is_played_until_it_does() {
        let play = after_three_disturbances(&Behind::Ours("o".into()), USUAL);
        assert_eq!((play.repeated, play.disturbance), (3, None));
    }

    #[test]
    fn a_peer_is_played_again_twice() {
        let play = after_three_disturbances(&Behind::Nginx, USUAL);
        assert_eq!((play.repeated, play.disturbance.is_some()), (2, true));
    }

    #[test]
    fn without_patience_it_counts() {
        let play = after_three_disturbances(&Behind::Ours("o".into()), Duration::ZERO);
        assert_eq!((play.repeated, play.disturbance.is_some()), (0, true));
    }

    #[test]
    fn what_misses_nothing_counts_though_it_was_disturbed() {
        let once = || Ok(Play { disturbance: Some("stolen".to_owned()), ..play("tidegate", 1.0) });
        let play = Patience::of(USUAL).evidence(&Behind::Ours("o".into()), once).unwrap();
        assert_eq!(play.repeated, 0);
    }
}
