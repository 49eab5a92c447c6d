//! Callers: the heaviest, and those with a limit of their own for a time.

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use tidegate_core::Cost;
use tidegate_core::heavy::{Heavy, Ranking};
use tidegate_policy::gate::Order;
use tidegate_policy::policy::Limit;
use tidegate_policy::problem::{File, Severity};
use tidegate_policy::record::cost_json;
use tidegate_policy::{Format, Now, Source};

use super::answer::{Json, Refusal, time_of};
use super::input::{Fields, InPath, Query, either, identity};
use super::rules::{known, limit_json};
use super::serve::Shared;
use super::station::PolicyText;

/// The length of the gate's lists.
const MOST_CALLERS: usize = 32;

/// `GET /api/v1/callers?sort=refused&n=20`
pub(super) async fn get(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json, Refusal> {
    let query = Query::read(query.as_deref(), &["sort", "n"])?;
    let most = query.count("n", 20, MOST_CALLERS)?;
    let (sort, ranking) = match query.given("sort") {
        None | Some("refused") => ("refused", Ranking::Refusals),
        Some("cost") => ("cost", Ranking::Cost),
        Some("shadow") => ("shadow", Ranking::ShadowRefusals),
        Some(other) => {
            let words = either(&["refused", "cost", "shadow"]);
            return Err(Refusal::bad(format!("`sort` is `{other}`, but must be {words}")));
        }
    };
    let callers = shared.station.gate().callers(ranking, most);
    let callers: Vec<Value> = callers.iter().map(|heavy| heavy_json(heavy, ranking)).collect();
    Ok(Json::ok(json!({ "v": 1, "sort": sort, "callers": callers })))
}

fn heavy_json(heavy: &Heavy, ranking: Ranking) -> Value {
    let counted = |count: u64| match ranking {
        Ranking::Cost => cost_json(Cost::from_micros(count)),
        Ranking::Refusals | Ranking::ShadowRefusals => count.into(),
    };
    json!({
        "caller": heavy.name.as_str(),
        "fingerprint": format!("{:016x}", heavy.key.bits()),
        "weight": counted(heavy.weight),
        "error": counted(heavy.error),
    })
}

/// `GET /api/v1/overrides`
pub(super) async fn overrides(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let overrides = shared.aside(|shared| {
        let now = shared.station.now();
        let orders = shared.station.gate().overrides(now);
        orders.iter().map(|order| order_json(order, now)).collect::<Vec<_>>()
    });
    Ok(Json::ok(json!({ "v": 1, "overrides": overrides.await? })))
}

fn order_json(order: &Order, now: Now) -> Value {
    json!({
        "caller": order.caller,
        "rule": order.rule,
        "limit": limit_json(&order.limit),
        "until": time_of(order.until, now),
    })
}

/// `PUT /api/v1/overrides/{caller}`: `{"rule": "request_rate", "quota": "50/s", "burst": 100, "ttl": "1h"}`.
pub(super) async fn put(
    State(shared): State<Shared>,
    InPath(caller): InPath<String>,
    body: Body,
) -> Result<Json, Refusal> {
    identity(&caller)?;
    let fields = Fields::read(body, &["rule", "quota", "burst", "limit", "ttl"]).await?;
    let rule = fields.needed_text("rule", "a rule's name")?.to_owned();
    let ttl = fields.length("ttl")?;
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
        let limit = limit(&station.policy(), &caller, &rule, numbers)?;
        let order = Order { caller, rule, limit, until: now.moment.plus(ttl) };
        let set =
            station.gate().set_override(&order.caller, &order.rule, order.limit.clone(), order.until, now);
        set.map_err(|problem| Refusal::new(StatusCode::CONFLICT, problem.to_string()))?;
        Ok(order_json(&order, now))
    });
    Ok(Json::ok(ordered.await??))
}

/// `DELETE /api/v1/overrides/{caller}?rule=NAME`: one, or all of that caller.
pub(super) async fn delete(
    State(shared): State<Shared>,
    InPath(caller): InPath<String>,
    RawQuery(query): RawQuery,
) -> Result<Json, Refusal> {
    identity(&caller)?;
    let query = Query::read(query.as_deref(), &["rule"])?;
    let only = query.given("rule").map(str::to_owned);
    let cleared = shared.aside(move |shared| {
        let (gate, now) = (shared.station.gate(), shared.station.now());
        let is_meant =
            |order: &Order| order.caller == caller && only.as_ref().is_none_or(|rule| order.rule == *rule);
        let mut cleared = Vec::new();
        for order in gate.overrides(now).into_iter().filter(is_meant) {
            let was_there = gate.clear_override(&order.caller, &order.rule, now);
            if was_there.map_err(|problem| Refusal::new(StatusCode::CONFLICT, problem.to_string()))? {
                cleared.push(order.rule);
            }
        }
        if cleared.is_empty() {
            let by = only.map_or(String::new(), |rule| format!(" by rule `{rule}`"));
            return Err(Refusal::missing(format!("caller `{caller}` has no override{by}")));
        }
        Ok(json!({ "v": 1, "caller": caller, "cleared": cleared }))
    });
    Ok(Json::ok(cleared.await??))
}

/// The rule's limit with other numbers: what a table of callers with this one entry would make of the policy. So an
/// override means the same here as there, and its mistakes are told in the same words.
fn limit(
    policy: &PolicyText,
    caller: &str,
    rule: &str,
    numbers: Map<String, Value>,
) -> Result<Limit, Refusal> {
    let entry = json!({ caller: { "overrides": { rule: numbers } } }).to_string();
    let callers = Source { name: "override", text: entry.as_bytes(), format: Format::Yaml };
    let source = Source { name: &policy.name, text: &policy.text, format: policy.format };
    match tidegate_policy::read(source, Some(callers)) {
        Ok((read, _)) => {
            let found = read.callers.get(caller).and_then(|caller| caller.overrides.get(rule));
            found.cloned().ok_or_else(|| Refusal::bad("these numbers make no limit"))
        }
        Err(problems) => {
            let of_these = problems
                .iter()
                .filter(|problem| problem.severity() == Severity::Error && problem.file == File::Callers);
            let told: Vec<String> = of_these.map(told).collect();
            let detail =
                if told.is_empty() { "the policy itself cannot be read".to_owned() } else { told.join("; ") };
            Err(Refusal::bad(detail))
        }
    }
}

fn told(problem: &tidegate_policy::Problem) -> String {
    let advice = problem.label.as_ref().or(problem.help.as_ref());
    advice.map_or_else(|| problem.message.clone(), |advice| format!("{}: {advice}", problem.message))
}
