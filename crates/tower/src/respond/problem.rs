//! A refusal as `application/problem+json` (RFC 9457).

use tidegate_core::Retry;
use tidegate_policy::{DecisionId, Standing, Standings};

use super::detail::seconds;
use super::sheet::Sheet;
use super::{Said, json, named};

/// The problem of a request that the gate refused.
pub(crate) fn write(sheet: &mut Sheet, said: &Said<'_>, id: DecisionId, standings: &Standings) {
    write_members(sheet, said);
    if said.kind.shows_rules() {
        write_array(sheet.push(r#","violated-policies":"#), standings, write_name);
        write_array(sheet.push(r#","quota":"#), standings, write_quota);
    }
    sheet.push(r#","instance":"urn:tidegate:decision:"#).id(id).push(r#""}"#);
}

/// The problem of a request that no rule refused.
pub(crate) fn write_plain(sheet: &mut Sheet, said: &Said<'_>) {
    write_members(sheet, said);
    sheet.push("}");
}

/// The members that every problem has.
fn write_members(sheet: &mut Sheet, said: &Said<'_>) {
    let (kind, title) = said.kind.problem();
    sheet.push(r#"{"type":""#).push(kind).push(r#"","title":""#).push(title).push(r#"","status":"#);
    sheet.integer(said.kind.status().as_u16().into()).push(r#","detail":"#);
    json::text(sheet, |text| said.detail.write(text));
}

/// What is to be said of each violated rule.
fn write_array(sheet: &mut Sheet, standings: &Standings, write: impl Fn(&mut Sheet, &Standing)) {
    let violated = standings.iter().filter(|standing| standing.is_violated);
    sheet.push("[");
    for (number, standing) in violated.enumerate() {
        write(sheet.push(if number == 0 { "" } else { "," }), standing);
    }
    sheet.push("]");
}

fn write_name(sheet: &mut Sheet, standing: &Standing) {
    json::text(sheet, |text| _ = text.push(&standing.rule.name));
}

/// How far a violated rule is used up.
fn write_quota(sheet: &mut Sheet, standing: &Standing) {
    write_name(sheet.push(r#"{"rule":"#), standing);
    sheet.push(r#","limit":"#).decimal(standing.limit);
    sheet.push(r#","used":"#).decimal(standing.used);
    if !standing.is_concurrency {
        sheet.push(r#","window_seconds":"#).decimal(seconds(standing.window));
    }
    if let Some(Retry::After(delay)) = standing.retry {
        sheet.push(r#","retry_after":"#).decimal(seconds(named(delay)));
    }
    sheet.push("}");
}
