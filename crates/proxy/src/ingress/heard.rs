//! A request as the walk hears it: as the bytes that were read, or made whole.
//!
//! A decision needs the first line and a field or two. So over HTTP/1 a request is decided about where its head lies,
//! and gets a map of its fields only if it goes on. From a trusted peer it is made whole at once, for what that says of
//! others stands in fields of many kinds; over HTTP/2 it comes whole.

use std::net::IpAddr;

use http::{HeaderMap, Request, header};
use tidegate_policy::policy::ClientAddress;
use tidegate_policy::{Attributes, Field, Headers};
use tidegate_tower::HttpIdentify;
use tidegate_tower::identify::{HeadFacts, REPEATED, Unclear, find};
use tidegate_tower::respond::Speech;

use crate::connection::http1::body::CallerBody;
use crate::connection::http1::{RawRequest, keep_fields};
use crate::head::fields::{Meant, SentBy, is_for_one_hop};
use crate::head::{self, Hop, Outline, SentHost};
use crate::http1::Flaw;

/// By what the head of a request is made what will be sent on.
#[derive(Clone, Copy)]
pub(crate) struct Sending<'a> {
    pub(crate) hop: &'a Hop,
    pub(crate) identify: &'a HttpIdentify,
    pub(crate) meant: &'a Meant,
    /// How trusted proxies say for whom they send.
    pub(crate) says: ClientAddress,
}

/// A request that is being decided about.
pub(crate) trait Heard: Outline {
    fn speech(&self) -> Speech;

    /// How many fields it has.
    fn fields(&self) -> usize;

    fn body(&self) -> &CallerBody;

    /// Whether its sender waits for our word to send the body.
    fn expects_word(&self) -> bool;

    /// Makes its head what will be sent on, or knows how it will look.
    fn arrange(&mut self, host: SentHost, sending: Sending<'_>) -> Result<(), Unclear>;

    /// Asks `question` with what the gate is told of it.
    fn identified<T>(
        &self,
        client: IpAddr,
        sending: Sending<'_>,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear>;

    /// The same, whole and arranged.
    fn whole(self, sending: Sending<'_>) -> Result<Request<CallerBody>, Flaw>;

    /// Ends it here.
    fn end(self);
}

/// Asks `question` if nothing that requests are told apart by is there twice.
fn asked<T>(
    facts: &HeadFacts<'_>,
    sending: Sending<'_>,
    question: impl FnOnce(&Attributes<'_>) -> T,
) -> Result<T, Unclear> {
    let is_repeated = |name: &String| facts.headers.find(name).is_some_and(|field| field.is_repeated);
    if sending.meant.matched.iter().any(is_repeated) {
        return Err(REPEATED);
    }
    Ok(sending.identify.identify_head(facts, question))
}

/// The fields of a stranger's request as they will be sent on, where they lie.
struct Passing<'a, 'b, 'c> {
    request: &'a RawRequest<'b, 'c>,
    sending: Sending<'a>,
}

impl Headers for Passing<'_, '_, '_> {
    fn find(&self, name: &str) -> Option<Field<'_>> {
        let Self { request, sending } = self;
        let ours = |text| Some(Field { first: text, is_repeated: false });
        let from = SentBy { is_trusted: false, says: sending.says };
        match name {
            "host" => request.authority().filter(|host| !host.is_empty()).and_then(ours),
            "x-forwarded-proto" if sending.says != ClientAddress::Forwarded => {
                ours(sending.hop.scheme().as_bytes())
            }
            _ if is_for_one_hop(name) || !sending.meant.goes_on(name, from) => None,
            _ if request.head.ends(name) => None,
            _ => request.head.fields().find(name),
        }
    }
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

    fn arrange(&mut self, host: SentHost, sending: Sending<'_>) -> Result<(), Unclear> {
        self.host = host;
        let path = sending.identify.path_to_send(self.head.uri().path())?;
        if let Some(path) = path {
            let uri = head::with_path(self.head.uri(), &path).map_err(|what| Unclear { what })?;
            self.head.set_uri(uri);
        }
        Ok(())
    }

    fn identified<T>(
        &self,
        client: IpAddr,
        sending: Sending<'_>,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        let facts = HeadFacts {
            method: self.head.method().as_str(),
            path: self.head.uri().path(),
            authority: self.authority().and_then(|host| str::from_utf8(host).ok()).unwrap_or_default(),
            headers: &Passing { request: self, sending },
            client: Some(client),
            believed: None,
        };
        asked(&facts, sending, question)
    }

    fn whole(self, sending: Sending<'_>) -> Result<Request<CallerBody>, Flaw> {
        let (mut request, host) = self.whole()?;
        head::arrange(&mut request, host, sending.hop, (sending.meant, sending.says));
        Ok(request)
    }

    fn end(self) {}
}

/// The fields of a request that has been arranged.
struct Arranged<'a>(&'a HeaderMap);

impl Headers for Arranged<'_> {
    fn find(&self, name: &str) -> Option<Field<'_>> {
        find(self.0, name)
    }
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

    fn arrange(&mut self, host: SentHost, sending: Sending<'_>) -> Result<(), Unclear> {
        head::arrange(self, host, sending.hop, (sending.meant, sending.says));
        let path = sending.identify.path_to_send(self.uri().path())?;
        if let Some(path) = path {
            *self.uri_mut() = head::with_path(self.uri(), &path).map_err(|what| Unclear { what })?;
        }
        Ok(())
    }

    fn identified<T>(
        &self,
        client: IpAddr,
        sending: Sending<'_>,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        let host = self.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let facts = HeadFacts {
            method: self.method().as_str(),
            path: self.uri().path(),
            authority: host.unwrap_or_default(),
            headers: &Arranged(self.headers()),
            client: Some(client),
            believed: sending.hop.is_trusted.then(|| self.headers()),
        };
        asked(&facts, sending, question)
    }

    fn whole(self, _: Sending<'_>) -> Result<Request<CallerBody>, Flaw> {
        Ok(self)
    }

    /// Nobody looks at its fields any more, and the next request needs room for its own.
    fn end(mut self) {
        keep_fields(std::mem::take(self.headers_mut()));
    }
}
