//! Orders for single callers: limits of their own, and those that are kept out.

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use tidegate_policy::gate::{Block, CallerName, Order};
use tidegate_policy::policy::Limit;
use tidegate_policy::{Gate, Now};

use super::answer::{Json, Refusal, time_of, wall_of};
use super::callers::limit;
use super::guard::By;
use super::input::{Fields, InPath, Query, identity};
use super::rules::{known, limit_json};
use super::serve::Shared;
use super::station::Station;

/// `GET /api/v1/overrides`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let overrides = shared.aside(|shared| {
        let (gate, now) = (shared.station.gate(), shared.station.now());
        let limits = gate.overrides(now).into_iter().map(|order| order_json(gate, &order, now));
        let limits: Vec<Value> = limits.collect();
        let blocks = gate.blocks(now).into_iter().map(|block| block_json(gate, &block, now));
        limits.into_iter().chain(blocks).collect::<Vec<_>>()
    });
    Ok(Json::ok(json!({ "v": 1, "overrides": overrides.await? })))
}

fn order_json(gate: &Gate, order: &Order, now: Now) -> Value {
    json!({
        "caller": order.caller.to_string(),
        "fingerprint": format!("{:016x}", gate.fingerprint(&order.caller)),
        "rule": order.rule,
        "limit": limit_json(&order.limit),
        "block": false,
        "until": time_of(order.until, now),
    })
}

fn block_json(gate: &Gate, block: &Block, now: Now) -> Value {
    json!({
        "caller": block.caller.to_string(),
        "fingerprint": format!("{:016x}", gate.fingerprint(&block.caller)),
        "rule": block.rule,
        "block": true,
        "until": block.until.map(|until| time_of(until, now)),
    })
}

/// `PUT /api/v1/overrides/{caller}`: `{"rule": "request_rate", "quota": "50/s", "burst": 100, "ttl": "1h"}`, or
/// `{"block": true, "ttl": "1h"}`.
pub(super) async fn put(
    State(shared): State<Shared>,
    InPath(caller): InPath<String>,
    RawQuery(query): RawQuery,
    by: By,
    body: Body,
) -> Result<Json, Refusal> {
    let asked = Asked::read(&caller, query.as_deref(), true)?;
    let fields = Fields::read(body, &["rule", "quota", "burst", "limit", "block", "ttl"]).await?;
    let is_block = block_is_meant(&fields)?;
    let (rule, ttl) = (fields.text("rule", "a rule's name")?.map(str::to_owned), fields.length("ttl")?);
    if is_block {
        let ordered = shared.aside(move |shared| {
            let (station, now) = (&*shared.station, shared.station.now());
            rule.as_deref().map_or(Ok(()), |rule| known(station, rule))?;
            let caller = asked.caller(station)?;
            let block = Block { caller, rule, until: ttl.map(|ttl| now.moment.plus(ttl)) };
            keep_out(station, by, block, now)
        });
        return Ok(Json::ok(ordered.await??));
    }
    let rule = rule.ok_or_else(|| Refusal::bad("`rule` is missing; it must be a rule's name"))?;
    let ttl =
        ttl.ok_or_else(|| Refusal::bad("`ttl` is missing; it must be a length of time such as \"1h\""))?;
    let mut numbers = Map::new();
    if let Some(quota) = fields.quota("quota")? {
        numbers.insert("quota".to_owned(), quota.written.into());
    }
    for name in ["burst", "limit"] {
        if fields.number(name)?.is_some() {
            numbers.extend(fields.given(name).map(|number| (name.to_owned(), number.clone())));
        }
    }
    let ordered = shared.aside(move |shared| {
        let (station, now) = (&*shared.station, shared.station.now());
        known(station, &rule)?;
        let limit = limit(&station.policy(), asked.written(), &rule, numbers)?;
        let caller = asked.caller(station)?;
        let order = Order { caller, rule, limit, until: now.moment.plus(ttl) };
        give_limit(station, by, &order, now)
    });
    Ok(Json::ok(ordered.await??))
}

fn block_is_meant(fields: &Fields) -> Result<bool, Refusal> {
    match fields.given("block") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(true)) => {
            let other = ["quota", "burst", "limit"].into_iter().find(|name| fields.given(name).is_some());
            other.map_or(Ok(true), |name| {
                Err(Refusal::bad(format!("`{name}` does nothing with `block`; remove one of them")))
            })
        }
        Some(given) => {
            let detail = format!("`block` is {given}, but must be true; DELETE lets the caller in again");
            Err(Refusal::bad(detail))
        }
    }
}

fn give_limit(station: &dyn Station, by: By, order: &Order, now: Now) -> Result<Value, Refusal> {
    let gate = station.gate();
    let key = gate.fingerprint(&order.caller);
    let is_same = |other: &Order| other.rule == order.rule && gate.fingerprint(&other.caller) == key;
    let before = gate.overrides(now).into_iter().find(is_same);
    let set = gate.set_override(order.caller.clone(), &order.rule, order.limit.clone(), order.until, now);
    set.map_err(|problem| Refusal::new(StatusCode::CONFLICT, problem.to_string()))?;
    let was = before.map_or_else(|| "as the policy says".to_owned(), |before| spoken(&before.limit));
    let what = format!("limit of caller {} by rule {}", shown(gate, &order.caller), order.rule);
    let until = Some(wall_of(order.until, now));
    by.changed(station, what, was, spoken(&order.limit), until);
    Ok(order_json(gate, order, now))
}

fn keep_out(station: &dyn Station, by: By, block: Block, now: Now) -> Result<Value, Refusal> {
    let gate = station.gate();
    let key = gate.fingerprint(&block.caller);
    let is_same = |other: &Block| other.rule == block.rule && gate.fingerprint(&other.caller) == key;
    let was = if gate.blocks(now).iter().any(is_same) { "blocked" } else { "let in" };
    let set = gate.block(block.clone(), now);
    set.map_err(|problem| Refusal::new(StatusCode::CONFLICT, problem.to_string()))?;
    let until = block.until.map(|until| wall_of(until, now));
    by.changed(station, blocked(gate, &block), was.to_owned(), "blocked".to_owned(), until);
    Ok(block_json(gate, &block, now))
}

/// `DELETE /api/v1/overrides/{caller}?rule=NAME`: those of that caller by one rule, or all; with `block=1` only blocks.
pub(super) async fn delete(
    State(shared): State<Shared>,
    InPath(caller): InPath<String>,
    RawQuery(query): RawQuery,
    by: By,
) -> Result<Json, Refusal> {
    let asked = Asked::read(&caller, query.as_deref(), false)?;
    let cleared = shared.aside(move |shared| {
        let (station, now) = (&*shared.station, shared.station.now());
        let (gate, only) = (station.gate(), asked.only.as_deref());
        let key = gate.fingerprint(&asked.name);
        let mut cleared = Vec::new();
        for order in gate.overrides(now).into_iter().filter(|_| !asked.is_block) {
            let is_meant =
                gate.fingerprint(&order.caller) == key && only.is_none_or(|rule| order.rule == rule);
            if !is_meant {
                continue;
            }
            let was_there = gate.clear_override(order.caller.clone(), &order.rule, now);
            if was_there.map_err(|problem| Refusal::new(StatusCode::CONFLICT, problem.to_string()))? {
                let what = format!("limit of caller {} by rule {}", shown(gate, &order.caller), order.rule);
                by.changed(station, what, spoken(&order.limit), "as the policy says".to_owned(), None);
                cleared.push(Value::from(order.rule));
            }
        }
        for block in gate.blocks(now) {
            let is_meant =
                gate.fingerprint(&block.caller) == key && (only.is_none() || block.rule.as_deref() == only);
            if is_meant && gate.unblock(&block.caller, block.rule.as_deref(), now) {
                by.changed(station, blocked(gate, &block), "blocked".to_owned(), "let in".to_owned(), None);
                cleared.push(block.rule.map_or_else(|| "block".into(), Value::from));
            }
        }
        if cleared.is_empty() {
            let of_rule = only.map_or(String::new(), |rule| format!(" by rule `{rule}`"));
            let caller = asked.written();
            return Err(Refusal::missing(format!("caller `{caller}` has no override{of_rule}")));
        }
        Ok(json!({ "v": 1, "caller": asked.name.to_string(), "cleared": cleared }))
    });
    Ok(Json::ok(cleared.await??))
}

fn spoken(limit: &Limit) -> String {
    match limit {
        Limit::Rate(rate) => rate.written.clone(),
        Limit::Concurrency(limit) => format!("{limit} in flight"),
        Limit::Reserve(_) | Limit::Shed(_) => "of the rule's own kind".to_owned(),
    }
}

fn blocked(gate: &Gate, block: &Block) -> String {
    let rule = block.rule.as_ref().map_or(String::new(), |rule| format!(" by rule {rule}"));
    format!("caller {}{rule}", shown(gate, &block.caller))
}

/// As lists show it: it may be a secret, and what is changed stands in the log.
fn shown(gate: &Gate, caller: &CallerName) -> String {
    format!("{} ({:016x})", gate.shown(caller), gate.fingerprint(caller))
}

/// The caller that a request is about.
#[derive(Debug)]
pub(super) struct Asked {
    name: CallerName,
    written: String,
    is_new: bool,
    only: Option<String>,
    /// Whether limits of its own stay.
    is_block: bool,
}

impl Asked {
    fn read(caller: &str, query: Option<&str>, is_put: bool) -> Result<Self, Refusal> {
        let known: &[&str] = if is_put { &["by", "new"] } else { &["by", "rule", "block"] };
        let query = Query::read(query, known)?;
        let name = named(caller, &query)?;
        let is_new = is_put && query.flag("new")?;
        let only = query.given("rule").map(str::to_owned);
        let is_block = !is_put && query.flag("block")?;
        Ok(Self { name, written: caller.to_owned(), is_new, only, is_block })
    }

    /// As it stands in the request.
    fn written(&self) -> &str {
        &self.written
    }

    /// The caller, if there is one: an order for a mistyped name would do nothing, and nothing would tell.
    fn caller(&self, station: &dyn Station) -> Result<CallerName, Refusal> {
        let (gate, now) = (station.gate(), station.now());
        let shown = match &self.name {
            CallerName::Fingerprint { bits, .. } => gate.shown_as(*bits),
            CallerName::Identity(_) => None,
        };
        if !self.is_new && shown.is_none() && !gate.has_seen(&self.name, now) {
            let nearest = gate.nearest_callers(&self.written, 3);
            let nearest = nearest.iter().map(|(shown, bits)| format!("`{shown}` ({bits:016x})"));
            let nearest: Vec<String> = nearest.collect();
            let nearest = match nearest.as_slice() {
                [] => "no caller is known yet".to_owned(),
                nearest => format!("the nearest are {}", nearest.join(", ")),
            };
            return Err(Refusal::missing(format!(
                "caller `{}` is in no table, override, counter or list; {nearest}; `?new=1` (ctl: --new) takes it \
                 nevertheless",
                self.written
            )));
        }
        Ok(match &self.name {
            CallerName::Fingerprint { bits, .. } => CallerName::Fingerprint { bits: *bits, shown },
            CallerName::Identity(_) => self.name.clone(),
        })
    }
}

/// An identity, or with `?by=fingerprint` what lists show beside it.
pub(super) fn named(written: &str, query: &Query<'_>) -> Result<CallerName, Refusal> {
    match query.given("by") {
        None | Some("identity") => Ok(CallerName::Identity(identity(written)?.to_owned())),
        Some("fingerprint") => Ok(CallerName::Fingerprint { bits: fingerprint(written)?, shown: None }),
        Some(other) => {
            Err(Refusal::bad(format!("`by` is `{other}`, but must be `identity` or `fingerprint`")))
        }
    }
}

pub(super) fn fingerprint(written: &str) -> Result<u64, Refusal> {
    let is_one = written.len() == 16 && written.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = u64::from_str_radix(written, 16).ok().filter(|_| is_one);
    bits.ok_or_else(|| {
        Refusal::bad(
            "a fingerprint has sixteen hexadecimal digits, as lists and logs show it beside the caller",
        )
    })
}
