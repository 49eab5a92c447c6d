//! The examples of the reference are sent as they are written.

use saphyr_parser::{Event, Parser};

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
    // An average would divide by the number of instances what is a ratio already.
    assert!(all("metricType").iter().all(|kind| kind == "Value"));
}
