//! A stream in memory: what comes is given, and what is written is kept.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::listen::left::Leaves;

#[derive(Debug, Default)]
pub(super) struct Given {
    pieces: VecDeque<Vec<u8>>,
    has_ended: bool,
    /// How many bytes were read.
    pub(super) read: usize,
    pub(super) written: Vec<u8>,
}

impl Given {
    pub(super) fn in_pieces(pieces: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        Self { pieces, ..Self::default() }
    }

    pub(super) fn at_once(bytes: &str) -> Self {
        Self::in_pieces([bytes.into()])
    }

    pub(super) fn by_byte(bytes: &str) -> Self {
        Self::in_pieces(bytes.bytes().map(|byte| vec![byte]))
    }

    pub(super) fn give(&mut self, bytes: &str) {
        if !bytes.is_empty() {
            self.pieces.push_back(bytes.into());
        }
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// How much has gone either way.
    pub(super) fn moved(&self) -> usize {
        self.read + self.written.len()
    }

    /// What was written, but for dates.
    pub(super) fn told(&self) -> String {
        let written = String::from_utf8(self.written.clone()).unwrap();
        written.split_inclusive("\r\n").filter(|line| !line.starts_with("date: ")).collect()
    }
}

impl AsyncRead for Given {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(mut piece) = self.pieces.pop_front() else {
            return if self.has_ended { Poll::Ready(Ok(())) } else { Poll::Pending };
        };
        let later = piece.split_off(piece.len().min(buf.remaining()));
        buf.put_slice(&piece);
        self.read += piece.len();
        if !later.is_empty() {
            self.pieces.push_front(later);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Given {
    fn poll_write(mut self: Pin<&mut Self>, _cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Leaves for Given {
    fn has_left(&self) -> bool {
        self.has_ended
    }
}
