//! The page for Prometheus.
//!
//! Written afresh for every scrape, from counts that others keep: nothing here is updated by a request. Labels come
//! from the policy and from closed sets. Callers are never among them: strangers can invent callers, and the heaviest
//! are in `/api/v1/callers`.

//!
//! What a family is called, says and is labelled with stands in one place, its [`MetricFamily`]: here for what is known
//! of policies and rules, beside the counts for what the station [measures](Station::metrics) itself.

mod overload;
mod text;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tidegate_core::Criticality;
use tidegate_policy::ReasonWord;
use tidegate_policy::gate::{OPERATOR, Statistics, UpstreamRefusals};
use tidegate_policy::policy::{Limit, Policy};
use tidegate_proxy::metrics::MetricFamily;

use self::text::{Family, Page};
use super::answer::{Refusal, written};
use super::overload::Overload;
use super::serve::Shared;
use super::station::{Figures, Station};

const REQUESTS: MetricFamily = MetricFamily::counter(
    "tidegate_requests_total",
    &["listener", "route", "criticality", "decision"],
    "Requests decided.",
);
const DEGRADED: MetricFamily = MetricFamily::counter(
    "tidegate_degraded_total",
    &["route", "why"],
    "Cheaper answers of a route's `degrade`: `shedding` ones count as refused, `switched` ones as admitted.",
);
const DURATION: MetricFamily = MetricFamily::histogram(
    "tidegate_request_duration_seconds",
    &["route", "status_class"],
    "Time from the first byte of a request's head to the last byte of its answer.",
);
const OVERHEAD: MetricFamily = MetricFamily::histogram(
    "tidegate_overhead_seconds",
    &["phase"],
    "Time that the gateway itself adds to a request; one request of 16 is timed.",
);
const IN_FLIGHT: MetricFamily =
    MetricFamily::gauge("tidegate_in_flight", &["route"], "Requests that have begun and not ended.");
const ATTEMPTS: MetricFamily = MetricFamily::counter(
    "tidegate_upstream_attempts_total",
    &["upstream", "outcome"],
    "Attempts at upstreams, by how they ended; begins anew when a policy changes the upstream's queue.",
);
const LOG_LOST: MetricFamily = MetricFamily::counter(
    "tidegate_access_log_lost_total",
    &[],
    "Lines of the access log that could not be written in time; requests never wait for it.",
);
const REFUSALS: MetricFamily = MetricFamily::counter(
    "tidegate_refusals_total",
    &["rule", "reason", "criticality"],
    "Requests refused, by the rule that refused them or the upstream that had no room.",
);
const SHADOW_REFUSALS: MetricFamily = MetricFamily::counter(
    "tidegate_shadow_refusals_total",
    &["rule", "reason"],
    "Requests that a rule in shadow, or a shadow value, would have refused.",
);
const RULE_KEYS: MetricFamily =
    MetricFamily::gauge("tidegate_rule_keys", &["rule"], "Keys that have something used or in flight.");
const RULE_OVERFLOW: MetricFamily = MetricFamily::counter(
    "tidegate_rule_overflow_total",
    &["rule"],
    "Requests of newcomers that found no room for their key and shared a counter; raise `max_keys`.",
);
const POLICY_VERSION: MetricFamily = MetricFamily::gauge(
    "tidegate_policy_version",
    &[],
    "The number of the policy in force: one more with every policy taken, and never otherwise.",
);
const POLICY_LOAD_FAILURES: MetricFamily = MetricFamily::counter(
    "tidegate_policy_load_failures_total",
    &[],
    "Policies that were not taken, from the file or over the API.",
);
const BUILD_INFO: MetricFamily =
    MetricFamily::gauge("tidegate_build_info", &["version"], "What is running; always 1.");

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
    station.metrics().iter().for_each(|measured| page.measured(measured));
    page.family(&POLICY_VERSION).sample(&[], station.gate().version());
    page.family(&POLICY_LOAD_FAILURES).sample(&[], station.load_failures());
    page.family(&BUILD_INFO).sample(&[env!("CARGO_PKG_VERSION")], 1);
    page.finish()
}

fn requests(page: &mut Page, figures: &Figures) {
    let mut family = page.family(&REQUESTS);
    for requests in &figures.requests {
        for (decision, count) in [("admitted", requests.admitted), ("refused", requests.refused)] {
            let criticality = requests.criticality.as_str();
            family.sample(&[&requests.listener, &requests.route, criticality, decision], count);
        }
    }
    let mut family = page.family(&DEGRADED);
    for degraded in &figures.degraded {
        family.sample(&[&degraded.route, degraded.why], degraded.count);
    }
    let mut family = page.family(&DURATION);
    for durations in &figures.durations {
        family.spread(&[&durations.route, class(durations.status_class)], &durations.histogram);
    }
    let mut family = page.family(&OVERHEAD);
    for overhead in &figures.overheads {
        family.spread(&[overhead.phase], &overhead.histogram);
    }
    let mut family = page.family(&IN_FLIGHT);
    for route in &figures.in_flight {
        family.sample(&[&route.route], route.now);
    }
    let mut family = page.family(&ATTEMPTS);
    for attempts in &figures.attempts {
        family.sample(&[&attempts.upstream, attempts.outcome], attempts.count);
    }
    page.family(&LOG_LOST).sample(&[], figures.unlogged);
}

fn rules(page: &mut Page, policy: &Policy, statistics: &Statistics) {
    let rules = &statistics.rules;
    let mut family = page.family(&REFUSALS);
    for rule in rules {
        let levels = Criticality::ALL.iter().zip(rule.refused_by_criticality);
        let other = rule.ambiguous_by_criticality.iter().zip(rule.blocked_by_criticality);
        for ((level, refused), (&ambiguous, blocked)) in levels.zip(other) {
            let usual = reason(policy, &rule.rule);
            let reasons = [
                (usual, refused.saturating_sub(ambiguous).saturating_sub(blocked)),
                (AMBIGUOUS, ambiguous),
                (ReasonWord::Blocked.as_str(), blocked),
            ];
            for (reason, count) in reasons {
                // The other reasons are rare; without any such requests there is no such series.
                if reason == usual || count > 0 {
                    family.sample(&[&rule.rule, reason, level.as_str()], count);
                }
            }
        }
    }
    for upstream in &statistics.upstreams {
        turned_away(&mut family, upstream);
    }
    let blocked = (ReasonWord::Blocked.as_str(), statistics.blocked);
    for (reason, counts) in [blocked, (AMBIGUOUS, statistics.unclear)] {
        for (level, count) in Criticality::ALL.iter().zip(counts).filter(|(_, count)| *count > 0) {
            family.sample(&[OPERATOR, reason, level.as_str()], count);
        }
    }
    let mut family = page.family(&SHADOW_REFUSALS);
    for rule in rules {
        family.sample(&[&rule.rule, reason(policy, &rule.rule)], rule.shadow_refused);
    }
    let mut family = page.family(&RULE_KEYS);
    for rule in rules {
        family.sample(&[&rule.rule], rule.keys as u64);
    }
    let mut family = page.family(&RULE_OVERFLOW);
    for rule in rules {
        family.sample(&[&rule.rule], rule.overflowed);
    }
}

/// What an upstream without room has refused, for the reasons it can have.
fn turned_away(family: &mut Family<'_>, upstream: &UpstreamRefusals) {
    const USUAL: [ReasonWord; 4] =
        [ReasonWord::Concurrency, ReasonWord::Shed, ReasonWord::Queue, ReasonWord::Deadline];
    for (reason, counts) in ReasonWord::ALL.iter().zip(upstream.refused) {
        for (level, count) in Criticality::ALL.iter().zip(counts) {
            if count > 0 || USUAL.contains(reason) {
                family.sample(&[&upstream.name, reason.as_str(), level.as_str()], count);
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
