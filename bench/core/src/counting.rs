//! The system allocator with a tally, to show bytes a key and decisions without allocation.
//!
//! It counts only while somebody asked it to. Otherwise two threads of a contender that allocates in
//! every decision would fight over our counters, and we would have slowed the peer we measure.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

/// What happened on the heap while something ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// How often memory was asked for, growing included.
    pub(crate) allocations: u64,
    /// Bytes asked for and not given back.
    pub(crate) live_bytes: i64,
}

/// Runs `work` and tells what it did to the heap. The result still lives when the bytes are read.
pub(crate) fn tally<T>(work: impl FnOnce() -> T) -> (T, Tally) {
    ALLOCATIONS.store(0, Ordering::SeqCst);
    LIVE_BYTES.store(0, Ordering::SeqCst);
    IS_COUNTING.store(true, Ordering::SeqCst);
    let result = work();
    IS_COUNTING.store(false, Ordering::SeqCst);
    let tally = Tally {
        allocations: ALLOCATIONS.load(Ordering::SeqCst),
        live_bytes: LIVE_BYTES.load(Ordering::SeqCst),
    };
    (result, tally)
}

struct Counting;

fn note(allocations: u64, taken: usize, given_back: usize) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        // Layouts never exceed `isize::MAX`, so the casts keep their values.
        LIVE_BYTES.fetch_add(taken as i64 - given_back as i64, Ordering::Relaxed);
        ALLOCATIONS.fetch_add(allocations, Ordering::Relaxed);
    }
}

// SAFETY: every call is handed to the system allocator unchanged; we only count beside it, without
// allocating.
#[expect(unsafe_code, reason = "GlobalAlloc is an unsafe trait, and only an allocator sees allocations")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 0);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 0);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(0, 0, layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size, layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_after_the_work_is_counted() {
        // Other tests allocate meanwhile, but nothing near as much; zeroed memory is never touched.
        let (vector, tally) = tally(|| std::hint::black_box(vec![0_u8; 1 << 30]));
        assert_eq!(vector.len(), 1 << 30);
        assert!(tally.allocations >= 1 && tally.live_bytes > 1 << 29, "{tally:?}");
    }
}
