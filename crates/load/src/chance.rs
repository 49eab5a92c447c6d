//! Random numbers from a seed: the same seed gives the same requests, on every machine.
//!
//! The generator is `SplitMix64` (Steele, Lea and Flood 2014): one word of state, good enough to draw keys and
//! gaps from, and not for secrets.

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    state: u64,
}

impl Chance {
    /// The stream with this number under this seed.
    pub(crate) fn stream(seed: u64, number: u64) -> Self {
        let mut chance = Self { state: seed ^ number.wrapping_mul(0xd134_2543_de82_ef95) };
        // Seeds that differ in one bit differ everywhere after one step.
        chance.state = chance.next();
        chance
    }

    /// A number in `[0, 1)` with 53 random bits, as many as an `f64` holds.
    pub(crate) fn share(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next() >> 11) as f64 * UNIT
    }

    /// One of `0..choices`, each as likely as the others.
    pub(crate) fn below(&mut self, choices: u64) -> u64 {
        // The upper half of a product; the lean towards some of them is below choices ÷ 2^64.
        let product = u128::from(self.next()) * u128::from(choices);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A waiting time of mean one with no memory: the gap between independent arrivals.
    pub(crate) fn exponential(&mut self) -> f64 {
        // `1 - share` is never zero, so its logarithm is finite.
        -(1.0 - self.share()).ln()
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The authors' reference code, started with the state 1234567.
    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut chance = Chance { state: 1_234_567 };
        assert_eq!([chance.next(), chance.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |seed, number| Chance::stream(seed, number).next();
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
    }

    #[test]
    fn shares_choices_and_waits_have_their_means() {
        const DRAWS: u32 = 100_000;
        let mut chance = Chance::stream(1, 1);
        let mean = |draw: &mut dyn FnMut() -> f64| (0..DRAWS).map(|_| draw()).sum::<f64>() / f64::from(DRAWS);
        let share = mean(&mut || chance.share());
        let choice = mean(&mut || chance.below(10) as f64);
        let wait = mean(&mut || chance.exponential());
        assert!((share - 0.5).abs() < 0.005, "{share}");
        assert!((choice - 4.5).abs() < 0.05, "{choice}");
        assert!((wait - 1.0).abs() < 0.02, "{wait}");
    }
}
