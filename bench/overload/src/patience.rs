//! Plays that prove nothing, played again.
//!
//! One that misses something while a hypervisor gave time to others is played again, as in the tests: a few times,
//! since a fault that shows now and then would otherwise be played until it does not, and as long as the patience
//! for a whole run lasts. Then it counts as it is, and the tables say so. What misses something on a machine that
//! was left alone counts at once. What the repeated plays missed is kept with the one that counts.
//!
//! The files ask for what only ours is made for, so the others nearly always miss something. If all drew on one
//! patience, they would use it up before ours plays.

use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::behind::Behind;
use crate::play::Play;

/// How often a play of ours is played again, as in the tests.
const MOST_FOR_OURS: usize = 4;

/// How often one of somebody else is: it misses something on a quiet machine too.
const MOST_FOR_PEERS: usize = 2;

/// How much time may still go by in plays that prove nothing, over all scenarios.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    ours: Duration,
    peers: Duration,
}

impl Patience {
    pub(crate) const USUAL: Self = Self { ours: Duration::from_mins(10), peers: Duration::from_mins(5) };

    pub(crate) const NONE: Self = Self { ours: Duration::ZERO, peers: Duration::ZERO };

    /// The first play that is evidence, or the last that there was patience for.
    pub(crate) fn evidence(
        &mut self,
        behind: &Behind,
        mut once: impl FnMut() -> Result<Play, Box<dyn Error>>,
    ) -> Result<Play, Box<dyn Error>> {
        let (left, most) = match behind {
            Behind::Nothing | Behind::Nginx | Behind::Envoy(_) => (&mut self.peers, MOST_FOR_PEERS),
            Behind::Ours(_) => (&mut self.ours, MOST_FOR_OURS),
        };
        let mut repeated = Vec::new();
        loop {
            let began = Instant::now();
            let play = once()?;
            let discarded = play.discarded().filter(|_| repeated.len() < most);
            let again = discarded.and_then(|discarded| Some((discarded, left.checked_sub(began.elapsed())?)));
            let Some((discarded, rest)) = again else { return Ok(Play { repeated, ..play }) };
            *left = rest;
            writeln!(io::stderr(), "again: {}; it missed: {}", discarded.why, discarded.missed.join("; "))?;
            repeated.push(discarded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::tests::play;
    use crate::play::Discarded;

    /// What comes of one that misses something each time, on a machine that is left alone after so many plays.
    fn after_disturbances(disturbances: usize, behind: &Behind, patience: &mut Patience) -> Play {
        let mut number = 0;
        let once = || {
            number += 1;
            let disturbance = (number <= disturbances).then(|| "stolen".to_owned());
            Ok(Play { disturbance, missed: vec![format!("G in play {number}")], ..play(behind.name(), 0.0) })
        };
        patience.evidence(behind, once).unwrap()
    }

    fn ours() -> Behind {
        Behind::Ours("o".into())
    }

    #[test]
    fn what_proves_nothing_is_played_until_it_does() {
        let play = after_disturbances(3, &ours(), &mut { Patience::USUAL });
        assert_eq!((play.repeated.len(), play.disturbance), (3, None));
    }

    #[test]
    fn what_repeated_plays_missed_is_kept_with_the_reason() {
        let play = after_disturbances(1, &ours(), &mut { Patience::USUAL });
        let discarded = Discarded { missed: vec!["G in play 1".to_owned()], why: "stolen".to_owned() };
        assert_eq!((play.repeated, play.missed), (vec![discarded], vec!["G in play 2".to_owned()]));
    }

    #[test]
    fn ours_is_played_again_four_times_and_a_peer_twice() {
        for (behind, most) in [(ours(), 4), (Behind::Nginx, 2)] {
            let play = after_disturbances(9, &behind, &mut { Patience::USUAL });
            assert_eq!((play.repeated.len(), play.disturbance.is_some()), (most, true));
        }
    }

    #[test]
    fn without_patience_it_counts() {
        let play = after_disturbances(3, &ours(), &mut { Patience::NONE });
        assert_eq!((play.repeated.len(), play.disturbance.is_some()), (0, true));
    }

    #[test]
    fn peers_use_up_no_patience_of_ours() {
        let mut patience = Patience { peers: Duration::ZERO, ..Patience::USUAL };
        assert_eq!(after_disturbances(1, &Behind::Nginx, &mut patience).repeated.len(), 0);
        assert_eq!(after_disturbances(1, &ours(), &mut patience).repeated.len(), 1);
    }

    #[test]
    fn what_misses_nothing_counts_though_it_was_disturbed() {
        let once = || Ok(Play { disturbance: Some("stolen".to_owned()), ..play("tidegate", 1.0) });
        let play = { Patience::USUAL }.evidence(&ours(), once).unwrap();
        assert_eq!(play.repeated, []);
    }
}
