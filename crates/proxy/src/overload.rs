//! How the gateway's upstreams are, how much of their capacity is wanted, and what operators can do about it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_core::{Moment, WallTime};
use tidegate_policy::explain::{Explanation, UpstreamAnswer, UpstreamSeen};
use tidegate_policy::policy::{DegradeWhen, SignalFrom, SignalName};
use tidegate_policy::{Attributes, Readings, UpstreamReadings};
use tidegate_tower::Clock;
use tidegate_tower::bulkhead::{self, Foreseen};

use crate::gateway::{Gateway, Shared};
use crate::signals::{SignalStatus, UntoldSignal};
use crate::upstream::{AttemptOutcome, Upstream, UpstreamError};

/// How an upstream is.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamStatus {
    /// Its name.
    pub upstream: String,
    /// How attempts ended, in the order of [`AttemptOutcome::ALL`].
    pub attempts: [u64; AttemptOutcome::ALL.len()],
    /// Its endpoints.
    pub endpoints: Vec<EndpointStatus>,
    /// How its limit is found, as policies say it.
    pub algorithm: &'static str,
    /// What stands before it.
    pub bulkhead: bulkhead::Status,
}

/// How an endpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointStatus {
    /// Its URL.
    pub url: String,
    /// Connections to it.
    pub connections: usize,
    /// Requests on their way to it or back.
    pub in_flight: usize,
    /// How often it could not be connected to.
    pub failures: u64,
    /// What went wrong last, and when.
    pub last_error: Option<(UpstreamError, WallTime)>,
}

/// How much of the capacity that there is would be needed for all who come: 1 is just enough, 2 is twice as much.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityStatus {
    /// Of the upstream that needs most.
    pub wanted_ratio: f64,
    /// Of each.
    pub upstreams: Vec<(String, f64)>,
}

/// A route that has a cheaper answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteStatus {
    /// Its name.
    pub route: String,
    /// When its requests get the cheaper answer by themselves; none if it has no such answer.
    pub degrade: Option<DegradeWhen>,
    /// Whether an operator gives it to all of them.
    pub is_switched: bool,
    /// For how long still; none if for good, or not at all.
    pub switched_for: Option<Duration>,
}

/// Why a route cannot be switched to its cheaper answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDegrade {
    /// The policy has no such route.
    UnknownRoute,
    /// The route has no cheaper answer.
    NoAnswer,
}

impl fmt::Display for NoDegrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownRoute => "the policy has no such route",
            Self::NoAnswer => "the route has no `degrade`, so there is no cheaper answer to give",
        })
    }
}

impl Error for NoDegrade {}

impl UpstreamStatus {
    fn of(upstream: &Upstream, now: Moment) -> Self {
        let endpoints = upstream.endpoints().iter().map(|endpoint| {
            let (connections, in_flight) = endpoint.counts();
            let failures = endpoint.failures.load(Ordering::Relaxed);
            let last_error = endpoint.last_error.read();
            EndpointStatus { url: endpoint.spec.to_string(), connections, in_flight, failures, last_error }
        });
        Self {
            upstream: upstream.spec.name.clone(),
            attempts: upstream.attempts(),
            endpoints: endpoints.collect(),
            algorithm: upstream.spec.concurrency.algorithm.as_str(),
            bulkhead: upstream.door(0).status(now),
        }
    }
}

impl Gateway {
    /// How its upstreams are.
    #[must_use]
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        let now = self.shared.clock.moment();
        self.settled().iter().map(|upstream| UpstreamStatus::of(upstream, now)).collect()
    }

    /// What would happen to a request now: by the rules, and at the upstream behind them. Charges nothing.
    #[must_use]
    pub fn explain(&self, attributes: &Attributes<'_>) -> Explanation {
        let (gate, now) = (&self.shared.gate, self.shared.clock.now());
        let mut explanation = gate.explain(now, attributes);
        let policy = gate.policy();
        let taken = explanation.route.as_ref().filter(|route| !route.is_exempt);
        let route = taken.and_then(|taken| policy.routes.iter().find(|route| route.name == taken.name));
        let name = route.and_then(|route| route.upstream.as_deref());
        let upstreams = self.settled();
        let upstream = upstreams.iter().find(|upstream| Some(upstream.spec.name.as_str()) == name);
        explanation.upstream = upstream.map(|upstream| {
            let (door, criticality) = (upstream.door(0), explanation.criticality);
            let status = door.status(now.moment);
            UpstreamSeen {
                upstream: upstream.spec.name.clone(),
                criticality,
                shed: status.shed[criticality.index()],
                limit: status.limit,
                in_flight: status.in_flight,
                waiting: status.waiting.iter().sum(),
                answer: match door.foresee(criticality, gate.who(now, attributes)) {
                    Foreseen::Place => UpstreamAnswer::Take,
                    Foreseen::Wait => UpstreamAnswer::Wait,
                    Foreseen::Refuse(refusal) => UpstreamAnswer::Refuse(refusal),
                },
            }
        });
        explanation
    }

    /// How much of its upstreams' capacity is wanted.
    #[must_use]
    pub fn capacity(&self) -> CapacityStatus {
        let wanted = |upstream: UpstreamStatus| (upstream.upstream, upstream.bulkhead.wanted_ratio);
        let upstreams: Vec<_> = self.upstreams().into_iter().map(wanted).collect();
        let wanted_ratio = upstreams.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
        CapacityStatus { wanted_ratio, upstreams }
    }

    /// All signals and what they say.
    #[must_use]
    pub fn signals(&self) -> Vec<SignalStatus> {
        let (shared, upstreams) = (&self.shared, self.settled());
        let policy = shared.gate.policy();
        let now = shared.clock.moment();
        let known = SignalName::KNOWN.into_iter().map(|name| (name, None));
        let own = policy.signals.iter();
        let own = own.map(|signal| (SignalName::Own(Arc::clone(&signal.name)), Some(signal.from.clone())));
        known
            .chain(own)
            .map(|(name, from)| {
                let value = shared.reading(&name, &upstreams, now);
                SignalStatus { name, from, value }
            })
            .collect()
    }

    /// Takes a reading of a signal of this process: `cpu`, `memory` or `memory_pressure`.
    pub fn sample(&self, name: &SignalName, value: f64) {
        self.shared.signals.tell(name, self.shared.clock.moment(), value);
    }

    /// Takes a reading of a signal that operators tell.
    ///
    /// # Errors
    /// When the policy has none of this name, or measures it itself, or the value is no number; then nothing changes.
    pub fn tell(&self, name: &str, value: f64) -> Result<(), UntoldSignal> {
        let policy = self.shared.gate.policy();
        let is_known = SignalName::KNOWN.iter().any(|known| known.as_str() == name);
        let signal = match policy.signals.iter().find(|signal| *signal.name == *name) {
            Some(signal) if signal.from == SignalFrom::Api => signal,
            Some(_) => return Err(UntoldSignal::NotFromApi),
            None if is_known => return Err(UntoldSignal::NotFromApi),
            None => return Err(UntoldSignal::Unknown),
        };
        if !value.is_finite() {
            return Err(UntoldSignal::NoNumber);
        }
        self.sample(&SignalName::Own(Arc::clone(&signal.name)), value);
        Ok(())
    }

    /// The routes, and whether they give their cheaper answer.
    #[must_use]
    pub fn routes(&self) -> Vec<RouteStatus> {
        let now = self.shared.clock.moment();
        let status = |route: &tidegate_policy::policy::Route| {
            let left = self.shared.switches.left(&route.name, now);
            RouteStatus {
                route: route.name.clone(),
                degrade: route.degrade.as_ref().map(|degrade| degrade.when),
                is_switched: left.is_some(),
                switched_for: left.flatten(),
            }
        };
        self.shared.gate.policy().routes.iter().map(status).collect()
    }

    /// Gives all requests of a route its cheaper answer from now on, for some time or for good; or leaves it to itself
    /// again.
    ///
    /// # Errors
    /// When there is no such route, or it has no such answer.
    pub fn degrade(&self, route: &str, is_on: bool, ttl: Option<Duration>) -> Result<(), NoDegrade> {
        let policy = self.shared.gate.policy();
        let known = policy.routes.iter().find(|known| known.name == route).ok_or(NoDegrade::UnknownRoute)?;
        if known.degrade.is_none() {
            return Err(NoDegrade::NoAnswer);
        }
        if is_on {
            self.shared.switches.on(route, self.shared.clock.moment(), ttl);
        } else {
            self.shared.switches.auto(route);
        }
        Ok(())
    }

    pub(crate) fn settled(&self) -> Vec<Arc<Upstream>> {
        self.workers.first().map(|worker| worker.settings.load().upstreams.clone()).unwrap_or_default()
    }
}

impl Shared {
    /// What a signal says; of several upstreams, the busiest counts.
    fn reading(&self, name: &SignalName, upstreams: &[Arc<Upstream>], now: Moment) -> Option<f64> {
        let greatest = |of: &dyn Fn(&Upstream) -> Option<f64>| {
            upstreams.iter().filter_map(|upstream| of(upstream)).max_by(f64::total_cmp)
        };
        match name {
            SignalName::InFlight => greatest(&|upstream| {
                let just_now = || upstream.door(0).busy();
                Some(self.signals.busy_lately(&upstream.spec.name, now).unwrap_or_else(just_now))
            }),
            SignalName::QueueDelay => {
                greatest(&|upstream| Some(upstream.door(0).queue_delay(now).as_secs_f64()))
            }
            SignalName::UpstreamUtilization => greatest(&|upstream| upstream.door(0).utilization(now)),
            SignalName::EventLoop => Some(self.signals.event_loop(now)),
            SignalName::Cpu | SignalName::Memory | SignalName::MemoryPressure | SignalName::Own(_) => {
                self.signals.told_lately(name, now)
            }
        }
    }

    /// Tells the gate what is known, so that its shed and reserve rules can follow.
    pub(crate) fn steer(&self, upstreams: &[Arc<Upstream>]) {
        let now = self.clock.now();
        let policy = self.gate.policy();
        let own = policy.signals.iter().map(|signal| SignalName::Own(Arc::clone(&signal.name)));
        let of_process =
            SignalName::KNOWN.into_iter().filter(|name| !SignalName::OF_UPSTREAMS.contains(name));
        let signals = self.readings(of_process.chain(own), &[], now.moment);
        let upstreams = upstreams.iter().map(|upstream| {
            // Looked at just now, it is nothing or everything: of one place, one request takes all.
            self.signals.tell_busy(&upstream.spec.name, now.moment, upstream.door(0).busy());
            let signals = self.readings(SignalName::OF_UPSTREAMS, std::slice::from_ref(upstream), now.moment);
            let (name, limit) = (upstream.spec.name.as_str().into(), upstream.door(0).limit());
            UpstreamReadings { upstream: name, limit, signals }
        });
        let readings = Readings { signals, upstreams: upstreams.collect() };
        self.gate.steer(now, &readings);
    }

    /// What those of the signals say that are known.
    fn readings(
        &self,
        names: impl IntoIterator<Item = SignalName>,
        upstreams: &[Arc<Upstream>],
        now: Moment,
    ) -> Vec<(SignalName, f64)> {
        let reading = |name| {
            let value = self.reading(&name, upstreams, now)?;
            Some((name, value))
        };
        names.into_iter().filter_map(reading).collect()
    }
}
