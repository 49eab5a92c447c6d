//! A request as the walk hears it: as the bytes that were read, or made whole.
//!
//! A decision needs the first line and a field or two. So over HTTP/1 a request is decided about where its head lies,
//! and gets a map of its fields only if it goes on. From a trusted peer it is made whole at once, for what that says of
//! others stands in fields of many kinds; over HTTP/2 it comes whole.

use http::{Request, header};
use tidegate_policy::{Attributes, Headers};
use tidegate_tower::identify::{HeadFacts, Unclear};
use tidegate_tower::respond::Speech;
use tidegate_tower::{HttpIdentify, Peer};

use crate::connection::http1::body::CallerBody;
use crate::connection::http1::{RawRequest, keep_fields};
use crate::head::Outline;
use crate::http1::Flaw;

/// A request that is being decided about.
pub(super) trait Heard: Outline {
    fn speech(&self) -> Speech;

    /// How many fields it has.
    fn fields(&self) -> usize;

    fn body(&self) -> &CallerBody;

    /// Whether its sender waits for our word to send the body.
    fn expects_word(&self) -> bool;

    /// Asks `question` with what the gate is told of it.
    fn identified<T>(
        &self,
        identify: &HttpIdentify,
        peer: Peer,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear>;

    /// The same, whole.
    fn whole(self) -> Result<Request<CallerBody>, Flaw>;

    /// Ends it here.
    fn end(self);
}

impl Heard for RawRequest<'_, '_> {
    fn speech(&self) -> Speech {
        Speech::of_content_type(self.head.content_type())
    }

    fn fields(&self) -> usize {
        self.head.fields().count()
    }

    fn body(&self) -> &CallerBody {
        &self.body
    }

    fn expects_word(&self) -> bool {
        self.head.fields().find("expect").is_some()
    }

    fn identified<T>(
        &self,
        identify: &HttpIdentify,
        peer: Peer,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        let facts = HeadFacts {
            method: self.head.method(),
            uri: self.head.uri(),
            host: self.head.host().map(|host| host.first),
            headers: self.head.fields(),
            client: Some(peer.address()),
        };
        identify.identify_head(&facts, question)
    }

    fn whole(self) -> Result<Request<CallerBody>, Flaw> {
        self.whole()
    }

    fn end(self) {}
}

impl Heard for Request<CallerBody> {
    fn speech(&self) -> Speech {
        Speech::of(self.headers())
    }

    fn fields(&self) -> usize {
        self.headers().len()
    }

    fn body(&self) -> &CallerBody {
        self.body()
    }

    fn expects_word(&self) -> bool {
        self.headers().contains_key(header::EXPECT)
    }

    fn identified<T>(
        &self,
        identify: &HttpIdentify,
        peer: Peer,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        identify.identify_from(Some(peer), self, question)
    }

    fn whole(self) -> Result<Request<CallerBody>, Flaw> {
        Ok(self)
    }

    /// Nobody looks at its fields any more, and the next request needs room for its own.
    fn end(mut self) {
        keep_fields(std::mem::take(self.headers_mut()));
    }
}
