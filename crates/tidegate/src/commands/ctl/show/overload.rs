//! What is told of overload: limits, signals, capacity and cheaper answers.

use serde_json::Value;

use super::{joined, list, table, text};

/// What stands before each upstream, then its endpoints.
pub(super) fn upstreams(answer: &Value) -> String {
    let limits = list(&answer["upstreams"]).map(|upstream| {
        let concurrency = &upstream["concurrency"];
        let last = list(&concurrency["changes"]).last();
        let last = last.map(|change| {
            format!("{} to {}: {}", text(&change["from"]), text(&change["to"]), text(&change["because"]))
        });
        vec![
            text(&upstream["upstream"]),
            text(&concurrency["limit"]),
            text(&concurrency["in_flight"]),
            text(&concurrency["waiting"]),
            millis(&concurrency["queue_delay_ms"]),
            millis(&concurrency["baseline_ms"]),
            text(&concurrency["wanted_ratio"]),
            last.unwrap_or_default(),
        ]
    });
    let heads = [
        "UPSTREAM",
        "LIMIT",
        "IN FLIGHT",
        "WAITING",
        "WAIT",
        "BASELINE",
        "WANTED",
        "LAST CHANGE OF THE LIMIT",
    ];
    let limits = table(&heads, limits.collect(), "no upstreams");
    let endpoints = list(&answer["upstreams"]).flat_map(|upstream| {
        list(&upstream["endpoints"]).map(|endpoint| {
            vec![
                text(&upstream["upstream"]),
                text(&endpoint["url"]),
                text(&endpoint["connections"]),
                text(&endpoint["in_flight"]),
                text(&endpoint["failures"]),
                text(&endpoint["last_error"]["error"]),
            ]
        })
    });
    let heads = ["UPSTREAM", "ENDPOINT", "CONNECTIONS", "IN FLIGHT", "FAILURES", "LAST ERROR"];
    format!("{limits}\n{}", table(&heads, endpoints.collect(), "no endpoints"))
}

pub(super) fn capacity(answer: &Value) -> String {
    let mut out = format!("{} times the capacity is wanted", text(&answer["wanted_ratio"]));
    out.push_str(&format!(": {}\n", text(&answer["reason"])));
    let upstreams = answer["upstreams"].as_object().into_iter().flatten();
    let rows: Vec<Vec<String>> = upstreams.map(|(name, wanted)| vec![name.clone(), text(wanted)]).collect();
    if rows.len() > 1 {
        out.push_str(&table(&["UPSTREAM", "WANTED"], rows, "no upstreams"));
    }
    out
}

pub(super) fn signals(answer: &Value) -> String {
    let rows = list(&answer["signals"]).map(|signal| {
        let targets = list(&signal["targets"]).map(|target| {
            let above = if target["is_above"] == true { ", exceeded" } else { "" };
            format!(
                "{} by rule {}{above}",
                reading(&target["target"], &signal["unit"]),
                text(&target["rule"])
            )
        });
        vec![
            text(&signal["signal"]),
            reading(&signal["value"], &signal["unit"]),
            text(&signal["from"]),
            targets.collect::<Vec<_>>().join("; "),
        ]
    });
    table(&["SIGNAL", "READING", "FROM", "TARGET"], rows.collect(), "no signals")
}

/// A reading for people: `85 %`, `5 ms`, `12`.
pub(super) fn reading(value: &Value, unit: &Value) -> String {
    let Some(number) = value.as_f64() else { return "unknown".to_owned() };
    let tenths = |number: f64| (number * 10.0).round() / 10.0;
    match unit.as_str() {
        Some("share") => format!("{} %", tenths(number * 100.0)),
        Some("seconds") => format!("{} ms", tenths(number * 1_000.0)),
        _ => number.to_string(),
    }
}

pub(super) fn routes(answer: &Value) -> String {
    let rows = list(&answer["routes"]).map(|route| {
        let degrade = &route["degrade"];
        let when = match degrade["given_to"].as_str() {
            None => "none".to_owned(),
            Some("all") => format!("given to all {}", until(degrade)),
            Some("shed") => "given to those who are shed".to_owned(),
            Some(_) if degrade["when"] == "switched" => "when switched on".to_owned(),
            Some(_) => "while requests are shed".to_owned(),
        };
        vec![text(&route["route"]), text(&route["upstream"]), joined(&route["rules"]), when]
    });
    table(&["ROUTE", "UPSTREAM", "RULES", "CHEAPER ANSWER"], rows.collect(), "no routes")
}

pub(super) fn degrade(answer: &Value) -> String {
    let (route, degrade) = (text(&answer["route"]), &answer["degrade"]);
    match degrade["given_to"].as_str() {
        Some("all") => format!("route {route} gives all its cheaper answer {}\n", until(degrade)),
        Some("shed") => format!("route {route} gives its cheaper answer to those who are shed\n"),
        _ => format!("route {route} is answered by its upstream\n"),
    }
}

fn until(degrade: &Value) -> String {
    degrade["until"]
        .as_str()
        .map_or_else(|| "until it is switched to auto".to_owned(), |until| format!("until {until}"))
}

fn millis(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |millis| format!("{} ms", (millis * 10.0).round() / 10.0))
}
