use crate::keyed::Key;

/// A caller on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heavy {
    /// The key it is known by.
    pub key: Key,
    /// What it is called.
    pub name: Name,
    /// Its count, never too small.
    pub weight: u64,
    /// By how much the count may be too large.
    pub error: u64,
}

/// The first 48 bytes of a caller's name, cut between characters. Kept in place, so that recording
/// allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    length: u8,
    bytes: [u8; Self::LONGEST],
}

impl Name {
    const LONGEST: usize = 48;

    fn new(name: &str) -> Self {
        let end = name.floor_char_boundary(Self::LONGEST);
        let mut bytes = [0; Self::LONGEST];
        bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        Self { length: u8::try_from(end).unwrap_or(0), bytes }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

/// One list. Searched from end to end: for the few dozen places it has, faster than any map.
#[derive(Debug)]
pub(super) struct SpaceSaving {
    places: usize,
    entries: Vec<Heavy>,
}

impl SpaceSaving {
    pub(super) fn new(places: usize) -> Self {
        Self { places, entries: Vec::with_capacity(places) }
    }

    pub(super) fn add(&mut self, key: Key, name: &str, weight: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
            entry.weight = entry.weight.saturating_add(weight);
            return;
        }
        if self.entries.len() < self.places {
            self.entries.push(Heavy { key, name: Name::new(name), weight, error: 0 });
            return;
        }
        if let Some(lightest) = self.entries.iter_mut().min_by_key(|entry| entry.weight) {
            let error = lightest.weight;
            *lightest = Heavy { key, name: Name::new(name), weight: error.saturating_add(weight), error };
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Heavy> + '_ {
        self.entries.iter().copied()
    }

    pub(super) fn fade(&mut self) {
        self.entries.retain_mut(|entry| {
            (entry.weight, entry.error) = (entry.weight / 2, entry.error / 2);
            entry.weight > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_of_two_counts_as_in_the_example() {
        let mut list = SpaceSaving::new(2);
        for (key, name) in [(1, "ann"), (1, "ann"), (2, "bob"), (3, "cid"), (1, "ann")] {
            list.add(Key(key), name, 1);
        }
        let rows: Vec<_> = list.entries.iter().map(|e| (e.name.as_str(), e.weight, e.error)).collect();
        assert_eq!(rows, [("ann", 3, 0), ("cid", 2, 1)]);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let name = "ü".repeat(40);
        assert_eq!(Name::new(&name).as_str(), "ü".repeat(24));
    }

    proptest! {
        #[test]
        fn counts_are_never_too_small_and_the_heavy_are_never_missed(
            stream in prop::collection::vec((0_u64..30, 1_u64..10), 1..400),
            places in 1_usize..12,
        ) {
            let mut list = SpaceSaving::new(places);
            let mut truth = HashMap::<u64, u64>::new();
            for &(key, weight) in &stream {
                list.add(Key(key), "", weight);
                *truth.entry(key).or_default() += weight;
            }
            for entry in list.entries() {
                let weight = truth[&entry.key.0];
                prop_assert!(entry.weight >= weight && entry.weight - entry.error <= weight);
            }
            let total: u64 = truth.values().sum();
            for (key, weight) in truth {
                let is_heavy = weight > total / places as u64;
                prop_assert!(!is_heavy || list.entries().any(|entry| entry.key.0 == key));
            }
        }
    }
}
