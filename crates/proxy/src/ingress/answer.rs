//! The body of an answer, and what is noted when it has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use tidegate_policy::{Now, Refused};
use tidegate_tower::Clock;
use tidegate_tower::body::GuardedBody;

use super::line::LogLine;
use super::unbroken::{go_on, unwanted};
use super::way::Undecided;
use crate::alone::Patience;
use crate::connection::{Caller, stream};
use crate::figures::RouteFigures;
use crate::upstream::{Turned, UpstreamBody};

/// What a request is noted with whose caller went away before there was an answer.
pub(super) const GONE: u16 = 499;

/// What a request is noted with that was cut off before there was an answer, because the time to drain was over.
const CUT_OFF: u16 = 503;

/// The body of an answer.
pub(crate) struct AnswerBody {
    body: GuardedBody<UpstreamBody>,
    _ticket: Ticket,
    /// How long it is read on without its caller, where that matters.
    lasting: Option<Patience>,
    /// The upstream's connection, where it has turned to another protocol.
    turned: Option<Box<Turned>>,
}

impl AnswerBody {
    pub(super) const fn served(body: GuardedBody<UpstreamBody>, ticket: Ticket) -> Self {
        Self { body, _ticket: ticket, lasting: None, turned: None }
    }

    /// A short text of ours.
    pub(super) fn text(text: Bytes, ticket: Ticket) -> Self {
        if let Some(line) = ticket.line() {
            line.sent(text.len());
        }
        Self { body: GuardedBody::refused(text), _ticket: ticket, lasting: None, turned: None }
    }

    /// Without its caller it is read on for as long as that: the upstream's work ends with its answer, not with its head.
    pub(super) const fn lasts(&mut self, lasting: Option<Patience>) {
        self.lasting = lasting;
    }

    /// Another protocol is spoken behind the answer's head.
    pub(super) fn turn(&mut self, turned: Option<Turned>) {
        self.turned = turned.map(Box::new);
    }

    /// The upstream's connection, where it has turned to another protocol.
    pub(crate) fn take_turned(&mut self) -> Option<Turned> {
        self.turned.take().map(|turned| *turned)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = <UpstreamBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        stream::asked();
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_some() {
            stream::gave();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if let Some(patience) = self.lasting.take().filter(|_| self.body.is_held()) {
            let body = std::mem::replace(&mut self.body, GuardedBody::refused(Bytes::new()));
            go_on(unwanted(body), patience);
        }
    }
}

/// A request on its way; when it is dropped, the request has ended.
pub(super) struct Ticket {
    caller: Arc<Caller>,
    noted: Option<Noted>,
}

/// What is known of a request that is counted.
pub(super) struct Noted {
    pub(super) figures: Arc<RouteFigures>,
    pub(super) began: Now,
    /// Its line in the access log, if it may get one.
    pub(super) line: Option<Arc<LogLine>>,
    status: u16,
    /// There while it is not known whether it goes on.
    undecided: Option<Undecided>,
}

impl Noted {
    pub(super) const fn new(
        figures: Arc<RouteFigures>,
        began: Now,
        line: Option<Arc<LogLine>>,
        undecided: Option<Undecided>,
    ) -> Self {
        Self { figures, began, line, status: GONE, undecided }
    }

    fn decided(&mut self, is_admitted: bool) {
        if let Some(Undecided { listener, criticality }) = self.undecided.take() {
            self.figures.decided(listener, criticality, is_admitted);
        }
    }
}

impl Ticket {
    /// Without anything noted it is a request that is not counted, because it is none.
    pub(super) const fn new(caller: Arc<Caller>, noted: Option<Noted>) -> Self {
        Self { caller, noted }
    }

    pub(super) const fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    pub(super) fn status(&mut self, status: StatusCode) {
        if let Some(noted) = &mut self.noted {
            noted.status = status.as_u16();
        }
    }

    /// It goes on to its upstream.
    pub(super) fn goes_on(&mut self) {
        if let Some(noted) = &mut self.noted {
            noted.decided(true);
        }
    }

    /// It had been let pass, and is refused after all.
    pub(super) fn turned_away(&mut self, refused: &Refused) {
        let Some(noted) = &mut self.noted else { return };
        noted.decided(false);
        if let Some(line) = &noted.line {
            line.turned_away(refused);
        }
    }

    /// Its line in the access log, if it may get one.
    pub(super) fn line(&self) -> Option<&Arc<LogLine>> {
        self.noted.as_ref()?.line.as_ref()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.caller.watch.end();
        let Some(mut noted) = self.noted.take() else { return };
        // Whoever goes away while it waits was refused by nobody.
        noted.decided(true);
        let Noted { figures, began, line, status, .. } = noted;
        let is_cut_off = status == GONE && self.caller.worker.is_cutting_off();
        let status = if is_cut_off { CUT_OFF } else { status };
        let shared = &self.caller.worker.shared;
        let took = shared.clock.moment().since(began.moment);
        figures.end(status, took);
        if let Some(line) = line {
            line.answered(status, took);
        }
    }
}
