//! Which charges a state may give credit for.
//!
//! A charge is open while its request is. Meanwhile an operator may reset the counter, the key may lose its cell
//! and get another one, or a new rule may count in other windows. What the charge took is then gone, or lies
//! somewhere else; giving it back by its old mark would give back what others took. So a state has a **life**, a
//! number that its table never gives twice, and a charge says in which life it was taken. A quota of 10:
//!
//! | what happens         | life | used | answer                                      |
//! |----------------------|------|------|---------------------------------------------|
//! | ann takes 10         | 1    | 10   | a charge of life 1                          |
//! | an operator resets   | 2    | 0    |                                             |
//! | ann takes 10 again   | 2    | 10   | a charge of life 2                          |
//! | the first is refunded | 2   | 10   | nothing: what it took was forgotten before  |
//! | the second is refunded | 2  | 0    | ten                                         |
//!
//! A true cost above what was taken is owed in whichever life it is learnt.
//!
//! When a state passes to a rule that counts in other windows, a new life begins as well, and the state remembers
//! what became of the marks of the one before ([`Marks`]). It remembers one such change. A charge that is still
//! open after two of them gives nothing back.

use std::num::NonZeroU32;

use crate::rate::Marks;
use crate::sync::{AtomicU64, Ordering};
use crate::verdict::Charge;

/// Hands out the lives of one shell or table.
#[derive(Debug)]
pub(crate) struct Lives(AtomicU64);

/// The number of a life. It comes round after four thousand million lives, when none of the first can have a
/// charge open any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life(NonZeroU32);

impl Lives {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    #[expect(clippy::cast_possible_truncation, reason = "lives come round")]
    pub(crate) fn begin(&self) -> Life {
        // Relaxed: only that no number is given twice matters.
        let number = self.0.fetch_add(1, Ordering::Relaxed) as u32;
        Life(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }
}

impl Life {
    /// What charges of this life carry. Those that were made without a shell carry zero.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0.get()
    }
}

/// The life before the present one, when it ended because a rule with other windows took over.
#[derive(Debug)]
pub(crate) struct Before {
    life: Life,
    marks: Marks,
}

impl Before {
    /// What is kept of a life whose marks have become `marks`; nothing where none of them is known any more.
    pub(crate) fn of(life: Life, marks: Marks) -> Option<Box<Self>> {
        (marks != Marks::LOST).then(|| Box::new(Self { life, marks }))
    }

    /// The charge's mark as the present rule reads it, if it was made in that life and may still count.
    pub(crate) fn mark_of(&self, charge: &Charge) -> Option<u64> {
        if charge.life == self.life.number() { self.marks.of(charge.mark) } else { None }
    }
}
