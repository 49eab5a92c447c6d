//! Memory that the connections of a worker lend one another.
//!
//! A connection needs room to read and to write only while it is polled, and then no other connection of its worker
//! is. So each takes the room when it begins and puts it back when nothing of its own is left in it, and an idle
//! connection holds none. Room for fields goes from the request to its answer, and then to the next request; from one
//! that is refused, to the next at once.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::HeaderMap;
use tokio::io::{AsyncRead, ReadBuf};

/// How much is read at once: a head, with a small body behind it.
const INPUT: usize = 16 * 1024;

/// Larger ones are not kept.
const MOST_KEPT: usize = 32 * 1024;

/// How many fields there is room for at first: those of a small request, and what is added to it.
const FIELDS: usize = 12;

/// A map with room for more fields than this is not kept.
const MOST_FIELDS: usize = 50;

/// How many maps are kept: as many requests are at their upstream at once without a map of their own being made.
const MOST_MAPS: usize = 64;

thread_local! {
    static FOR_INPUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static FOR_OUTPUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static FOR_FIELDS: RefCell<Vec<HeaderMap>> = const { RefCell::new(Vec::new()) };
}

/// Room to read.
#[derive(Debug)]
pub(super) struct Input(Vec<u8>);

impl Input {
    pub(super) fn take() -> Self {
        let mut room = FOR_INPUT.take();
        if room.is_empty() {
            room = vec![0; INPUT];
        }
        Self(room)
    }

    /// Reads once; nothing comes of a stream that has ended.
    pub(super) fn poll_read<S>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>>
    where
        S: AsyncRead + Unpin,
    {
        let mut room = ReadBuf::new(&mut self.0);
        ready!(Pin::new(stream).poll_read(cx, &mut room))?;
        let count = room.filled().len();
        Poll::Ready(Ok(self.0.get(..count).unwrap_or_default()))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        FOR_INPUT.set(std::mem::take(&mut self.0));
    }
}

/// Room to write.
pub(super) fn take_output() -> Vec<u8> {
    FOR_OUTPUT.take()
}

/// Puts it back.
pub(super) fn keep_output(mut room: Vec<u8>) {
    if room.capacity() <= MOST_KEPT {
        room.clear();
        FOR_OUTPUT.set(room);
    }
}

/// Room for fields.
pub(super) fn take_fields() -> HeaderMap {
    FOR_FIELDS.with_borrow_mut(Vec::pop).unwrap_or_else(|| HeaderMap::with_capacity(FIELDS))
}

/// Puts it back.
pub(crate) fn keep_fields(mut fields: HeaderMap) {
    if !(FIELDS..=MOST_FIELDS).contains(&fields.capacity()) {
        return;
    }
    fields.clear();
    FOR_FIELDS.with_borrow_mut(|kept| {
        if kept.len() < MOST_MAPS {
            kept.push(fields);
        }
    });
}
