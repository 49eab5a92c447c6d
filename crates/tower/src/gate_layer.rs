//! The gate around a service.
//!
//! ```text
//! request ──identify──> gate.decide ──refused──> respond: the service is never called
//!                            │
//!                         admitted ──wait, if a rule shapes──> service ──> response, permit on its body
//! ```
//!
//! Readiness is the inner service's word alone. `Pending` can mean "full", "connecting" or "the scheduler
//! wanted a pause"; reading overload into it refuses requests for nothing, so the gate decides in `call`,
//! where there is a request to decide about. A refused request leaves the service ready for the next one.
//!
//! Rules that shed, and reserves that follow an upstream's limit, need somebody who measures: the layer does not. Without
//! [`Gate::steer`] being told twice a second, a shed rule lets everybody pass.

mod future;

use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{error, fmt, mem};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tidegate_core::Invalid;
use tidegate_policy::{Decision, Gate, Policy, Problem, beyond_library};
use tower_layer::Layer;
use tower_service::Service;

pub use future::ResponseFuture;

use crate::admission::Admission;
use crate::body::{CountedBody, GuardedBody};
use crate::clock::{Clock, SystemClock};
use crate::identify::{HttpIdentify, Identify};
use crate::respond::{Respond, Speech};

/// Why a policy makes no layer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoLayer {
    /// It asks for what the layer does not carry out: each part, by the keys that lead to it.
    Beyond(Vec<Problem>),
    /// It exceeds a bound of the gate.
    Invalid(Invalid),
}

impl fmt::Display for NoLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beyond(parts) => {
                f.write_str("the library does not carry out ")?;
                for (index, part) in parts.iter().enumerate() {
                    write!(f, "{}`{}`", if index == 0 { "" } else { ", " }, part.path)?;
                }
                Ok(())
            }
            Self::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl error::Error for NoLayer {}

/// Puts a gate around services. All services it makes, and their clones, share the gate.
pub struct GateLayer<I = HttpIdentify> {
    shared: Arc<Shared<I>>,
}

/// What all clones share, behind one reference count.
struct Shared<I> {
    gate: Arc<Gate>,
    identify: I,
    clock: Arc<dyn Clock>,
    respond: Arc<Respond>,
}

impl<I> Shared<I> {
    /// Goes on with what was admitted, or ends with the answer.
    fn admit<B>(&self, request: &Request<B>) -> ControlFlow<Response<Bytes>, Admission>
    where
        I: Identify<Request<B>>,
    {
        let Self { gate, identify, clock, respond } = self;
        let now = clock.now();
        let speech = || Speech::of(request.headers());
        match identify.identify(request, |attributes| gate.decide(now, attributes)) {
            Ok(Decision::Admit(admitted)) => {
                let (clock, respond) = (Arc::clone(clock), Arc::clone(respond));
                ControlFlow::Continue(Admission::new(admitted, request.method(), clock, respond))
            }
            Ok(Decision::Refuse(refused)) => ControlFlow::Break(respond.refused(now, &refused, speech())),
            Err(unclear) => ControlFlow::Break(respond.unclear(unclear, speech())),
        }
    }
}

impl GateLayer {
    /// A gate of its own for `policy`, with a seed that strangers do not know.
    ///
    /// It answers as `[server]` of the policy says. What the layer cannot carry out, such as listeners or upstreams, is
    /// refused rather than skipped, as by `tidegate check --for library`.
    ///
    /// # Errors
    /// When the policy asks for more than the layer does, or exceeds a bound of the gate.
    pub fn for_policy(policy: Policy, clock: impl Clock + 'static) -> Result<Self, NoLayer> {
        let beyond = beyond_library(&policy);
        if !beyond.is_empty() {
            return Err(NoLayer::Beyond(beyond));
        }
        let respond = Respond::of(&policy.server);
        // The standard library's hasher is seeded by the system; what it makes of nothing is a random number.
        let seed = RandomState::new().hash_one(());
        let gate = Gate::new(policy, seed, clock.now()).map_err(NoLayer::Invalid)?;
        Ok(Self::new(Arc::new(gate)).clock(clock).respond(respond))
    }

    /// The gate with the usual ways: HTTP requests, the system's clock, fields on every answer.
    #[must_use]
    pub fn new(gate: Arc<Gate>) -> Self {
        let identify = HttpIdentify::new(Arc::clone(&gate));
        let clock = Arc::new(SystemClock::new());
        Self { shared: Arc::new(Shared { gate, identify, clock, respond: Arc::default() }) }
    }
}

impl<I> GateLayer<I> {
    /// The gate it asks.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.shared.gate
    }

    /// The same gate with another way to identify requests.
    #[must_use]
    pub fn identify<J>(self, identify: J) -> GateLayer<J> {
        let Shared { gate, clock, respond, .. } = &*self.shared;
        let (gate, clock, respond) = (Arc::clone(gate), Arc::clone(clock), Arc::clone(respond));
        GateLayer { shared: Arc::new(Shared { gate, identify, clock, respond }) }
    }
}

impl<I: Clone> GateLayer<I> {
    /// The same gate with another clock.
    #[must_use]
    pub fn clock(self, clock: impl Clock + 'static) -> Self {
        self.with(|shared| Shared { clock: Arc::new(clock), ..shared })
    }

    /// The same gate with other ways to answer.
    #[must_use]
    pub fn respond(self, respond: Respond) -> Self {
        self.with(|shared| Shared { respond: Arc::new(respond), ..shared })
    }

    fn with(self, change: impl FnOnce(Shared<I>) -> Shared<I>) -> Self {
        let shared = Arc::try_unwrap(self.shared).unwrap_or_else(|shared| Shared {
            gate: Arc::clone(&shared.gate),
            identify: shared.identify.clone(),
            clock: Arc::clone(&shared.clock),
            respond: Arc::clone(&shared.respond),
        });
        Self { shared: Arc::new(change(shared)) }
    }
}

impl<S, I> Layer<S> for GateLayer<I> {
    type Service = GateService<S, I>;

    fn layer(&self, inner: S) -> GateService<S, I> {
        GateService { inner, shared: Arc::clone(&self.shared) }
    }
}

impl<I> Clone for GateLayer<I> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<I> fmt::Debug for GateLayer<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateLayer").finish_non_exhaustive()
    }
}

/// A service behind a gate.
pub struct GateService<S, I = HttpIdentify> {
    inner: S,
    shared: Arc<Shared<I>>,
}

impl<S, I, B, R> Service<Request<B>> for GateService<S, I>
where
    S: Service<Request<CountedBody<B>>, Response = Response<R>> + Clone,
    I: Identify<Request<B>>,
    R: Body,
    R::Data: From<Bytes>,
{
    type Response = Response<GuardedBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, Request<CountedBody<B>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut admission = match self.shared.admit(&request) {
            ControlFlow::Continue(admission) => admission,
            ControlFlow::Break(response) => return ResponseFuture::refused(response),
        };
        let wait = admission.wait();
        let request = request.map(|body| admission.counted(body));
        if wait.is_zero() {
            admission.ask();
            return ResponseFuture::calling(self.inner.call(request), admission);
        }
        // The service that said it is ready must be the one that is called; a clone of it has said nothing.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        ResponseFuture::waiting(wait, ready, request, admission)
    }
}

impl<S: Clone, I> Clone for GateService<S, I> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug, I> fmt::Debug for GateService<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
