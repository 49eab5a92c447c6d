//! Random numbers from a seed: the same seed gives the same run, on every machine.
//!
//! Each part of a model draws from a stream of its own. A protected service that rolls dice for its
//! shedder therefore sees exactly the arrivals and costs that the unprotected one saw, and the two runs
//! differ in nothing but the protection.
//!
//! The generator is xoshiro256++ (Blackman and Vigna 2018), its state filled by `SplitMix64`, as its authors
//! advise. It is not for secrets.

use std::time::Duration;

use tidegate_core::Roll;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Chance {
    state: [u64; 4],
}

impl Chance {
    /// The stream with this number under this seed.
    #[must_use]
    pub fn stream(seed: u64, number: u64) -> Self {
        let mut filler = seed ^ number.wrapping_mul(0xd134_2543_de82_ef95);
        Self { state: [(); 4].map(|()| split_mix(&mut filler)) }
    }

    /// A number in `[0, 1)` with 53 random bits, as many as an `f64` holds.
    pub fn share(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next() >> 11) as f64 * UNIT
    }

    /// The same as the core wants it.
    ///
    /// # Panics
    /// Never: a share is what a roll may be.
    pub fn roll(&mut self) -> Roll {
        Roll::new(self.share()).expect("a share is at least 0 and below 1")
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// One of `0..choices`, each as likely as the others.
    pub fn below(&mut self, choices: u32) -> u32 {
        // The upper half of a product of 32 bits each; the lean towards some of them is below 2^-32.
        let product = (self.next() >> 32) * u64::from(choices);
        u32::try_from(product >> 32).unwrap_or(0)
    }

    /// A waiting time of this mean with no memory: the gap between independent arrivals.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // `1 - share` is never zero, so its logarithm is finite.
        mean.mul_f64(-(1.0 - self.share()).ln())
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let drawn = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        drawn
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The authors' reference code, started with the state 1, 2, 3, 4.
    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut chance = Chance { state: [1, 2, 3, 4] };
        let drawn = [(); 5].map(|()| chance.next());
        let published =
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205];
        assert_eq!(drawn, published);
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
        let choice = mean(&mut || f64::from(chance.below(10)));
        let wait = mean(&mut || chance.exponential(Duration::from_millis(10)).as_secs_f64());
        assert!((share - 0.5).abs() < 0.005, "{share}");
        assert!((choice - 4.5).abs() < 0.05, "{choice}");
        assert!((wait - 0.01).abs() < 0.000_2, "{wait}");
    }
}
