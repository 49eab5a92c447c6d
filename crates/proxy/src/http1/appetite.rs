//! How much of a body is read at once, where whoever reads it has little room; and how much is kept of what was read and not given on.

use std::cell::Cell;

thread_local! {
    static ROOM: Cell<usize> = const { Cell::new(usize::MAX) };
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Does something within which no more than this is read at once.
pub(crate) fn limited<T>(room: usize, something: impl FnOnce() -> T) -> T {
    let before = ROOM.replace(room);
    let done = something();
    ROOM.set(before);
    done
}

/// How much may be read at once.
pub(crate) fn room() -> usize {
    ROOM.get()
}

/// So much is kept for what was read and not given on.
pub(crate) fn leave(size: usize) {
    LEFT.set(size);
}

/// How much is kept for what was read and not given on by the body that was asked last.
pub(crate) fn left() -> usize {
    LEFT.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_limit_within_and_none_behind() {
        limited(4, || {
            assert_eq!(limited(2, room), 2);
            assert_eq!(room(), 4);
        });
        assert_eq!(room(), usize::MAX);
    }
}
