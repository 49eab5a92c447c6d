//! What becomes of open charges when a state passes to another rule.

/// What the marks of one rule's charges are to the rule that has taken over their state.
///
/// A mark says where on its limiter's line a charge lies: in which window, at which moment. When windows get
/// another length, the count of the present one goes on in a window of the new rule, and so do the charges in it:
/// from minute 29 833 333 to hour 497 222. Those of earlier minutes had been forgotten already, and must not be
/// given back from what that hour counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    oldest: u64,
    newest: u64,
    /// Where all of them lie now; where they lay, if nowhere is named.
    now_at: Option<u64>,
}

impl Marks {
    /// They mean what they meant.
    pub const SAME: Self = Self { oldest: 0, newest: u64::MAX, now_at: None };

    /// Nobody can tell what they mean.
    pub const LOST: Self = Self { oldest: 1, newest: 0, now_at: None };

    /// From `oldest` on they mean what they meant; what earlier charges took counts no more.
    pub(crate) const fn since(oldest: u64) -> Self {
        Self { oldest, ..Self::SAME }
    }

    /// What was taken at `mark` lies at `now_at`; what others took counts no more.
    pub(crate) const fn moved(mark: u64, now_at: u64) -> Self {
        Self { oldest: mark, newest: mark, now_at: Some(now_at) }
    }

    /// The same for all marks that lie less than `length` before.
    pub(crate) const fn and_before(self, length: u64) -> Self {
        Self { oldest: (self.newest + 1).saturating_sub(length), ..self }
    }

    /// Where a charge with this mark lies now, if it still counts.
    pub(crate) fn of(self, mark: u64) -> Option<u64> {
        (self.oldest..=self.newest).contains(&mark).then(|| self.now_at.unwrap_or(mark))
    }
}
