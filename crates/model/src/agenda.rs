//! What is going to happen, in order.
//!
//! A heap of (moment, number, event). The number counts the entries, so two events of the same moment
//! happen in the order in which they were noted; without it their order would be the heap's business and
//! a change of its code would change every result.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tidegate_core::Moment;

/// Events to come. The earliest is handed out first; of one moment, the one noted first.
#[derive(Debug)]
pub struct Agenda<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    noted: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Moment,
    number: u64,
    event: E,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { entries: BinaryHeap::new(), noted: 0 }
    }
}

impl<E> Agenda<E> {
    /// Notes that `event` happens `at` this moment.
    pub fn note(&mut self, at: Moment, event: E) {
        self.entries.push(Reverse(Entry { at, number: self.noted, event }));
        self.noted += 1;
    }

    /// The next event and its moment.
    pub fn pop(&mut self) -> Option<(Moment, E)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }

    /// How many events were ever noted.
    #[must_use]
    pub const fn noted(&self) -> u64 {
        self.noted
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_happen_in_the_order_they_were_noted() {
        let mut agenda = Agenda::default();
        let (soon, later) = (Moment::from_nanos(5), Moment::from_nanos(9));
        agenda.note(later, "last");
        for event in ["first", "second", "third"] {
            agenda.note(soon, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop()).collect();
        assert_eq!(order, [(soon, "first"), (soon, "second"), (soon, "third"), (later, "last")]);
        assert_eq!(agenda.noted(), 4);
    }
}
