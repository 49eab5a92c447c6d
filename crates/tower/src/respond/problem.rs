//! A refusal as `application/problem+json` (RFC 9457).

use tidegate_core::Retry;
use tidegate_policy::{Standing, Standings};

use super::detail::seconds;
use super::sheet::{Blank, Sheet, Text};
use super::{Said, json};

/// The problem of a request that the gate refused, with blanks for what differs each time.
pub(crate) fn form(sheet: &mut Sheet, said: &Said<'_>, standings: &Standings<'_>) -> Text {
    write_members(sheet, said);
    if said.kind.shows_rules() {
        write_array(sheet.push(r#","violated-policies":"#), standings, write_name);
        write_array(sheet.push(r#","quota":"#), standings, write_quota);
    }
    sheet.push(r#","instance":"urn:tidegate:decision:"#).blank(Blank::Id).push("\"}\n");
    sheet.cut_text()
}

/// The problem of a request that no rule refused.
pub(crate) fn write_plain(sheet: &mut Sheet, said: &Said<'_>) {
    write_members(sheet, said);
    sheet.push("}\n");
}

/// The members that every problem has.
fn write_members(sheet: &mut Sheet, said: &Said<'_>) {
    let (kind, title) = said.kind.problem();
    sheet.push(r#"{"type":""#).push(kind).push(r#"","title":""#).push(title).push(r#"","status":"#);
    sheet.integer(said.kind.status().as_u16().into()).push(r#","detail":"#);
    json::text(sheet, |text| said.detail.write(text));
}

/// What is to be said of each violated rule.
fn write_array(sheet: &mut Sheet, standings: &Standings<'_>, write: impl Fn(&mut Sheet, u8, &Standing<'_>)) {
    let violated = (0..).zip(standings.iter()).filter(|(_, standing)| standing.is_violated);
    sheet.push("[");
    for (place, (number, standing)) in violated.enumerate() {
        write(sheet.push(if place == 0 { "" } else { "," }), number, standing);
    }
    sheet.push("]");
}

fn write_name(sheet: &mut Sheet, _number: u8, standing: &Standing<'_>) {
    json::text(sheet, |text| _ = text.push(&standing.rule.name));
}

/// How far a violated rule is used up.
fn write_quota(sheet: &mut Sheet, number: u8, standing: &Standing<'_>) {
    write_name(sheet.push(r#"{"rule":"#), number, standing);
    sheet.push(r#","limit":"#).decimal(standing.limit);
    sheet.push(r#","used":"#).blank(Blank::Used(number));
    if !standing.is_concurrency {
        sheet.push(r#","window_seconds":"#).decimal(seconds(standing.window));
    }
    if let Some(Retry::After(_)) = standing.retry {
        sheet.push(r#","retry_after":"#).blank(Blank::Retry(number));
    }
    sheet.push("}");
}
