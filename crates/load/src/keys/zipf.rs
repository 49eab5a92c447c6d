//! Zipf's law, drawn in constant time and without a table.
//!
//! The simplest way is a table of running sums and a search in it: eight bytes for each key, and twenty steps for a
//! million. Rejection-inversion needs neither. Draw from a curve that is easy to invert and lies above the
//! bars `1 / k^s`, round to the nearest bar, and draw again in the rare case that the point lies beside it.
//!
//! With `h(x) = x^-s` and its integral `H`, a point `u` drawn evenly from the area `H(1.5) − 1 … H(n + ½)`
//! becomes `x = H⁻¹(u)` and `k` = `x` rounded. The bar of `k` reaches from `H(k + ½) − h(k)` to `H(k + ½)`; since `h` is
//! convex, this is never more than the curve has there. Most draws are accepted without computing a power at
//! all, because `k − x` is below a bound that holds for every bar.
//!
//! W. Hörmann and G. Derflinger, *Rejection-inversion to generate variates from monotone discrete distributions*,
//! ACM TOMACS 6(3), 1996.

use crate::chance::Chance;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    keys: u64,
    exponent: f64,
    /// `H(1.5) − 1`: the first bar is cut off at the curve.
    first: f64,
    /// `H(n + ½)`.
    last: f64,
    /// A point no further right of its bar's middle than this is under the bar.
    surely: f64,
}

impl Zipf {
    /// One of `keys` in proportion to `1 / k^exponent`; the exponent is above 0.
    pub(crate) fn new(keys: u64, exponent: f64) -> Self {
        let mut zipf = Self { keys, exponent, first: 0.0, last: 0.0, surely: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(keys as f64 + 0.5);
        zipf.surely = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.bar(2.0));
        zipf
    }

    pub(crate) fn draw(&self, chance: &mut Chance) -> u64 {
        loop {
            let point = self.last + chance.share() * (self.first - self.last);
            let x = self.inverse(point);
            let key = nearest(x).clamp(1, self.keys);
            let middle = key as f64;
            if middle - x <= self.surely || point >= self.integral(middle + 0.5) - self.bar(middle) {
                return key;
            }
        }
    }

    /// `x^-s`.
    fn bar(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// `H(x) = (x^(1-s) − 1) / (1 − s)`, which is `ln x` at s = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        log * if power.abs() > 1e-8 { power.exp_m1() / power } else { 1.0 + power / 2.0 }
    }

    /// The `x` with `H(x) = area`.
    fn inverse(&self, area: f64) -> f64 {
        // Rounding may take it a hair below -1, where the logarithm ends.
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        (area * if power.abs() > 1e-8 { power.ln_1p() / power } else { 1.0 - power / 2.0 }).exp()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of floats saturates")]
fn nearest(x: f64) -> u64 {
    x.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each key comes in a million draws, beside how often it should.
    fn compared(keys: u32, exponent: f64) -> Vec<(f64, f64)> {
        const DRAWS: f64 = 1e6;
        let zipf = Zipf::new(keys.into(), exponent);
        let mut chance = Chance::stream(5, 1);
        let mut drawn = vec![0.0; keys as usize];
        (0..1_000_000).for_each(|_| drawn[usize::try_from(zipf.draw(&mut chance)).unwrap() - 1] += 1.0);
        let weights: Vec<f64> = (1..=keys).map(|key| f64::from(key).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        drawn.into_iter().zip(weights.into_iter().map(|weight| weight / sum * DRAWS)).collect()
    }

    #[test]
    fn every_key_comes_as_often_as_the_law_says() {
        for exponent in [0.5, 0.99, 1.0, 1.1, 2.0] {
            for (drawn, expected) in compared(100, exponent) {
                // Four and a half standard deviations: one key in a hundred thousand is further off.
                let tolerance = 4.5 * expected.sqrt();
                assert!((drawn - expected).abs() < tolerance, "{exponent}: {drawn} for {expected}");
            }
        }
    }

    #[test]
    fn few_keys_carry_most_of_the_traffic() {
        let top: f64 = compared(10_000, 1.1)[..100].iter().map(|(drawn, _)| drawn).sum();
        // The sum of the law's first hundred shares is 0.648.
        assert!((top / 1e6 - 0.648).abs() < 0.003, "{top}");
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut chance = Chance::stream(5, 2);
        for (keys, exponent) in [(1, 1.1), (2, 20.0), (1 << 40, 0.01), (1 << 40, 1.0), (3, 1e-9)] {
            let zipf = Zipf::new(keys, exponent);
            assert!((0..1000).all(|_| (1..=keys).contains(&zipf.draw(&mut chance))), "{keys} {exponent}");
        }
    }
}
