//! Policies made by hand, for tests of the gate alone.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "every test file uses a part of it, and a policy that cannot be made fails the test"
)]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::keyed::MaxKeys;
use tidegate_core::rate::{
    Calendar, ColdFactor, FixedWindow, LeakyBucket, Period, SlidingLog, SlidingWindow, TokenBucket,
    UtcOffset, WarmUp,
};
use tidegate_core::{Cost, Criticality, Moment, Quota, WallTime};
use tidegate_policy::policy::{
    KeySource, KeySpec, KnownCallers, Limit, Line, Matcher, MethodCosts, Mode, PathPattern, Rate, Route,
    Rule, RuleCost, Server, Settle, Shape,
};
use tidegate_policy::{Attributes, Decision, Gate, Headers, Now, Policy};

pub(crate) fn at(millis: u64) -> Now {
    let nanos = millis * 1_000_000;
    Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) }
}

fn quota(amount: u32, window: Duration) -> Quota {
    Quota::new(Cost::of(amount), window).unwrap()
}

fn rate(written: String, quota: Quota, shape: Shape) -> Limit {
    Limit::Rate(Box::new(Rate { written, quota, shape }))
}

/// `amount` a second, burst as much.
pub(crate) fn bucket(amount: u32) -> Limit {
    bucket_of(amount, amount)
}

pub(crate) fn bucket_of(amount: u32, burst: u32) -> Limit {
    let quota = quota(amount, Duration::from_secs(1)).with_burst(Cost::of(burst)).unwrap();
    rate(format!("{amount}/s"), quota, Shape::TokenBucket(TokenBucket::new(quota)))
}

/// `amount` an hour: so slow that nothing comes back during a test.
pub(crate) fn hourly(amount: u32) -> Limit {
    let quota = quota(amount, Duration::from_secs(3600));
    rate(format!("{amount}/hour"), quota, Shape::TokenBucket(TokenBucket::new(quota)))
}

pub(crate) fn leaky(amount: u32, waiting: u32) -> Limit {
    let quota = quota(amount, Duration::from_secs(1));
    let rule = LeakyBucket::new(quota, Cost::of(waiting)).unwrap();
    rate(format!("{amount}/s"), quota, Shape::LeakyBucket(rule))
}

pub(crate) fn fixed(amount: u32, window: Duration) -> Limit {
    let quota = quota(amount, window);
    rate(format!("{amount}/window"), quota, Shape::FixedWindow(FixedWindow::new(quota).unwrap()))
}

pub(crate) fn sliding(amount: u32, window: Duration) -> Limit {
    let quota = quota(amount, window);
    rate(format!("{amount}/window"), quota, Shape::SlidingWindow(SlidingWindow::new(quota).unwrap()))
}

pub(crate) fn log(amount: u32, window: Duration) -> Limit {
    let quota = quota(amount, window);
    rate(format!("{amount}/window"), quota, Shape::SlidingLog(SlidingLog::new(quota).unwrap()))
}

pub(crate) fn daily(amount: u32) -> Limit {
    let quota = quota(amount, Duration::from_secs(86_400));
    let rule = Calendar::new(Cost::of(amount), Period::Day, UtcOffset::UTC).unwrap();
    rate(format!("{amount}/day"), quota, Shape::Calendar(rule))
}

pub(crate) fn warm(amount: u32) -> Limit {
    let quota = quota(amount, Duration::from_secs(1));
    let second = Duration::from_secs(1);
    let rule = WarmUp::new(quota, second, ColdFactor::THREE, second).unwrap();
    rate(format!("{amount}/s"), quota, Shape::WarmUp(rule))
}

pub(crate) fn rule(name: &str, key: &[KeySource], limit: Limit) -> Rule {
    Rule {
        name: name.to_owned(),
        line: Line(7),
        mode: Mode::Enforce,
        key: KeySpec(key.to_vec()),
        limit,
        plans: BTreeMap::new(),
        per_criticality: BTreeMap::new(),
        shadow: None,
        max_keys: MaxKeys::new(10_000).unwrap(),
        cost: None,
    }
}

pub(crate) fn settled(mut rule: Rule, estimate: u32, settle: Settle) -> Rule {
    rule.cost = Some(RuleCost { estimate: Cost::of(estimate), settle: Some(settle), abandoned: None });
    rule
}

pub(crate) fn shadowed(mut rule: Rule) -> Rule {
    rule.mode = Mode::Shadow;
    rule
}

pub(crate) fn route(name: &str, path: &str, rules: &[usize]) -> Route {
    Route {
        name: name.to_owned(),
        line: Line(20),
        matcher: Matcher { path: Some(PathPattern::new(path).unwrap()), ..Matcher::default() },
        upstream: None,
        rules: rules.to_vec(),
        cost: MethodCosts::ONE,
        is_exempt: false,
        upgrades: Vec::new(),
        degrade: None,
    }
}

/// All rules on one route for everything; callers by `x-api-key`, then by address.
pub(crate) fn policy(rules: Vec<Rule>) -> Policy {
    let all: Vec<usize> = (0..rules.len()).collect();
    Policy {
        rules: rules.into_iter().map(Arc::new).collect(),
        routes: vec![route("default", "/**", &all)],
        caller: KeySpec(vec![api_key(), KeySource::ClientIp]),
        known: KnownCallers::All,
        callers: BTreeMap::new(),
        criticality: Vec::new(),
        criticality_from: Vec::new(),
        default_criticality: Criticality::Critical,
        server: Server::default(),
        listeners: Vec::new(),
        upstreams: Vec::new(),
        signals: Vec::new(),
        access_log: None,
        log: tidegate_policy::policy::Log::default(),
        fingerprint_key: None,
    }
}

pub(crate) fn api_key() -> KeySource {
    KeySource::Header("x-api-key".to_owned())
}

pub(crate) fn gate(policy: Policy) -> Gate {
    Gate::new(policy, 0x5eed, at(0)).unwrap()
}

pub(crate) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// One header field, or none, without memory from the heap.
pub(crate) struct Field(pub(crate) Option<&'static str>);

impl Headers for Field {
    fn find(&self, name: &str) -> Option<tidegate_policy::Field<'_>> {
        let value = self.0.filter(|_| name == "x-api-key")?;
        Some(tidegate_policy::Field { first: value.as_bytes(), is_repeated: false })
    }
}

pub(crate) fn get<'a>(path: &'a str, headers: &'a dyn Headers) -> Attributes<'a> {
    Attributes { method: "GET", path, host: "", headers, client: Some(CLIENT), criticality: None }
}

/// `GET /` with this key.
pub(crate) fn ask(gate: &Gate, now: Now, key: &'static str) -> Decision {
    gate.decide(now, &get("/", &Field(Some(key))))
}
