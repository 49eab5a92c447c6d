//! The same users at every service.
//!
//! When half of a level has to go, which half? Throwing a coin for each request is fair, and it is a
//! mistake. A page needs `k` answers from overloaded services; with a coin of `q` at each, it succeeds with
//! `q^k`, and everything done for the pages that fail is wasted. If the *same* users pass everywhere, it
//! succeeds with `q`:
//!
//! | passes at each | calls for a page | by coin | by user |
//! |----------------|------------------|---------|---------|
//! | 1/2            | 2                | 0.25    | 0.50    |
//! | 1/2            | 4                | 0.06    | 0.50    |
//! | 3/4            | 4                | 0.32    | 0.75    |
//!
//! So a user has a cohort from 0 to 127, a hash of who it is and of the hour, and the edge takes cohorts
//! from 0 upwards. The hash is the same in every process and every version: a seed of our own would
//! make different services pick different users. The hour is in it so that nobody is unlucky for long; it
//! is told by the driver, which may mix a secret into it that its fleet shares, so that users cannot
//! look for names that always pass.
//!
//! The user must be the one on whose behalf the work is done, carried along the chain, and not the
//! service that calls. Requests of no user get a cohort from whatever they have in common.
//!
//! Source: DAGOR (Zhou et al., "Overload Control for Scaling WeChat Microservices", SoCC 2018).

/// One of 128 groups of users that are served or refused alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cohort(u8);

/// The time for which cohorts stay as they are: the number of the hour, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Cohort {
    /// How many there are.
    pub const COUNT: u8 = 128;

    /// The cohort of a user in an epoch; the same in every process.
    ///
    /// ```
    /// use tidegate_core::shed::{Cohort, Epoch};
    ///
    /// assert_eq!(Cohort::of(b"ann", Epoch(1)), Cohort::of(b"ann", Epoch(1)));
    /// ```
    #[must_use]
    pub fn of(user: &[u8], epoch: Epoch) -> Self {
        // FNV-1a over the name, then the finaliser of splitmix64, since FNV alone leaves the upper bits
        // of short names alike.
        let name = user.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        let mixed = mix(name ^ mix(epoch.0));
        Self((mixed >> 57).try_into().unwrap_or(0))
    }

    /// Its number, from 0, the first to be refused, to 127.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// All of them, the first to be refused first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }
}

const fn mix(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    seed ^ (seed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shed::Edge;
    use crate::units::{Criticality, Ratio, Roll};

    const HOUR: Epoch = Epoch(497_222);

    fn users() -> impl Iterator<Item = String> {
        (0..20_000).map(|number| format!("user-{number}"))
    }

    /// The share of pages that succeed, each of which makes so many calls, by coin and by user.
    fn pages(refused: u16, calls: u64) -> (f64, f64) {
        let edge = Edge::new(2 * 128 + refused).unwrap();
        let loss = Ratio::new(f64::from(refused) / 128.0).unwrap();
        let (mut by_coin, mut by_user) = (0_u32, 0_u32);
        for (number, user) in (0_u64..).zip(users()) {
            let coin = |call| {
                #[expect(clippy::cast_precision_loss, reason = "53 bits are what a number from 0 to 1 has")]
                let share = (mix(number * calls + call) >> 11) as f64 / (1_u64 << 53) as f64;
                Roll::new(share).unwrap()
            };
            by_coin += u32::from((0..calls).all(|call| !coin(call).hits(loss)));
            let cohort = |_service| Cohort::of(user.as_bytes(), HOUR);
            by_user += u32::from((0..calls).all(|call| edge.admits(Criticality::Critical, cohort(call))));
        }
        (f64::from(by_coin) / 20_000.0, f64::from(by_user) / 20_000.0)
    }

    #[test]
    fn pages_succeed_as_in_the_example() {
        for (refused, calls, coin, user) in [(64, 2, 0.25, 0.5), (64, 4, 0.0625, 0.5), (32, 4, 0.316, 0.75)] {
            let (by_coin, by_user) = pages(refused, calls);
            assert!((by_coin - coin).abs() < 0.015 && (by_user - user).abs() < 0.015, "{by_coin} {by_user}");
        }
    }

    #[test]
    fn cohorts_are_alike_in_size_and_change_with_the_epoch() {
        let mut sizes = [0_u32; 128];
        let mut moved = 0_u32;
        for user in users() {
            let cohort = Cohort::of(user.as_bytes(), HOUR);
            sizes[usize::from(cohort.number())] += 1;
            moved += u32::from(cohort != Cohort::of(user.as_bytes(), Epoch(HOUR.0 + 1)));
        }
        // 156 expected in each, with a deviation of 12.5.
        assert!(sizes.iter().all(|size| (100..220).contains(size)), "{sizes:?}");
        assert!(moved > 19_700, "{moved}");
    }

    #[test]
    fn the_hash_is_for_ever() {
        // Other processes, other versions and other languages compute the same.
        let cohort = |user: &str| Cohort::of(user.as_bytes(), HOUR).number();
        assert_eq!([cohort(""), cohort("ann"), cohort("bob")], [30, 101, 80]);
    }
}
