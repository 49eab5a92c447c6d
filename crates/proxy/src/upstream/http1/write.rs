//! The head of a request on its way out.

use http::{Method, Request, header};

use crate::http1::outgoing::{Framing, write_field};

/// Writes a request's head. The fields that frame the body are ours, whatever the request had; a host must be there,
/// even if the caller spoke a version that needs none.
pub(super) fn write_head<B>(out: &mut Vec<u8>, request: &Request<B>, host: &str, framing: Framing) {
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    if !target.starts_with(['/', '*']) {
        out.push(b'/');
    }
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let (mut had_length, mut had_host) = (false, false);
    for (name, value) in request.headers() {
        match *name {
            header::CONTENT_LENGTH => had_length = true,
            header::TRANSFER_ENCODING => {}
            _ => {
                had_host |= *name == header::HOST;
                write_field(out, name, value);
            }
        }
    }
    if !had_host {
        let host = request.uri().authority().map_or(host, |authority| authority.as_str());
        out.extend_from_slice(b"host: ");
        out.extend_from_slice(host.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Bare if had_length || expects_body(request.method()) => {
            out.extend_from_slice(b"content-length: 0\r\n");
        }
        // A request never ends with its connection: there would be nowhere to answer.
        Framing::Bare | Framing::Close => {}
        Framing::Length(length) => write_field(out, &header::CONTENT_LENGTH, &length.into()),
        Framing::Chunks => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether a service may wonder about a request of this method without a length (RFC 9110 §8.6).
fn expects_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}
