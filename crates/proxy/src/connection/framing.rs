//! Watches the bytes of an HTTP/1 connection for messages that two servers could read in two ways.
//!
//! The parser behind it is lenient in four places where a proxy must not be, because the next server may be lenient in
//! another way, and then a caller smuggles a request past the rules:
//!
//! | a head with                                | the parser          | we |
//! |--------------------------------------------|---------------------|----|
//! | both `Content-Length` and chunked framing  | drops the length    | refuse it |
//! | a length that is no number, behind chunked | does not look at it | refuse it |
//! | lines that end in a bare line feed         | reads them as usual | refuse it |
//! | other codings than chunked, or it twice    | looks at the last   | refuse it |
//!
//! So this follows the messages on the side: heads line by line, bodies by their length or their chunks. It never
//! changes a byte; it says from which message on the connection is unsound, and a request with that number or a later
//! one is answered with 400. Where the two disagree about a message, the parser has refused it already.
//!
//! ```text
//! POST / HTTP/1.1\r\n
//! Content-Length: 4\r\n          seen: a length of 4
//! Transfer-Encoding: chunked\r\n seen: chunks as well
//! \r\n                           the first message is unsound
//! ```

use memchr::memchr;

/// How long a line may be that has not come whole yet. The parser refuses longer heads before.
const LONGEST_LINE: usize = 1 << 20;

/// What is unsound about a message, as a sentence for its sender.
pub(crate) type Flaw = &'static str;

const TWO_LENGTHS: Flaw = "the request has both Content-Length and Transfer-Encoding";
const OTHER_CODING: Flaw = "the request has a Transfer-Encoding other than chunked";
const UNCLEAR_LENGTH: Flaw = "the length of the request or of a chunk is no number";
const BARE_LINE_FEED: Flaw = "a line of the request ends without a carriage return";

/// Follows the messages that come in on one connection.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    at: At,
    /// The beginning of a line whose end has not come yet.
    carry: Vec<u8>,
    /// How many heads have come whole.
    heads: u64,
    unsound: Option<(u64, Flaw)>,
}

/// Where in a message the next byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// Before the first byte of a head.
    #[default]
    Between,
    Head(Head),
    /// So many bytes of the body are still to come.
    Body(u64),
    ChunkSize,
    /// So many bytes of the chunk and its line end are still to come.
    Chunk(u64),
    Trailers,
    /// What comes is no message of ours any more: another protocol, or what the parser refuses.
    Elsewhere,
}

/// What the lines of a head have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    length: Option<u64>,
    is_chunked: bool,
    flaw: Option<Flaw>,
}

/// What the connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The first byte of a request.
    Request,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
}

impl Framing {
    /// Follows `bytes`, which came next.
    pub(crate) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.unsound.is_none() {
            bytes = match self.at {
                At::Elsewhere => return,
                At::Body(left) => self.skip(bytes, left, At::Between, At::Body),
                At::Chunk(left) => self.skip(bytes, left, At::ChunkSize, At::Chunk),
                At::Between | At::Head(_) | At::ChunkSize | At::Trailers => self.line(bytes),
            };
        }
    }

    /// The message from which on nothing is sound, by its number counted from one, and what is wrong with it.
    pub(crate) const fn unsound(&self) -> Option<(u64, Flaw)> {
        self.unsound
    }

    /// How many heads have come whole.
    #[cfg(feature = "fuzzing")]
    pub(crate) const fn heads(&self) -> u64 {
        self.heads
    }

    /// What the connection is waiting for.
    pub(crate) const fn awaited(&self) -> Awaited {
        match self.at {
            At::Between if self.carry.is_empty() => Awaited::Request,
            At::Between | At::Head(_) => Awaited::Head,
            At::Body(_) | At::ChunkSize | At::Chunk(_) | At::Trailers | At::Elsewhere => Awaited::Body,
        }
    }

    /// From here on another protocol is spoken.
    pub(crate) fn leave(&mut self) {
        self.at = At::Elsewhere;
        self.carry = Vec::new();
    }

    fn skip<'a>(&mut self, bytes: &'a [u8], left: u64, after: At, within: fn(u64) -> At) -> &'a [u8] {
        let here = bytes.len() as u64;
        if here < left {
            self.at = within(left - here);
            return &[];
        }
        self.at = after;
        // No more than the length of `bytes`, so it fits.
        bytes.split_at(usize::try_from(left).unwrap_or(bytes.len())).1
    }

    /// Takes one line, or keeps its beginning until the rest is here.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(end) = memchr(b'\n', bytes) else {
            if self.carry.len() + bytes.len() > LONGEST_LINE {
                self.leave();
            } else {
                self.carry.extend_from_slice(bytes);
            }
            return &[];
        };
        let (line, rest) = bytes.split_at(end + 1);
        if self.carry.is_empty() {
            self.take(line);
        } else {
            let mut whole = std::mem::take(&mut self.carry);
            whole.extend_from_slice(line);
            self.take(&whole);
        }
        rest
    }

    /// Takes a whole line, with its end.
    fn take(&mut self, line: &[u8]) {
        let (line, flaw) = match line {
            [line @ .., b'\r', b'\n'] => (line, None),
            [line @ .., b'\n'] => (line, Some(BARE_LINE_FEED)),
            _ => (line, None),
        };
        match self.at {
            // Some senders put an empty line after a body; the parser skips it too.
            At::Between if line.is_empty() => {}
            At::Between => self.at = At::Head(Head { flaw, ..Head::default() }),
            At::Head(head) if line.is_empty() => self.head_ended(Head { flaw: head.flaw.or(flaw), ..head }),
            At::Head(head) => {
                let head = head.with_field(line);
                self.at = At::Head(Head { flaw: head.flaw.or(flaw), ..head });
            }
            // The parser may read on where we stop, and would have another count of the messages from here on.
            At::ChunkSize | At::Trailers if flaw.is_some() => {
                self.unsound = flaw.map(|flaw| (self.heads + 1, flaw));
            }
            At::ChunkSize => match chunk_size(line) {
                Some(0) => self.at = At::Trailers,
                Some(size) => self.at = At::Chunk(size.saturating_add(2)),
                None => self.unsound = Some((self.heads + 1, UNCLEAR_LENGTH)),
            },
            At::Trailers if line.is_empty() => self.at = At::Between,
            At::Trailers | At::Body(_) | At::Chunk(_) | At::Elsewhere => {}
        }
    }

    fn head_ended(&mut self, head: Head) {
        self.heads += 1;
        let two_lengths = (head.is_chunked && head.length.is_some()).then_some(TWO_LENGTHS);
        if let Some(flaw) = head.flaw.or(two_lengths) {
            self.unsound = Some((self.heads, flaw));
        }
        self.at = match head.length {
            _ if head.is_chunked => At::ChunkSize,
            Some(length) if length > 0 => At::Body(length),
            Some(_) | None => At::Between,
        };
    }
}

impl Head {
    /// The head with one more field.
    fn with_field(self, line: &[u8]) -> Self {
        if let Some(value) = value_of(line, b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|value| value.trim().parse().ok());
            // Behind chunked framing the parser does not look at the length, so it would not refuse this one.
            let flaw = self.flaw.or_else(|| length.is_none().then_some(UNCLEAR_LENGTH));
            return Self { length, flaw, ..self };
        }
        let Some(coding) = value_of(line, b"transfer-encoding") else { return self };
        let is_first = !self.is_chunked && coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        let flaw = self.flaw.or_else(|| (!is_first).then_some(OTHER_CODING));
        Self { is_chunked: true, flaw, ..self }
    }
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = line.get(name.len()..)?.strip_prefix(b":")?;
    line.get(..name.len())?.eq_ignore_ascii_case(name).then_some(value)
}

/// The size of a chunk; what stands after it on its line is nobody's business.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(bytes: &[u8]) -> Framing {
        let mut framing = Framing::default();
        framing.follow(bytes);
        framing
    }

    #[test]
    fn sound_messages_follow_one_another() {
        let framing = after(
            b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nGET \
              POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n\r\n\n\r\n0\r\nT: 1\r\n\r\n\
              \r\nGET /c HTTP/1.1\r\n\r\n",
        );
        assert_eq!((framing.heads, framing.unsound), (3, None));
        assert_eq!(framing.awaited(), Awaited::Request);
    }

    #[test]
    fn two_lengths_are_unsound_in_either_order() {
        for fields in [
            "Content-Length: 4\r\nTransfer-Encoding: chunked",
            "transfer-encoding:CHUNKED\r\ncontent-length:4",
        ] {
            let head = format!("GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\n{fields}\r\n\r\n");
            let framing = after(head.as_bytes());
            assert_eq!(framing.unsound(), Some((2, TWO_LENGTHS)));
        }
    }

    #[test]
    fn a_length_that_is_no_number_is_unsound_even_where_the_parser_does_not_look() {
        for length in ["x", "1,1", "-1", "", "\u{d0}"] {
            let fields = format!("Transfer-Encoding: chunked\r\nContent-Length: {length}");
            let head = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n0\r\n\r\n");
            assert_eq!(after(head.as_bytes()).unsound(), Some((1, UNCLEAR_LENGTH)), "{length:?}");
        }
        let chunk = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n";
        assert_eq!(after(chunk).unsound(), Some((2, UNCLEAR_LENGTH)));
    }

    #[test]
    fn other_codings_are_unsound() {
        for fields in [
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding:",
        ] {
            let head = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n");
            assert_eq!(after(head.as_bytes()).unsound(), Some((1, OTHER_CODING)), "{fields}");
        }
    }

    #[test]
    fn a_bare_line_feed_is_unsound_wherever_it_stands() {
        for head in ["GET / HTTP/1.1\n\r\n", "GET / HTTP/1.1\r\nA: b\n\r\n", "GET / HTTP/1.1\r\nA: b\r\n\n"] {
            assert_eq!(after(head.as_bytes()).unsound(), Some((1, BARE_LINE_FEED)), "{head:?}");
        }
    }

    #[test]
    fn what_is_awaited_follows_the_bytes() {
        let mut framing = Framing::default();
        for (bytes, awaited) in [
            (&b"GE"[..], Awaited::Head),
            (b"T / HTTP/1.1\r\nContent-", Awaited::Head),
            (b"Length: 2\r\n\r\n", Awaited::Body),
            (b"a", Awaited::Body),
            (b"b", Awaited::Request),
        ] {
            framing.follow(bytes);
            assert_eq!(framing.awaited(), awaited, "after {bytes:?}");
        }
    }

    #[test]
    fn a_bare_line_feed_behind_a_body_makes_the_next_message_unsound() {
        for end in ["0\n\r\n", "0\r\nX: y\n\r\n", "0\r\n\n"] {
            let message = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{end}");
            assert_eq!(after(message.as_bytes()).unsound(), Some((2, BARE_LINE_FEED)), "{end:?}");
        }
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_answer(cuts in proptest::collection::vec(0_usize..170, 0..8)) {
            let bytes: &[u8] = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST /b HTTP/1.1\r\n\
                Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 1\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
            let mut cuts = cuts;
            cuts.retain(|cut| *cut < bytes.len());
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let (mut framing, mut from) = (Framing::default(), 0);
            for cut in cuts {
                framing.follow(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(framing.unsound(), Some((3, TWO_LENGTHS)));
        }

        #[test]
        fn any_bytes_are_followed(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            after(&bytes).awaited();
        }
    }
}
