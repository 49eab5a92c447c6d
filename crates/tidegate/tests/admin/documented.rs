//! The examples of the reference are sent as they are written.

use std::collections::BTreeSet;

use saphyr_parser::{Event, Parser};
use serde_json::Value;
use tidegate::admin::OPENAPI;
use tidegate_core::Reason;
use tidegate_core::concurrency::Why;
use tidegate_policy::ReasonWord;
use tidegate_proxy::UpstreamError;
use tidegate_proxy::figures::ProtocolError;

use crate::http::{ask_with, get};
use crate::published::assert_is;
use crate::station::Running;

const REFERENCE: &str = include_str!("../../../../docs/reference/admin-api.md");

#[test]
fn every_request_in_the_reference_is_carried_out() {
    let running = Running::start();
    running.station.requests("acct_1", 12);
    let blocks = REFERENCE.split("```http\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut sent = 0;
    for block in blocks {
        let (head, body) = block.split_once("\n\n").unwrap_or((block.trim_end(), ""));
        let (request, fields) = head.split_once('\n').unwrap_or((head, ""));
        let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
        let answer = ask_with(running.address(), request.trim_end(), &fields, body);
        assert!((200..300).contains(&answer.status), "{request}\n{answer:?}");
        sent += 1;
    }
    assert!(sent >= 10, "the reference has examples");
}

#[test]
fn the_commands_of_the_reference_are_carried_out() {
    let running = Running::start();
    running.station.requests("acct_1", 12);
    let address = running.address().to_string();
    trycmd::TestCases::new().env("TIDEGATE_ADMIN", address).case("../../docs/reference/admin-api.md");
}

#[test]
fn every_answer_in_the_reference_is_what_the_description_says() {
    let blocks = REFERENCE.split("```json ").skip(1).map(|rest| rest.split("```").next().unwrap());
    for block in blocks {
        let (component, text) = block.split_once('\n').unwrap();
        assert_is(component, &serde_json::from_str(text).unwrap());
    }
}

/// The texts of a YAML document in their order, keys and values alike.
fn texts(document: &str) -> Vec<String> {
    let events =
        Parser::new_from_str(document).map(|event| event.unwrap_or_else(|why| panic!("{why}: {document}")));
    let scalars = events.filter_map(|(event, _)| match event {
        Event::Scalar(text, ..) => Some(text.into_owned()),
        _ => None,
    });
    scalars.collect()
}

#[test]
fn the_snippets_for_autoscalers_are_yaml_and_ask_for_what_there_is() {
    const PAGE: &str = include_str!("../../../../docs/how-to/scale-with-the-capacity-signal.md");
    let blocks = PAGE.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let documents: Vec<Vec<String>> = blocks.flat_map(|block| block.split("---\n")).map(texts).collect();
    assert_eq!(documents.len(), 5);
    let all = |key: &str| {
        let values = documents.iter().flat_map(|texts| texts.windows(2).filter(|pair| pair[0] == key));
        values.map(|pair| pair[1].clone()).collect::<Vec<_>>()
    };
    let running = Running::start();
    let (_, path) =
        all("url")[0].split_once(":9900").map(|(host, path)| (host.to_owned(), path.to_owned())).unwrap();
    let capacity = get(running.address(), &path).json();
    let named = all("valueLocation")[0].replace("upstreams.orders", "/upstreams/default");
    assert!(capacity.pointer(&named).unwrap().is_number(), "{named} in {capacity}");
    let page = get(running.address(), "/metrics").body;
    for asked in all("query").iter().chain(&all("as")) {
        let name = asked.trim_start_matches("max(").trim_end_matches(')');
        assert!(page.contains(&format!("\n{name} ")), "{name}");
    }
    // An average would divide by the number of instances what is a ratio already; and below 1 the ratio is a guess, so that
    // processor time has to stand beside it.
    let triggers = documents.iter().flat_map(|texts| texts.windows(4));
    let triggers: Vec<_> = triggers.filter(|texts| texts[0] == "type" && texts[2] == "metricType").collect();
    let kinds: Vec<_> = triggers.iter().map(|texts| (texts[1].as_str(), texts[3].as_str())).collect();
    let cpu = ("cpu", "Utilization");
    assert_eq!(kinds, [cpu, ("metrics-api", "Value"), cpu, ("prometheus", "Value")]);
}

/// The cells of a table's rows, without the marks around words.
fn rows(section: &str) -> impl Iterator<Item = Vec<String>> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let bare = |cell: &str| cell.trim().replace('`', "");
    rows.map(move |row| row.trim_matches('|').split('|').map(bare).collect())
}

const LOG: &str = include_str!("../../../../docs/reference/access-log.md");

#[test]
fn the_page_of_the_access_log_has_every_field() {
    let schema = tidegate_policy::record::schema();
    let published: BTreeSet<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let (_, fields) = LOG.split_once("## Fields").unwrap();
    let (fields, _) = fields.split_once("\n## ").unwrap();
    let first: Vec<String> = rows(fields).map(|row| row[0].clone()).collect();
    let documented: BTreeSet<&str> = first.iter().flat_map(|names| names.split(", ")).collect();
    assert_eq!(documented, published);
}

#[test]
fn the_page_of_the_access_log_has_every_error() {
    let (_, errors) = LOG.split_once("## Errors").unwrap();
    let (errors, _) = errors.split_once("\n## ").unwrap();
    let documented: BTreeSet<String> = rows(errors).map(|row| row[0].clone()).collect();
    let known = UpstreamError::ALL.map(|error| error.as_str().to_owned());
    assert_eq!(documented, BTreeSet::from(known));
    for kind in ProtocolError::ALL {
        assert!(errors.contains(&format!("`{}`", kind.as_str())), "{kind:?}");
    }
}

#[test]
fn records_of_the_api_are_what_the_schema_of_the_access_log_says() {
    let schema = tidegate_policy::record::schema();
    let described: Value = serde_json::from_str(OPENAPI).unwrap();
    let record = &described["components"]["schemas"]["Record"];
    for part in ["type", "required", "properties"] {
        assert_eq!(record[part], schema[part], "{part} of Record in openapi.json");
    }
}

#[test]
fn the_page_of_the_access_log_has_every_reason_and_its_word_in_metrics() {
    const REASONS: [Reason; 13] = [
        Reason::QuotaSpent,
        Reason::CostAboveBurst,
        Reason::WaitTooLong,
        Reason::LimitReached,
        Reason::Blocked,
        Reason::OverflowSpent,
        Reason::Shed,
        Reason::Reserved,
        Reason::QueueFull,
        Reason::Displaced,
        Reason::StandingQueue,
        Reason::DeadlinePassed,
        Reason::AmbiguousKey,
    ];
    let (_, reasons) = LOG.split_once("## Reasons").unwrap();
    let mut documented = BTreeSet::new();
    for row in rows(reasons) {
        let [written, said_by, _, word] = row.try_into().unwrap();
        let reason = REASONS.into_iter().find(|reason| reason.as_str() == written).unwrap();
        let kind = said_by.split(' ').next().unwrap();
        let expected = match kind {
            "upstream" => ReasonWord::of_reason(reason).as_str(),
            "rate" => ReasonWord::Quota.as_str(),
            "any" => reason.as_str(),
            other => other,
        };
        assert_eq!(word, expected, "{written} said by {said_by}");
        documented.insert(reason);
    }
    assert_eq!(documented, BTreeSet::from(REASONS));
}

#[test]
fn every_reason_of_a_limit_is_explained() {
    const PAGE: &str = include_str!("../../../../docs/explanation/signals.md");
    for why in [
        Why::Headroom,
        Why::SlowStart,
        Why::Queueing,
        Why::Overloaded,
        Why::Objective,
        Why::Throughput,
        Why::Probe,
        Why::Steady,
        Why::Unused,
        Why::Unproven,
        Why::Dependency,
        Why::Floor,
        Why::Ceiling,
        Why::Fixed,
        Why::Operator,
    ] {
        assert!(rows(PAGE).any(|row| row[0].split(", ").any(|name| name == why.as_str())), "{why}");
    }
}
