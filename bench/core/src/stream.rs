//! Which key comes next: long precomputed streams of ids, so that no contender pays for chance.

/// How the requests are spread over the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Every key equally often.
    Uniform,
    /// The key of rank `r` in proportion to `1 / r`, as web traffic roughly is.
    Zipf,
}

impl Spread {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "Zipf",
        }
    }
}

/// A fixed sequence of ids that slices are cut from.
pub(crate) struct Stream {
    ids: Vec<u64>,
    slice: usize,
}

/// Slices before the stream begins again. Ten slices of 400 000 visit nearly all of a million keys,
/// so that a slice does not find its keys in the cache from the slice before.
const SLICES: usize = 10;

impl Stream {
    pub(crate) fn new(spread: Spread, keys: usize, slice: usize) -> Self {
        let mut chance = XorShift(0x9E37_79B9_7F4A_7C15);
        let count = SLICES * slice;
        let ids = match spread {
            Spread::Uniform => (0..count).map(|_| id(chance.below(keys))).collect(),
            Spread::Zipf => {
                let zipf = Zipf::new(keys);
                (0..count).map(|_| id(zipf.rank(chance.unit()))).collect()
            }
        };
        Self { ids, slice }
    }

    /// The slice with this number, beginning again after the last.
    pub(crate) fn slice(&self, number: usize) -> &[u64] {
        let start = number % SLICES * self.slice;
        &self.ids[start..start + self.slice]
    }
}

/// The id of the key with this index: scattered (the finaliser of SplitMix64, which is one to one), so that
/// no table profits from ids that happen to be consecutive.
pub(crate) fn id(index: usize) -> u64 {
    let mut id = (index as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    id = (id ^ (id >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    id = (id ^ (id >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    id ^ (id >> 31)
}

/// The same id as text, for contenders that take nothing else: 16 characters, like a short token.
pub(crate) fn text(id: u64) -> String {
    format!("{id:016x}")
}

/// Marsaglia's xorshift64: good enough to choose keys, and the same on every machine.
struct XorShift(u64);

impl XorShift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number in `[0, 1)` with 53 random bits.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        usize::try_from(wide >> 64).expect("below bound, which is a usize")
    }
}

/// Zipf's law with exponent one, drawn exactly by searching its cumulated weights.
struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    fn new(keys: usize) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=keys).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self { cumulated: cumulated.collect() }
    }

    fn rank(&self, unit: f64) -> usize {
        let target = unit * self.cumulated.last().copied().unwrap_or(0.0);
        self.cumulated.partition_point(|&sum| sum <= target).min(self.cumulated.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_stream_visits_every_key_about_equally() {
        let stream = Stream::new(Spread::Uniform, 4, 10_000);
        for index in 0..4 {
            let visits = stream.ids.iter().filter(|&&seen| seen == id(index)).count();
            assert!((24_000..26_000).contains(&visits), "{visits} of 100 000");
        }
    }

    #[test]
    fn in_a_zipf_stream_the_second_key_comes_half_as_often_as_the_first() {
        let stream = Stream::new(Spread::Zipf, 1_000, 10_000);
        let visits = |index| stream.ids.iter().filter(|&&seen| seen == id(index)).count();
        // The sum of 1 / r to 1 000 is 7.485, so the first key is 13.4 % of all.
        assert!((12_900..13_900).contains(&visits(0)), "{}", visits(0));
        assert!((6_400..7_000).contains(&visits(1)), "{}", visits(1));
    }

    #[test]
    fn slices_begin_again_after_the_last() {
        let stream = Stream::new(Spread::Uniform, 1_000, 100);
        assert_eq!(stream.slice(3), stream.slice(13));
        assert_ne!(stream.slice(3), stream.slice(4));
    }
}
