//! Requests over HTTP/2 as bytes, as many on one connection as fit: enough of the protocol to begin and to stay away.

/// What a connection begins with (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A connection that begins so many uploads and sends one byte of each.
pub(crate) fn uploads(count: u32) -> Vec<u8> {
    // `:method: POST`, `:scheme: http`, `:path: /`.
    let mut bytes = beginning();
    for stream in streams(count) {
        frame(&mut bytes, HEADERS, END_HEADERS, stream, &head(&[0x83, 0x86, 0x84]));
        frame(&mut bytes, DATA, 0, stream, b"x");
    }
    bytes
}

/// A connection that asks for so many large answers.
pub(crate) fn downloads(count: u32) -> Vec<u8> {
    let mut bytes = beginning();
    // `:method: GET`, `:scheme: http`, and `:path` with a value of its own.
    let block = head(b"\x82\x86\x04\x06/large");
    for stream in streams(count) {
        frame(&mut bytes, HEADERS, END_HEADERS | END_STREAM, stream, &block);
    }
    bytes
}

fn beginning() -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    frame(&mut bytes, SETTINGS, 0, 0, &[]);
    bytes
}

/// A field block (RFC 7541 §6) with an authority behind.
fn head(block: &[u8]) -> Vec<u8> {
    [block, b"\x01\x05bench"].concat()
}

/// What callers number their streams.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}

fn frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("frames here are short");
    bytes.extend_from_slice(&length.to_be_bytes()[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_tells_its_length_kind_and_stream() {
        let mut bytes = Vec::new();
        frame(&mut bytes, DATA, END_STREAM, 3, b"x");
        assert_eq!(bytes, [0, 0, 1, 0, 1, 0, 0, 0, 3, b'x']);
    }

    #[test]
    fn every_upload_has_a_stream_and_a_byte() {
        let (one, two) = (uploads(1).len(), uploads(2).len());
        assert_eq!(two - one, 9 + 3 + 7 + 9 + 1);
        assert!(uploads(2).starts_with(PREFACE));
    }
}
