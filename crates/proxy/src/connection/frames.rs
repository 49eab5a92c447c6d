//! Where in the frames of HTTP/2 a connection has come to (RFC 9113 section 4).
//!
//! The server tells of whole requests and of whole frames of data. Half a frame it waits for, as long as its peer likes:
//! half a preface, nine bytes that promise sixteen thousand, a head that goes on in CONTINUATION frames of which the last
//! never comes. So the bytes are followed on their way, by the lengths of the frames alone:
//!
//! | what came                                     | is unfinished |
//! |-----------------------------------------------|---------------|
//! | part of the preface, or not all settings      | like a head   |
//! | part of a frame, or of its nine bytes         | like a head, but DATA |
//! | HEADERS without `END_HEADERS`                 | like a head, until the CONTINUATION that has it |
//! | whole frames                                  | nothing       |

use std::collections::VecDeque;

/// What a connection begins with, before the first frame.
const PREFACE: usize = 24;

/// What a frame begins with.
const BEGIN: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;
const END_STREAM: u8 = 0x1;

/// What has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// The preface, a head, or a frame that says something about the connection.
    Head,
    /// A frame of DATA.
    Data,
}

/// How far the bytes of a connection have come.
#[derive(Debug)]
pub(super) struct Frames {
    /// How much of the preface, or of the frame in hand, is still to come.
    left: usize,
    /// The first bytes of a frame, as far as they have come.
    begin: [u8; BEGIN],
    begun: usize,
    is_data: bool,
    /// Whether a head goes on in the next frame.
    is_open: bool,
    /// The highest stream that was opened.
    last_stream: u32,
    reset: Reset,
    counts: Counts,
}

/// How many streams that were reset are remembered: as many as a connection may have at once, and a few.
const REMEMBERED: usize = 256;

/// Streams that were reset lately. A side that has forgotten what it reset does so again for all that is still on its way
/// to it, which is no fault of its.
#[derive(Debug, Default)]
struct Reset(VecDeque<u32>);

impl Reset {
    /// Whether a stream is reset for the first time.
    fn is_new(&mut self, stream: u32) -> bool {
        if self.0.contains(&stream) {
            return false;
        }
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(stream);
        true
    }
}

/// What was seen since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Streams that were reset.
    pub(super) reset: u64,
    /// Streams that came to their end.
    pub(super) ended: u64,
}

impl Default for Frames {
    fn default() -> Self {
        // Behind the preface come settings, so that a connection that has sent no more is within something.
        Self { left: PREFACE, is_open: true, ..Self::answering() }
    }
}

impl Frames {
    /// Those of the side that answers, which has no preface.
    pub(super) const fn answering() -> Self {
        let counts = Counts { reset: 0, ended: 0 };
        Self {
            left: 0,
            begin: [0; BEGIN],
            begun: 0,
            is_data: false,
            is_open: false,
            last_stream: 0,
            reset: Reset(VecDeque::new()),
            counts,
        }
    }

    /// What was seen since it was last asked.
    pub(super) const fn counts(&mut self) -> Counts {
        std::mem::replace(&mut self.counts, Counts { reset: 0, ended: 0 })
    }

    /// The highest stream that was opened.
    pub(super) const fn last_stream(&self) -> u32 {
        self.last_stream
    }

    /// Follows bytes that came; whether something ended within them.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> bool {
        let mut has_passed = false;
        while !bytes.is_empty() {
            if self.left > 0 {
                let here = self.left.min(bytes.len());
                self.left -= here;
                bytes = bytes.get(here..).unwrap_or_default();
            } else {
                let wanted = BEGIN - self.begun;
                let (here, rest) = bytes.split_at(wanted.min(bytes.len()));
                if let Some(room) = self.begin.get_mut(self.begun..self.begun + here.len()) {
                    room.copy_from_slice(here);
                }
                self.begun += here.len();
                bytes = rest;
                if self.begun == BEGIN {
                    self.open();
                }
            }
            has_passed |= self.unfinished().is_none();
        }
        has_passed
    }

    /// The nine bytes of a frame are there.
    fn open(&mut self) {
        let [a, b, c, kind, flags, stream @ ..] = self.begin;
        self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.begun = 0;
        self.is_data = kind == DATA;
        match kind {
            HEADERS => self.last_stream = self.last_stream.max(u32::from_be_bytes(stream) & (u32::MAX >> 1)),
            RST_STREAM => self.counts.reset += u64::from(self.reset.is_new(u32::from_be_bytes(stream))),
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            self.counts.ended += 1;
        }
        // A head that is open stays so through whatever is sent instead of its rest, which the server refuses.
        self.is_open = match kind {
            HEADERS | CONTINUATION => flags & END_HEADERS == 0,
            _ => false,
        };
    }

    /// What is to come before a frame has come as a whole.
    pub(super) const fn unfinished(&self) -> Option<Unfinished> {
        if self.is_open || self.begun > 0 {
            Some(Unfinished::Head)
        } else if self.left == 0 {
            None
        } else if self.is_data {
            Some(Unfinished::Data)
        } else {
            Some(Unfinished::Head)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let size = u32::try_from(length).unwrap().to_be_bytes();
        [&size[1..], &[kind, flags, 0, 0, 0, 1], &vec![0; length]].concat()
    }

    /// A connection that has sent its preface and no settings.
    fn begun() -> Frames {
        let mut frames = Frames::default();
        assert!(!frames.take(&[b'P'; PREFACE]));
        assert!(frames.take(&frame(4, 0, 6)));
        frames
    }

    #[test]
    fn a_preface_is_unfinished_until_the_settings_behind_it() {
        let mut frames = Frames::default();
        for _ in 0..PREFACE + BEGIN - 1 {
            assert!(!frames.take(&[0]));
            assert_eq!(frames.unfinished(), Some(Unfinished::Head));
        }
        assert!(frames.take(&[0]), "settings may be empty");
        assert_eq!(frames.unfinished(), None);
    }

    #[test]
    fn a_head_is_unfinished_until_its_last_frame() {
        let mut frames = begun();
        for part in [frame(HEADERS, 0, 5), frame(CONTINUATION, 0, 5), frame(CONTINUATION, 0, 0)] {
            assert!(!frames.take(&part));
            assert_eq!(frames.unfinished(), Some(Unfinished::Head));
        }
        assert!(frames.take(&frame(CONTINUATION, END_HEADERS, 1)));
        assert_eq!(frames.unfinished(), None);
    }

    #[test]
    fn resets_and_ends_are_counted() {
        let mut frames = Frames::answering();
        let framed = |kind, flags, length| frame(kind, flags, length);
        assert!(frames.take(
            &[framed(HEADERS, END_HEADERS, 3), framed(DATA, 0, 9), framed(DATA, END_STREAM, 0)].concat()
        ));
        assert!(frames.take(&[framed(RST_STREAM, 0, 4), framed(RST_STREAM, 0, 4), framed(6, 1, 8)].concat()));
        assert_eq!((frames.counts(), frames.last_stream()), (Counts { reset: 1, ended: 1 }, 1));
        assert_eq!(frames.counts(), Counts::default(), "each is told once");
    }

    #[test]
    fn a_stream_is_reset_once() {
        let mut reset = Reset::default();
        assert!((1..=300).all(|stream| reset.is_new(stream)));
        assert!((100..=300).all(|stream| !reset.is_new(stream)));
        assert_eq!(reset.0.len(), REMEMBERED);
        assert!(reset.is_new(1), "it was long ago");
    }

    #[test]
    fn data_is_told_from_the_rest() {
        for (kind, unfinished) in
            [(DATA, Unfinished::Data), (6, Unfinished::Head), (HEADERS, Unfinished::Head)]
        {
            let mut frames = begun();
            let whole = frame(kind, END_HEADERS, 8);
            assert!(!frames.take(&whole[..10]));
            assert_eq!(frames.unfinished(), Some(unfinished));
            assert!(frames.take(&whole[10..]));
            assert_eq!(frames.unfinished(), None);
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_bytes_come(
            kinds in prop::collection::vec((0_u8..10, any::<bool>(), 0_usize..40), 1..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let end = |is_last| if is_last { END_HEADERS } else { 0 };
            let parts = kinds.iter().map(|(kind, is_last, length)| frame(*kind, end(*is_last), *length));
            let bytes = parts.collect::<Vec<_>>().concat();
            let bytes = &bytes[..=cut.index(bytes.len())];
            let (mut at_once, mut by_byte) = (begun(), begun());
            let has_passed = at_once.take(bytes);
            let passed: Vec<bool> = bytes.iter().map(|byte| by_byte.take(&[*byte])).collect();
            prop_assert_eq!(has_passed, passed.contains(&true));
            prop_assert_eq!(at_once.unfinished(), by_byte.unfinished());
        }
    }
}
