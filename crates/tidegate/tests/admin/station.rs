//! A small station: a real gate, and figures made of what the gate counted.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::admin::{
    Admin, Attempts, CapacityStatus, Changes, Checked, ConcurrencyStatus, Connections, DegradeSwitch,
    DegradedAnswers, Durations, EndpointStatus, Figures, Findings, Gone, Histogram, InFlight, LastError,
    LoadFailure, MeasuredFamily, NotConfirmed, NotTaken, Offer, Overhead, PolicyText, Requests, SignalStatus,
    Stage, Station, SwitchedRoute, Taken, Token, Unloaded, UpstreamStatus,
};
use tidegate_core::concurrency::{Change, Why};
use tidegate_core::{Criticality, Moment, Ratio, WallTime};
use tidegate_policy::{Attributes, Decision, DecisionId, Explanation, Format, Gate, Now, Source};
use tidegate_proxy::metrics::{MetricFamily, MetricValue};

/// Three callers' quotas, places in flight, a rule that everybody shares and one that sheds.
pub(crate) const POLICY: &str = r#"
upstream = "http://127.0.0.1:3000"

[server]
trusted_proxies = ["10.0.0.0/8"]

[caller]
from = ["header:x-api-key", "client-ip"]

[rule.per_key]
key   = "caller"
quota = "10/min"
burst = 5

[rule.per_path]
key   = ["caller", "path"]
quota = "1000/s"

[rule.places]
kind  = "concurrency"
key   = "caller"
limit = 50

[rule.everybody]
quota = "100000/s"

[rule.worker_usage]
kind   = "shed"
target = { cpu = "85%", db_load = 0.5 }

[signal.db_load]
from = "api"

[signal.backlog]
from = "response_header:x-backlog"

[[route]]
name    = "catalogue"
match   = { path = "/v1/catalogue/**" }
rules   = ["everybody", "worker_usage"]
degrade = { when = "shedding", status = 200, body = "[]" }

[[route]]
name  = "all"
match = { path = "/**" }
rules = ["per_key", "per_path", "places", "everybody"]
"#;

/// When the clock begins.
const BEGIN: u64 = 1_790_000_000_000_000_000;

pub(crate) struct Small {
    gate: Gate,
    clock: AtomicU64,
    policy: Mutex<PolicyText>,
    stage: Mutex<Stage>,
    failure: Mutex<Option<LoadFailure>>,
    failures: AtomicU64,
    changes: Changes,
    strain: Mutex<Strain>,
}

/// What the station tells of overload.
#[derive(Clone)]
pub(crate) struct Strain {
    pub(crate) concurrency: ConcurrencyStatus,
    pub(crate) signals: Vec<SignalStatus>,
    /// The route that an operator switched, and until when.
    pub(crate) switched: Option<Option<Moment>>,
}

impl Strain {
    /// All places are taken, some wait, nobody is shed.
    fn none() -> Self {
        let signal = |name: &str, value| SignalStatus { name: name.to_owned(), value };
        let change = Change { from: 80, to: 64, why: Why::Queueing };
        let concurrency = ConcurrencyStatus {
            limit: 64,
            in_flight: 64,
            waiting: [9, 3, 0, 0],
            queue_delay: Duration::from_micros(18_250),
            baseline: Some(Duration::from_millis(10)),
            changes: vec![(Moment::from_nanos(BEGIN - 5_000_000_000), change)],
            last: Some(Change { from: 64, to: 64, why: Why::Queueing }),
            shed: [Ratio::ZERO; 4],
            refused: Vec::new(),
            wanted_ratio: 1.25,
            utilization: None,
            advises_against_retries: false,
        };
        Self {
            concurrency,
            signals: vec![
                signal("cpu", Some(0.42)),
                signal("queue_delay", Some(0.018_25)),
                signal("memory_pressure", None),
                signal("db_load", None),
                signal("backlog", Some(12.0)),
            ],
            switched: None,
        }
    }
}

/// A station with its admin API.
pub(crate) struct Running {
    pub(crate) station: Arc<Small>,
    pub(crate) admin: Admin,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::with_token(None)
    }

    pub(crate) fn with_token(token: Option<&str>) -> Self {
        let station = Arc::new(Small::new(POLICY));
        let token = token.map(|token| Token::new(token).unwrap());
        let admin = Admin::start(([127, 0, 0, 1], 0).into(), token, Arc::<Small>::clone(&station));
        Self { station, admin: admin.unwrap() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.admin.address()
    }
}

impl Small {
    pub(crate) fn new(policy: &str) -> Self {
        let (compiled, _) =
            tidegate_policy::read(Source::named("tidegate.toml", policy.as_bytes()), None).unwrap();
        let clock = AtomicU64::new(BEGIN);
        let policy = PolicyText {
            version: 1,
            name: "tidegate.toml".to_owned(),
            format: Format::Toml,
            text: policy.as_bytes().to_vec(),
        };
        Self {
            gate: Gate::new(compiled, 7, now(BEGIN)).unwrap(),
            clock,
            policy: Mutex::new(policy),
            stage: Mutex::new(Stage::Ready),
            failure: Mutex::default(),
            failures: AtomicU64::new(0),
            changes: Changes::default(),
            strain: Mutex::new(Strain::none()),
        }
    }

    /// Changes what it tells of overload.
    pub(crate) fn strain(&self, change: impl FnOnce(&mut Strain)) {
        change(&mut self.strain.lock().unwrap());
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.fetch_add(u64::try_from(by.as_nanos()).unwrap(), Ordering::Relaxed);
    }

    pub(crate) fn set_stage(&self, stage: Stage) {
        *self.stage.lock().unwrap() = stage;
    }

    pub(crate) fn fail(&self, summary: &str) {
        let failure = LoadFailure {
            since: self.now().wall,
            how: Unloaded::Wrong,
            summary: summary.to_owned(),
            findings: None,
        };
        *self.failure.lock().unwrap() = Some(failure);
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Decides about requests of a caller that end at once; returns the decisions' numbers and how many passed.
    pub(crate) fn requests(&self, caller: &str, count: usize) -> (Vec<DecisionId>, usize) {
        let headers = vec![("x-api-key".to_owned(), caller.to_owned())];
        let decisions: Vec<Decision> =
            (0..count).map(|_| self.gate.decide(self.now(), &attributes(&headers))).collect();
        let ids = decisions.iter().map(Decision::id).collect();
        (ids, decisions.iter().filter(|decision| decision.is_admit()).count())
    }
}

pub(crate) fn attributes(headers: &Vec<(String, String)>) -> Attributes<'_> {
    Attributes { method: "GET", path: "/v1/orders", host: "", headers, client: None, criticality: None }
}

fn now(nanos: u64) -> Now {
    Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) }
}

fn histogram(count: u64) -> Histogram {
    Histogram {
        steps: vec![(Duration::from_millis(1), count), (Duration::from_millis(10), 0)],
        beyond: 0,
        total: Duration::from_micros(500 * count),
    }
}

impl Station for Small {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn now(&self) -> Now {
        now(self.clock.load(Ordering::Relaxed))
    }

    fn started(&self) -> WallTime {
        now(BEGIN).wall
    }

    fn stage(&self) -> Stage {
        *self.stage.lock().unwrap()
    }

    fn drain(&self) {
        self.set_stage(Stage::Draining);
    }

    fn figures(&self) -> Figures {
        let statistics = self.gate.statistics(self.now());
        let (admitted, refused) = (statistics.admitted, statistics.refused);
        let route = || "all".to_owned();
        let in_flight = admitted - statistics.ended.iter().sum::<u64>();
        Figures {
            requests: vec![Requests {
                listener: "default".to_owned(),
                route: route(),
                criticality: Criticality::Critical,
                admitted,
                refused,
            }],
            durations: vec![Durations { route: route(), status_class: 2, histogram: histogram(admitted) }],
            overheads: vec![Overhead { phase: "decide", histogram: histogram(admitted + refused) }],
            degraded: vec![DegradedAnswers { route: route(), why: "shedding", count: 0 }],
            in_flight: vec![InFlight { route: route(), now: in_flight }],
            connections: vec![Connections {
                listener: "default".to_owned(),
                open: 1,
                accepted: 1,
                turned_away: 0,
                left: 0,
            }],
            attempts: vec![Attempts {
                upstream: "default".to_owned(),
                outcome: "ok",
                is_failure: false,
                count: admitted,
            }],
            unlogged: 0,
        }
    }

    fn metrics(&self) -> Vec<MeasuredFamily> {
        const ANSWER: MetricFamily = MetricFamily::gauge("answer", &["to"], "What it is.");
        let samples = vec![(vec!["everything".to_owned()], MetricValue::Count(42))];
        vec![MeasuredFamily { family: &ANSWER, samples }]
    }

    fn explain(&self, attributes: &Attributes<'_>) -> Explanation {
        self.gate.explain(self.now(), attributes)
    }

    fn upstreams(&self) -> Vec<UpstreamStatus> {
        let endpoint = EndpointStatus {
            url: "http://127.0.0.1:3000".to_owned(),
            connections: 2,
            in_flight: 1,
            failures: 1,
            last_error: Some(LastError { error: "connect_refused", at: WallTime::from_unix_nanos(BEGIN) }),
        };
        let concurrency = self.strain.lock().unwrap().concurrency.clone();
        vec![UpstreamStatus {
            name: "default".to_owned(),
            algorithm: "vegas",
            concurrency,
            endpoints: vec![endpoint],
        }]
    }

    fn signals(&self) -> Vec<SignalStatus> {
        self.strain.lock().unwrap().signals.clone()
    }

    fn tell(&self, signal: &str, value: f64) -> Result<(), Gone> {
        let mut strain = self.strain.lock().unwrap();
        let known = strain.signals.iter_mut().find(|known| known.name == signal).ok_or(Gone)?;
        known.value = Some(value);
        Ok(())
    }

    fn capacity(&self) -> CapacityStatus {
        let wanted_ratio = self.strain.lock().unwrap().concurrency.wanted_ratio;
        CapacityStatus { wanted_ratio, upstreams: vec![("default".to_owned(), wanted_ratio)] }
    }

    fn switched_routes(&self) -> Vec<SwitchedRoute> {
        let is_live = |until: &Option<Moment>| until.is_none_or(|until| until > self.now().moment);
        let switched = self.strain.lock().unwrap().switched.filter(is_live);
        switched.map(|until| SwitchedRoute { route: "catalogue".to_owned(), until }).into_iter().collect()
    }

    fn degrade(&self, route: &str, switch: DegradeSwitch) -> Result<(), Gone> {
        assert_eq!(route, "catalogue", "the API asks for routes with a cheaper answer only");
        self.strain.lock().unwrap().switched = match switch {
            DegradeSwitch::On { ttl } => Some(ttl.map(|ttl| self.now().moment.plus(ttl))),
            DegradeSwitch::Auto => None,
        };
        Ok(())
    }

    fn policy(&self) -> PolicyText {
        self.policy.lock().unwrap().clone()
    }

    fn check(&self, text: &[u8], format: Format) -> Checked {
        let source = Source { name: "checked", text, format };
        let (is_fine, problems) = match tidegate_policy::read(source, None) {
            Ok((_, warnings)) => (true, warnings),
            Err(problems) => (false, problems),
        };
        Checked { is_fine, findings: Findings::of(source, None, &problems) }
    }

    fn take(&self, offer: Offer<'_>) -> Result<Taken, NotTaken> {
        let mut policy = self.policy.lock().unwrap();
        if offer.replaces.is_some_and(|replaces| replaces != policy.version) {
            return Err(NotTaken::Replaced { version: policy.version });
        }
        let source = Source { name: "sent", text: offer.text, format: offer.format };
        let (compiled, warnings) = tidegate_policy::read(source, None).map_err(|problems| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            NotTaken::Wrong(Findings::of(source, None, &problems))
        })?;
        let version = self.gate.swap(compiled, self.now());
        let version = version.map_err(|problem| NotTaken::Failed(problem.to_string()))?;
        let (format, text) = (offer.format, offer.text.to_vec());
        *policy = PolicyText { version, name: "sent".to_owned(), format, text };
        *self.failure.lock().unwrap() = None;
        Ok(Taken { version, lost: Vec::new(), warnings: Findings::of(source, None, &warnings) })
    }

    fn confirm(&self) -> Result<Taken, NotConfirmed> {
        Err(NotConfirmed::NothingHeld)
    }

    fn lost(&self) -> Vec<String> {
        Vec::new()
    }

    fn changes(&self) -> &Changes {
        &self.changes
    }

    fn load_failure(&self) -> Option<LoadFailure> {
        self.failure.lock().unwrap().clone()
    }

    fn load_failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}
