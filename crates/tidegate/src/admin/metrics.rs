//! The page for Prometheus.
//!
//! Written afresh for every scrape, from counts that others keep: nothing here is updated by a request. Labels come
//! from the policy and from closed sets. Callers are never among them: strangers can invent callers, and the heaviest
//! are in `/api/v1/callers`.

mod overload;
mod text;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tidegate_core::Criticality;
use tidegate_policy::ReasonWord;
use tidegate_policy::gate::{Statistics, UpstreamRefusals};
use tidegate_policy::policy::{Limit, Policy};

use self::text::{Family, Page};
use super::answer::{Refusal, written};
use super::overload::Overload;
use super::serve::Shared;
use super::station::{Figures, Station};

/// `GET /metrics`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Response, Refusal> {
    let page = shared.aside(|shared| page(&*shared.station)).await?;
    Ok(written(StatusCode::OK, Page::TYPE, page))
}

fn page(station: &dyn Station) -> String {
    let mut page = Page::default();
    requests(&mut page, &station.figures());
    let policy = station.gate().policy();
    let statistics = station.gate().statistics(station.now());
    rules(&mut page, &policy, &statistics);
    overload::write(&mut page, &Overload::of(station));
    page.gauge("tidegate_policy_version", "The number of the policy that is decided with.")
        .sample(&[], station.gate().version());
    page.counter("tidegate_policy_load_failures_total", "Policies that were not taken.")
        .sample(&[], station.load_failures());
    page.gauge("tidegate_build_info", "What is running.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.finish()
}

fn requests(page: &mut Page, figures: &Figures) {
    let mut family = page.counter("tidegate_requests_total", "Requests decided.");
    for requests in &figures.requests {
        for (decision, count) in [("admitted", requests.admitted), ("refused", requests.refused)] {
            let labels = [
                ("listener", requests.listener.as_str()),
                ("route", &requests.route),
                ("criticality", requests.criticality.as_str()),
                ("decision", decision),
            ];
            family.sample(&labels, count);
        }
    }
    let help = "Cheaper answers given instead of a refusal, or because an operator wants them.";
    let mut family = page.counter("tidegate_degraded_total", help);
    for degraded in &figures.degraded {
        family.sample(&[("route", &degraded.route), ("why", degraded.why)], degraded.count);
    }
    let help = "Time from the first byte of a request's head to the last byte of its answer.";
    let mut family = page.histogram("tidegate_request_duration_seconds", help);
    for durations in &figures.durations {
        let class = class(durations.status_class);
        family.spread(&[("route", &durations.route), ("status_class", class)], &durations.histogram);
    }
    let mut family = page.histogram("tidegate_overhead_seconds", "Time that we add to a request.");
    for overhead in &figures.overheads {
        family.spread(&[("phase", overhead.phase)], &overhead.histogram);
    }
    let mut family = page.gauge("tidegate_in_flight", "Requests that have begun and not ended.");
    for route in &figures.in_flight {
        family.sample(&[("route", &route.route)], route.now);
    }
    let mut family =
        page.counter("tidegate_upstream_attempts_total", "Attempts at upstreams, by how they ended.");
    for attempts in &figures.attempts {
        family.sample(&[("upstream", &attempts.upstream), ("outcome", attempts.outcome)], attempts.count);
    }
    let help = "Lines of the access log that could not be written in time.";
    page.counter("tidegate_access_log_lost_total", help).sample(&[], figures.unlogged);
}

fn rules(page: &mut Page, policy: &Policy, statistics: &Statistics) {
    let rules = &statistics.rules;
    let mut family = page.counter("tidegate_refusals_total", "Requests refused.");
    for rule in rules {
        let refused = rule.refused_by_criticality.iter().zip(rule.ambiguous_by_criticality);
        for (level, (refused, ambiguous)) in Criticality::ALL.iter().zip(refused) {
            let reasons =
                [(reason(policy, &rule.rule), refused.saturating_sub(ambiguous)), (AMBIGUOUS, ambiguous)];
            for (reason, count) in reasons {
                // Requests with keys that can be read in two ways are rare; without any there is no such series.
                if reason != AMBIGUOUS || count > 0 {
                    let labels =
                        [("rule", rule.rule.as_str()), ("reason", reason), ("criticality", level.as_str())];
                    family.sample(&labels, count);
                }
            }
        }
    }
    for upstream in &statistics.upstreams {
        turned_away(&mut family, upstream);
    }
    let mut family =
        page.counter("tidegate_shadow_refusals_total", "Requests that a rule in shadow would have refused.");
    for rule in rules {
        family.sample(&[("rule", &rule.rule), ("reason", reason(policy, &rule.rule))], rule.shadow_refused);
    }
    let mut family = page.gauge("tidegate_rule_keys", "Keys that have something used or in flight.");
    for rule in rules {
        family.sample(&[("rule", &rule.rule)], rule.keys as u64);
    }
    let help = "Requests of newcomers that found no room for their key and shared a counter.";
    let mut family = page.counter("tidegate_rule_overflow_total", help);
    for rule in rules {
        family.sample(&[("rule", &rule.rule)], rule.overflowed);
    }
}

/// What an upstream without room has refused, for the reasons it can have.
fn turned_away(family: &mut Family<'_>, upstream: &UpstreamRefusals) {
    const USUAL: [ReasonWord; 4] =
        [ReasonWord::Concurrency, ReasonWord::Shed, ReasonWord::Queue, ReasonWord::Deadline];
    for (reason, counts) in ReasonWord::ALL.iter().zip(upstream.refused) {
        for (level, count) in Criticality::ALL.iter().zip(counts) {
            if count > 0 || USUAL.contains(reason) {
                let labels =
                    [("rule", &*upstream.name), ("reason", reason.as_str()), ("criticality", level.as_str())];
                family.sample(&labels, count);
            }
        }
    }
}

/// What no rule is about: a key that could be read in two ways.
const AMBIGUOUS: &str = "ambiguous_key";

fn reason(policy: &Policy, rule: &str) -> &'static str {
    match policy.rules.iter().find(|known| known.name == rule).map(|rule| &rule.limit) {
        Some(Limit::Concurrency(_)) => "concurrency",
        Some(Limit::Reserve(_)) => "reserve",
        Some(Limit::Shed(_)) => "shed",
        Some(Limit::Rate(_)) | None => "quota",
    }
}

const fn class(first_digit: u8) -> &'static str {
    match first_digit {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "none",
    }
}
