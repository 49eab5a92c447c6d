//! The examples of the reference are sent as they are written.

use crate::http::ask_with;
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
