//! Chance that is the same in every run (splitmix64).

/// Draws numbers, beginning from a seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// From 0 up to but not including 1.
    pub(crate) fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
