//! Every path with its method and its handler.

use axum::Router;
use axum::extract::State;
use axum::handler::Handler;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};

use super::answer::{Refusal, mark, written};
use super::guard::guard;
use super::seats::reserve;
use super::serve::Shared;
use super::{
    OPENAPI, callers, capacity, changes, counters, decisions, degrading, metrics, orders, policy, rules,
    signals, status, stream, upstreams,
};

/// One thing that can be asked.
pub(super) struct Endpoint {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "its handler knows it; tests compare it with what is published")
    )]
    method: Method,
    path: &'static str,
    handler: MethodRouter<Shared>,
}

impl Endpoint {
    fn new<H: Handler<T, Shared>, T: 'static>(method: Method, path: &'static str, handler: H) -> Self {
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        Self { method, path, handler: on(filter, handler) }
    }
}

/// Everything that can be asked. `docs/reference/openapi.json` has the same list.
fn endpoints() -> Vec<Endpoint> {
    use Endpoint as E;
    vec![
        E::new(Method::GET, "/livez", status::livez),
        E::new(Method::GET, "/readyz", status::readyz),
        E::new(Method::GET, "/metrics", metrics::get),
        E::new(Method::GET, "/api/v1/status", status::get),
        E::new(Method::GET, "/api/v1/policy", policy::get),
        E::new(Method::PUT, "/api/v1/policy", policy::put),
        E::new(Method::POST, "/api/v1/policy/check", policy::check),
        E::new(Method::POST, "/api/v1/policy/confirm", policy::confirm),
        E::new(Method::GET, "/api/v1/rules", rules::get),
        E::new(Method::PATCH, "/api/v1/rules/{name}", rules::patch),
        E::new(Method::GET, "/api/v1/callers", callers::get),
        E::new(Method::GET, "/api/v1/overrides", orders::get),
        E::new(Method::PUT, "/api/v1/overrides/{caller}", orders::put),
        E::new(Method::DELETE, "/api/v1/overrides/{caller}", orders::delete),
        // A key may be a path, with slashes.
        E::new(Method::GET, "/api/v1/counters/{rule}/{*key}", counters::get),
        E::new(Method::DELETE, "/api/v1/counters/{rule}/{*key}", counters::delete),
        E::new(Method::GET, "/api/v1/upstreams", upstreams::get),
        E::new(Method::GET, "/api/v1/capacity", capacity::get),
        E::new(Method::GET, "/api/v1/signals", signals::get),
        E::new(Method::PUT, "/api/v1/signals/{name}", signals::put),
        E::new(Method::GET, "/api/v1/routes", degrading::get),
        E::new(Method::PATCH, "/api/v1/routes/{name}", degrading::patch),
        E::new(Method::POST, "/api/v1/explain", policy::explain),
        E::new(Method::GET, "/api/v1/changes", changes::get),
        E::new(Method::GET, "/api/v1/decisions", decisions::get),
        E::new(Method::GET, "/api/v1/decisions/{id}", decisions::one),
        E::new(Method::GET, "/api/v1/stream", stream::get),
        E::new(Method::POST, "/api/v1/drain", status::drain),
        E::new(Method::GET, "/api/v1/openapi.json", openapi),
    ]
}

pub(super) fn router(shared: Shared) -> Router {
    let mut router = Router::new();
    for Endpoint { method: _, path, handler } in endpoints() {
        router = router.route(path, handler);
    }
    let guarded = from_fn_with_state(shared.clone(), guard);
    let router = router.fallback(unknown).method_not_allowed_fallback(not_allowed);
    router.layer(guarded).layer(from_fn(reserve)).layer(map_response(mark)).with_state(shared)
}

async fn openapi(State(_): State<Shared>) -> Response {
    written(StatusCode::OK, "application/json", OPENAPI)
}

async fn unknown(uri: Uri) -> Response {
    let detail = format!("there is nothing at {}; see /api/v1/openapi.json", uri.path());
    Refusal::missing(detail).into_response()
}

async fn not_allowed(method: Method, uri: Uri) -> Response {
    let detail = format!("{method} cannot be asked of {}; see /api/v1/openapi.json", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, detail).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_published_description_lists_every_endpoint_and_no_other() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = described["paths"].as_object().unwrap();
        let published: BTreeSet<String> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys().filter(|name| *name != "parameters");
                methods.map(move |method| format!("{} {path}", method.to_uppercase()))
            })
            .collect();
        let served: BTreeSet<String> = endpoints()
            .iter()
            .map(|endpoint| format!("{} {}", endpoint.method, endpoint.path.replace("{*", "{")))
            .collect();
        assert_eq!(published, served);
    }
}
