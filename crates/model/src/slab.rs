//! Numbered places for things that come and go by the million.
//!
//! A number holds an index and how often that place had been used before, so a time-out that fires
//! after its attempt has ended finds nothing, instead of the stranger who lives there now.

/// The number of one thing in a [`Slab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    index: u32,
    use_count: u32,
}

/// Things by number.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, thing: T) -> Id {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.1 = Some(thing);
            return Id { index, use_count: place.0 };
        }
        let index = u32::try_from(self.places.len()).expect("fewer than four billion at once");
        self.places.push((0, Some(thing)));
        Id { index, use_count: 0 }
    }

    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        let place = &self.places[id.index as usize];
        place.1.as_ref().filter(|_| place.0 == id.use_count)
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let place = &mut self.places[id.index as usize];
        place.1.as_mut().filter(|_| place.0 == id.use_count)
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<T> {
        let place = &mut self.places[id.index as usize];
        if place.0 != id.use_count {
            return None;
        }
        let thing = place.1.take()?;
        place.0 = place.0.wrapping_add(1);
        self.free.push(id.index);
        Some(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_number_does_not_find_the_new_inhabitant() {
        let mut slab = Slab::new();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"second"));
    }
}
