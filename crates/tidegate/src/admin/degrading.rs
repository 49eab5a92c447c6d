//! The routes, and the switch of their cheaper answers.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tidegate_policy::policy::{Policy, Route};

use super::answer::{Json, Refusal, time_of, wall_of};
use super::guard::By;
use super::input::{Fields, InPath, listed};
use super::overload::Overload;
use super::serve::Shared;
use super::station::{DegradeSwitch, Station};

/// `GET /api/v1/routes`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let routes = shared.aside(|shared| all(&*shared.station)).await?;
    Ok(Json::ok(json!({ "v": 1, "routes": routes })))
}

/// `PATCH /api/v1/routes/{name}`: `{"degrade": "on", "ttl": "10min"}`, or `{"degrade": "auto"}` to go by the policy.
pub(super) async fn patch(
    State(shared): State<Shared>,
    InPath(name): InPath<String>,
    by: By,
    body: Body,
) -> Result<Json, Refusal> {
    let fields = Fields::read(body, &["degrade", "ttl"]).await?;
    let ttl = fields.length("ttl")?;
    let switch = match fields.given("degrade").map(|given| (given.as_str(), given)) {
        None => return Err(Refusal::bad("`degrade` is missing; it must be `on` or `auto`")),
        Some((Some("on"), _)) => DegradeSwitch::On { ttl },
        Some((Some("auto"), _)) if ttl.is_some() => {
            return Err(Refusal::bad("`ttl` does nothing with `auto`; remove it"));
        }
        Some((Some("auto"), _)) => DegradeSwitch::Auto,
        Some((_, given)) => {
            return Err(Refusal::bad(format!("`degrade` is {given}, but must be `on` or `auto`")));
        }
    };
    let switched = shared.aside(move |shared| {
        let station = &*shared.station;
        has_cheaper_answer(&station.gate().policy(), &name)?;
        let (now, before) = (station.now(), station.switched_routes());
        let was = if before.iter().any(|route| route.route == name) { "on" } else { "auto" };
        let (set, until) = match switch {
            DegradeSwitch::On { ttl } => ("on", ttl.map(|ttl| wall_of(now.moment.plus(ttl), now))),
            DegradeSwitch::Auto => ("auto", None),
        };
        let gone = |gone| Refusal::missing(format!("route `{name}`: {gone}"));
        station.degrade(&name, switch).map_err(gone)?;
        by.changed(station, format!("cheaper answer of route {name}"), was.to_owned(), set.to_owned(), until);
        let found = all(station).into_iter().find(|route| route["route"] == name.as_str());
        found.ok_or_else(|| Refusal::missing(format!("route `{name}` has gone meanwhile")))
    });
    Ok(Json::ok(switched.await??))
}

fn has_cheaper_answer(policy: &Policy, name: &str) -> Result<(), Refusal> {
    let has_one = |route: &&Route| route.degrade.is_some();
    match policy.routes.iter().find(|route| route.name == name) {
        Some(route) if route.degrade.is_some() => Ok(()),
        Some(_) => {
            let names: Vec<&str> =
                policy.routes.iter().filter(has_one).map(|route| route.name.as_str()).collect();
            let detail = format!(
                "route `{name}` has no cheaper answer to give: add `degrade` to it; routes with one are {}",
                listed(&names)
            );
            Err(Refusal::new(StatusCode::CONFLICT, detail))
        }
        None => {
            let names: Vec<&str> = policy.routes.iter().map(|route| route.name.as_str()).collect();
            Err(Refusal::missing(format!("there is no route `{name}`; the routes are {}", listed(&names))))
        }
    }
}

fn all(station: &dyn Station) -> Vec<Value> {
    let (policy, overload, now) = (station.gate().policy(), Overload::of(station), station.now());
    let rules = |route: &Route| {
        let rules = route.rules.iter().filter_map(|position| policy.rules.get(*position));
        rules.map(|rule| rule.name.clone()).collect::<Vec<_>>()
    };
    let degrade = |route: &Route| {
        let degrade = route.degrade.as_ref()?;
        let switched = overload.switched.iter().find(|switched| switched.route == route.name);
        Some(json!({
            "when": degrade.when.as_str(),
            "status": degrade.status,
            "given_to": overload.given_to(route, &policy).as_str(),
            "until": switched.and_then(|switched| switched.until).map(|until| time_of(until, now)),
        }))
    };
    let routes = policy.routes.iter().map(|route| {
        json!({
            "route": route.name,
            "line": route.line.0,
            "upstream": route.upstream,
            "rules": rules(route),
            "exempt": route.is_exempt,
            "degrade": degrade(route),
        })
    });
    routes.collect()
}
