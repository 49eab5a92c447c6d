//! What a policy means for a worker, made ready for requests; replaced whole when the policy is.
//!
//! Every worker has its own, with references of its own to what its requests hold on to: counting references to the
//! same thing on two cores costs each request more than most of what it does.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Response};
use tidegate_core::Invalid;
use tidegate_policy::policy::{DegradeWhen, Policy, Route, Server, SignalFrom, SignalName, SignalSpec};
use tidegate_policy::{Cause, Gate, Now, Refused, policy};
use tidegate_tower::bulkhead::NewTerms;
use tidegate_tower::respond::{Page, Speech};
use tidegate_tower::{Bulkhead, Clock, HttpIdentify, Respond, SystemClock};

use crate::chance;
use crate::criticality;
use crate::degrade::Degraded;
use crate::figures::{RouteFigures, Routes};
use crate::head::fields::Meant;
use crate::upstream::{Connector, Upstream};

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) server: Server,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) respond: Arc<Respond>,
    pub(crate) identify: HttpIdentify,
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    /// In the order of the policy's routes.
    routes: Vec<Arc<RouteFigures>>,
    /// For requests that no route takes.
    pub(crate) no_route: Arc<RouteFigures>,
    /// The fields that mean something to the policy.
    pub(crate) meant: Arc<Meant>,
    pub(crate) access_log: Option<policy::AccessLog>,
    /// Whether upstreams are told what requests were found to be.
    pub(crate) tells_criticality: bool,
    /// Fields of answers that are signals.
    pub(crate) told_signals: Vec<(HeaderName, SignalName)>,
    /// The cheaper answers of routes that have one, by name.
    degraded: Vec<(String, Degraded)>,
}

impl Settings {
    /// What `policy` means for one worker.
    pub(crate) fn new(
        policy: &Policy,
        gate: &Arc<Gate>,
        clock: SystemClock,
        upstreams: &[Arc<Upstream>],
        (routes, worker): (&Routes, usize),
    ) -> Self {
        Self {
            server: policy.server.clone(),
            clock: Arc::new(clock),
            respond: Arc::new(Respond::of(&policy.server)),
            identify: HttpIdentify::new(Arc::clone(gate)),
            upstreams: upstreams.to_vec(),
            routes: policy.routes.iter().map(|route| routes.of(&route.name, worker)).collect(),
            no_route: routes.of(NO_ROUTE, worker),
            meant: Arc::new(Meant::new(policy)),
            access_log: policy.access_log.clone(),
            tells_criticality: criticality::is_known(policy),
            told_signals: policy.signals.iter().filter_map(told).collect(),
            degraded: policy.routes.iter().filter_map(degraded).collect(),
        }
    }

    /// The same, with the upstreams of `before` that are gone, and what means something to either.
    pub(crate) fn joined(&self, before: &Self) -> Self {
        let is_gone = |upstream: &&Arc<Upstream>| self.upstream(&upstream.spec.name).is_none();
        let gone = before.upstreams.iter().filter(is_gone);
        let upstreams = self.upstreams.iter().chain(gone).cloned().collect();
        Self { upstreams, meant: Arc::new(self.meant.joined(&before.meant)), ..self.clone() }
    }

    pub(crate) fn upstream(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.upstreams.get(self.position(name)?)
    }

    /// Where an upstream stands among them.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.upstreams.iter().position(|upstream| upstream.spec.name == name)
    }

    /// The cheaper answer of a route.
    pub(crate) fn degraded(&self, route: &Route) -> Option<&Degraded> {
        route.degrade.as_ref()?;
        self.degraded.iter().find(|(name, _)| *name == route.name).map(|(_, degraded)| degraded)
    }

    /// The answer to a request that may not pass: its route's cheaper one, if it is shed and there is one.
    pub(crate) fn refused(&self, now: Now, refused: &Refused, speech: Speech) -> Response<Bytes> {
        let Some(cheaper) = self.cheaper(refused) else {
            return self.respond.refused(now, refused, speech);
        };
        self.route(&refused.route().name).degraded(DegradeWhen::Shedding);
        cheaper.shed()
    }

    /// The same as it is written, where it is a usual one.
    pub(crate) fn page(&self, now: Now, refused: &Refused, speech: Speech) -> Option<Page> {
        if self.cheaper(refused).is_some() { None } else { self.respond.page(now, refused, speech) }
    }

    /// The cheaper answer of the route of what is shed.
    fn cheaper(&self, refused: &Refused) -> Option<&Degraded> {
        let is_shed = matches!(refused.cause, Cause::Shed | Cause::Reserve | Cause::Overload);
        let degraded = if is_shed { self.degraded(refused.route()) } else { None };
        degraded.filter(|degraded| degraded.is_for_shed())
    }

    /// The figures of a route. In the moment of a reload its name may be one we do not know yet.
    pub(crate) fn route(&self, name: &str) -> &Arc<RouteFigures> {
        self.routes.iter().find(|route| route.name() == name).unwrap_or(&self.no_route)
    }
}

/// The upstreams of a policy.
#[derive(Debug)]
pub(crate) struct Upstreams {
    pub(crate) all: Vec<Arc<Upstream>>,
    /// What those are to be held to that have changed, once the policy is in force.
    changes: Vec<(Arc<Upstream>, NewTerms)>,
}

impl Upstreams {
    /// The policy is in force.
    pub(crate) fn change(self) {
        self.changes.into_iter().for_each(|(upstream, terms)| upstream.door(0).retune(terms));
    }
}

/// The upstreams of `policy`. Those that are as they were `before` keep their connections; those of the same name and queue
/// what stands before them, with all that was learnt; and all of the same name the limit that was found.
pub(crate) fn upstreams(
    policy: &Policy,
    workers: usize,
    before: &[Arc<Upstream>],
    clock: SystemClock,
) -> Result<Upstreams, Invalid> {
    let mut changes = Vec::new();
    let is_tls = |upstream: &Arc<policy::Upstream>| upstream.endpoints.iter().any(|endpoint| endpoint.is_tls);
    let connector = Connector::new(policy.upstreams.iter().any(is_tls));
    let upstream = |spec: &Arc<policy::Upstream>| {
        let known = before.iter().find(|upstream| upstream.spec.name == spec.name);
        if let Some(same) = known.filter(|upstream| upstream.spec == *spec) {
            return Ok(Arc::clone(same));
        }
        let seed = chance::roll();
        let bulkhead = match known {
            Some(known) => match known.door(0).new_terms(spec)? {
                Some(terms) => {
                    let changed = Arc::new(known.changed(spec, &connector));
                    changes.push((Arc::clone(&changed), terms));
                    return Ok(changed);
                }
                None => known.door(0).succeeded_by(spec, seed)?,
            },
            None => Bulkhead::new(spec, seed, Arc::new(clock))?,
        };
        Ok(Arc::new(Upstream::new(spec, bulkhead, workers, &connector)))
    };
    let all = policy.upstreams.iter().map(upstream).collect::<Result<_, Invalid>>()?;
    Ok(Upstreams { all, changes })
}

fn told(signal: &SignalSpec) -> Option<(HeaderName, SignalName)> {
    match &signal.from {
        SignalFrom::ResponseHeader(name) => {
            Some((name.parse().ok()?, SignalName::Own(Arc::clone(&signal.name))))
        }
        SignalFrom::Api => None,
    }
}

fn degraded(route: &Route) -> Option<(String, Degraded)> {
    Some((route.name.clone(), Degraded::new(route.degrade.as_ref()?)))
}

/// What requests are counted under that no route takes.
pub(crate) const NO_ROUTE: &str = "none";
