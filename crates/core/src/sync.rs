//! The standard library's atomics and locks, or loom's when a loom test explores their interleavings.

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64},
    },
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64},
    },
    thread::yield_now,
};

use std::sync::PoisonError;
pub(crate) use std::sync::atomic::Ordering;

/// Locks, also after a panic elsewhere: every state behind our locks is valid between any two steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
