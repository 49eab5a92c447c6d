//! What the running gateway tells the admin API.

use std::time::Duration;

use tidegate_core::{Criticality, WallTime};
use tidegate_policy::{Attributes, Explanation, Format, Gate, Now};
use tidegate_proxy::AttemptOutcome;
use tidegate_proxy::figures::{BOUNDS_MICROS, DECIDE_BOUNDS_NANOS, DEGRADED_WHEN, RouteCounts};
use tidegate_tower::Clock;

use super::keeper::Keeper;
use super::vitals::process;
use crate::admin::{
    Attempts, CapacityStatus, Changes, Checked, Connections, DegradeSwitch, DegradedAnswers, Durations,
    EndpointStatus, Figures, Gone, InFlight, LastError, LoadFailure, MeasuredFamily, NotConfirmed, NotTaken,
    Offer, OpenFiles, Overhead, PolicyText, Requests, SignalStatus, Stage, Station, SwitchedRoute, Taken,
    UpstreamStatus,
};

impl Station for Keeper {
    fn gate(&self) -> &Gate {
        self.gateway().gate()
    }

    fn now(&self) -> Now {
        self.clock().now()
    }

    fn started(&self) -> WallTime {
        self.started()
    }

    fn stage(&self) -> Stage {
        self.stage()
    }

    fn drain(&self) {
        self.ask_to_drain();
    }

    fn open_files(&self) -> Option<OpenFiles> {
        let tidegate_proxy::OpenFiles { allowed, for_callers, of_callers, .. } =
            tidegate_proxy::OpenFiles::now();
        Some(OpenFiles { allowed, for_callers, of_callers })
    }

    fn figures(&self) -> Figures {
        let counted = self.gateway().figures();
        let names: Vec<&str> = counted.listeners.iter().map(|listener| listener.listener.as_str()).collect();
        let connections = counted.listeners.iter().map(|listener| Connections {
            listener: listener.listener.clone(),
            open: listener.open as u64,
            accepted: listener.accepted,
            turned_away: listener.turned_away,
            left: listener.left,
        });
        Figures {
            requests: counted.routes.iter().flat_map(|route| requests(route, &names)).collect(),
            durations: counted.routes.iter().flat_map(durations).collect(),
            overheads: vec![Overhead {
                phase: "decide",
                histogram: counted.decide.histogram(DECIDE_BOUNDS_NANOS.map(Duration::from_nanos)),
            }],
            degraded: counted.routes.iter().flat_map(degraded).collect(),
            in_flight: counted.routes.iter().map(in_flight).collect(),
            connections: connections.collect(),
            attempts: self.gateway().upstreams().iter().flat_map(attempts).collect(),
            unlogged: counted.unlogged,
        }
    }

    fn metrics(&self) -> Vec<MeasuredFamily> {
        let mut measured = self.gateway().metrics();
        measured.extend(process::metrics(self.started()));
        measured
    }

    fn explain(&self, attributes: &Attributes<'_>) -> Explanation {
        self.gateway().explain(attributes)
    }

    fn upstreams(&self) -> Vec<UpstreamStatus> {
        let endpoint = |endpoint: tidegate_proxy::EndpointStatus| EndpointStatus {
            url: endpoint.url,
            connections: endpoint.connections as u64,
            in_flight: endpoint.in_flight as u64,
            failures: endpoint.failures,
            last_error: endpoint.last_error.map(|(error, at)| LastError { error: error.as_str(), at }),
        };
        let upstreams = self.gateway().upstreams().into_iter().map(|upstream| UpstreamStatus {
            name: upstream.upstream,
            algorithm: upstream.algorithm,
            concurrency: upstream.bulkhead,
            endpoints: upstream.endpoints.into_iter().map(endpoint).collect(),
        });
        upstreams.collect()
    }

    fn signals(&self) -> Vec<SignalStatus> {
        let signals = self.gateway().signals().into_iter();
        signals.map(|signal| SignalStatus { name: signal.name.to_string(), value: signal.value }).collect()
    }

    fn tell(&self, signal: &str, value: f64) -> Result<(), Gone> {
        self.gateway().tell(signal, value).map_err(|_| Gone)
    }

    fn capacity(&self) -> CapacityStatus {
        self.gateway().capacity()
    }

    fn switched_routes(&self) -> Vec<SwitchedRoute> {
        let now = self.now().moment;
        let switched = self.gateway().routes().into_iter().filter(|route| route.is_switched);
        let switched = switched.map(|route| SwitchedRoute {
            route: route.route,
            until: route.switched_for.map(|left| now.plus(left)),
        });
        switched.collect()
    }

    fn degrade(&self, route: &str, switch: DegradeSwitch) -> Result<(), Gone> {
        let (is_on, ttl) = match switch {
            DegradeSwitch::On { ttl } => (true, ttl),
            DegradeSwitch::Auto => (false, None),
        };
        self.gateway().degrade(route, is_on, ttl).map_err(|_| Gone)
    }

    fn policy(&self) -> PolicyText {
        self.policy()
    }

    fn check(&self, text: &[u8], format: Format) -> Checked {
        self.check(text, format)
    }

    fn take(&self, offer: Offer<'_>) -> Result<Taken, NotTaken> {
        self.take(offer)
    }

    fn confirm(&self) -> Result<Taken, NotConfirmed> {
        self.confirm()
    }

    fn lost(&self) -> Vec<String> {
        self.lost()
    }

    fn changes(&self) -> &Changes {
        self.changes()
    }

    fn load_failure(&self) -> Option<LoadFailure> {
        self.load_failure()
    }

    fn load_failures(&self) -> u64 {
        self.load_failures()
    }
}

fn requests(route: &RouteCounts, listeners: &[&str]) -> Vec<Requests> {
    let by_listener = listeners.iter().zip(&route.decided);
    let all = by_listener.flat_map(|(listener, levels)| {
        Criticality::ALL.iter().zip(levels).map(|(criticality, [refused, admitted])| Requests {
            listener: (*listener).to_owned(),
            route: route.route.clone(),
            criticality: *criticality,
            admitted: *admitted,
            refused: *refused,
        })
    });
    all.collect()
}

/// By class of status, those that occurred.
fn durations(route: &RouteCounts) -> Vec<Durations> {
    let classes = (1..).zip(&route.durations).map(|(status_class, took)| Durations {
        route: route.route.clone(),
        status_class,
        histogram: took.histogram(BOUNDS_MICROS.map(Duration::from_micros)),
    });
    classes.filter(|class| class.histogram.count() > 0).collect()
}

fn degraded(route: &RouteCounts) -> impl Iterator<Item = DegradedAnswers> {
    let counts = DEGRADED_WHEN.iter().zip(route.degraded);
    counts.map(|(why, count)| DegradedAnswers { route: route.route.clone(), why: why.as_str(), count })
}

fn in_flight(route: &RouteCounts) -> InFlight {
    InFlight { route: route.route.clone(), now: route.in_flight }
}

fn attempts(upstream: &tidegate_proxy::UpstreamStatus) -> Vec<Attempts> {
    let all = AttemptOutcome::ALL.iter().zip(upstream.attempts).map(|(outcome, count)| Attempts {
        upstream: upstream.upstream.clone(),
        outcome: outcome.as_str(),
        is_failure: is_failure(*outcome),
        count,
    });
    all.collect()
}

const fn is_failure(outcome: AttemptOutcome) -> bool {
    match outcome {
        AttemptOutcome::Error
        | AttemptOutcome::ConnectFailure
        | AttemptOutcome::Reset
        | AttemptOutcome::Timeout => true,
        // That no connection was free is our own bound, and that a body broke off is its caller's doing.
        AttemptOutcome::Ok | AttemptOutcome::Busy | AttemptOutcome::CallerGone => false,
    }
}
