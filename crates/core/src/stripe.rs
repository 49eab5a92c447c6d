//! Which part a thread writes of what is spread out.
//!
//! What every thread writes is one cache line that travels from core to core, up to a hundred nanoseconds each time. So
//! it is kept in parts, each on a line of its own, and a thread writes to the part it was given when it first came by;
//! whoever wants the whole adds up the parts. With four parts the first thread writes to part 0, the second to 1 and the
//! fifth to 0 again. Which part it is can be seen in no answer.

use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// This thread's part, of so many. A thread that is about to end, and has lost what it knew, writes to the first.
#[inline]
#[must_use]
pub fn own(parts: usize) -> usize {
    OWN.try_with(|own| *own).unwrap_or(0).checked_rem(parts).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_part_and_the_next_has_another() {
        let (first, second) = std::thread::spawn(|| {
            let first = own(1 << 20);
            (first, std::thread::spawn(|| own(1 << 20)).join().unwrap())
        })
        .join()
        .unwrap();
        assert!(first < second);
        assert_eq!(own(1 << 20), own(1 << 20));
        assert!(own(4) < 4);
        assert_eq!((own(1), own(0)), (0, 0));
    }
}
