//! Answers for people: a sentence, or a table.

mod overload;

use serde_json::Value;
use tidegate_policy::escaped;

use self::overload::reading;
use super::Ask;

/// The answer to what was asked, in lines.
pub(super) fn answer(ask: &Ask, answer: &Value) -> String {
    match ask {
        Ask::Status | Ask::Drain => status(answer),
        Ask::Rules => rules(answer),
        Ask::Mode { .. } => mode(answer),
        Ask::Callers { .. } => callers(answer),
        Ask::Overrides => overrides(answer),
        Ask::Override(_) => {
            format!(
                "{} has {} by rule {} until {}\n",
                text(&answer["caller"]),
                limit(&answer["limit"]),
                text(&answer["rule"]),
                text(&answer["until"])
            )
        }
        Ask::Block { .. } => {
            let rule = answer["rule"].as_str().map_or(String::new(), |rule| format!(" by rule {rule}"));
            let until = match answer["until"].as_str() {
                Some(until) => format!("until {until}"),
                None => "until it is let in again".to_owned(),
            };
            format!("{} is blocked{rule} {until}\n", text(&answer["caller"]))
        }
        Ask::Unblock { .. } => format!("{} is let in again\n", text(&answer["caller"])),
        Ask::Changes { .. } => changes(answer),
        Ask::OverrideClear { .. } => {
            let rules: Vec<String> = list(&answer["cleared"]).map(text).collect();
            format!("{} has no limit of its own any more by {}\n", text(&answer["caller"]), rules.join(", "))
        }
        Ask::Counter { .. } => counter(answer),
        Ask::Decisions { .. } => decisions(list(&answer["decisions"])),
        Ask::Decision(_) => decision(answer),
        Ask::Explain { .. } => lines(&answer["text"]),
        Ask::Upstreams => overload::upstreams(answer),
        Ask::Capacity => overload::capacity(answer),
        Ask::Signals => overload::signals(answer),
        Ask::Signal { .. } => {
            format!("signal {} was told {}\n", text(&answer["signal"]), text(&answer["told"]))
        }
        Ask::Routes => overload::routes(answer),
        Ask::Degrade { .. } => overload::degrade(answer),
        Ask::PolicyGet => String::new(),
        Ask::PolicyPut(_) | Ask::PolicyConfirm => {
            let lost: Vec<String> = list(&answer["lost"]).map(text).collect();
            let without =
                if lost.is_empty() { String::new() } else { format!(", without {}", lost.join(", ")) };
            format!("taken as version {}{without}\n", text(&answer["policy_version"]))
        }
        Ask::PolicyCheck(_) => {
            let verdict = if answer["ok"] == true { "fine" } else { "not fine" };
            format!("{}{verdict}. {}\n", lines(&answer["text"]), text(&answer["summary"]))
                .replace(" \n", "\n")
        }
    }
}

fn status(answer: &Value) -> String {
    let (rates, totals) = (&answer["rates"], &answer["totals"]);
    let mut out = format!("{}\n", text(&answer["verdict"]));
    out.push_str(&format!(
        "policy version {} from {}, running since {}\n",
        text(&answer["policy"]["version"]),
        text(&answer["policy"]["name"]),
        text(&answer["started"])
    ));
    out.push_str(&format!(
        "{} admitted and {} refused a second; {} and {} in all; {} in flight\n",
        text(&rates["admitted_per_second"]),
        text(&rates["refused_per_second"]),
        text(&totals["admitted"]),
        text(&totals["refused"]),
        text(&answer["in_flight"])
    ));
    if !rates["p99_ms"].is_null() {
        out.push_str(&format!(
            "half of the requests took at most {} ms, 99 % at most {} ms\n",
            text(&rates["p50_ms"]),
            text(&rates["p99_ms"])
        ));
    }
    let known = list(&answer["signals"]).filter(|signal| !signal["value"].is_null());
    let signals = known
        .map(|signal| format!("{} {}", text(&signal["signal"]), reading(&signal["value"], &signal["unit"])));
    let signals: Vec<String> = signals.collect();
    if !signals.is_empty() {
        out.push_str(&format!("signals: {}\n", signals.join(", ")));
    }
    out
}

fn rules(answer: &Value) -> String {
    let rows = list(&answer["rules"]).map(|rule| {
        let mut mode = text(&rule["mode"]);
        if rule["switched"] == true {
            mode.push_str(" (switched)");
        }
        vec![
            text(&rule["rule"]),
            mode,
            limit(&rule["limit"]),
            joined(&rule["key"]),
            text(&rule["admitted"]),
            text(&rule["refused"]),
            text(&rule["shadow_refused"]),
            text(&rule["keys"]),
        ]
    });
    table(
        &["RULE", "MODE", "LIMIT", "KEY", "ADMITTED", "REFUSED", "SHADOW", "KEYS"],
        rows.collect(),
        "no rules",
    )
}

fn mode(answer: &Value) -> String {
    let until = match answer["until"].as_str() {
        Some(until) => format!(" until {until}, then {}", text(&answer["written_mode"])),
        None if answer["switched"] == true => " until it is switched again".to_owned(),
        None => ", as the policy says".to_owned(),
    };
    format!("rule {} is in mode {}{until}\n", text(&answer["rule"]), text(&answer["mode"]))
}

fn callers(answer: &Value) -> String {
    let rows = list(&answer["callers"])
        .map(|caller| vec![text(&caller["caller"]), text(&caller["weight"]), text(&caller["fingerprint"])]);
    let what = text(&answer["sort"]).to_uppercase();
    table(
        &["CALLER", &what, "FINGERPRINT"],
        rows.collect(),
        "no callers; --sort cost has those who send most",
    )
}

fn overrides(answer: &Value) -> String {
    let rows = list(&answer["overrides"]).map(|order| {
        let limit = if order["block"] == true { "blocked".to_owned() } else { limit(&order["limit"]) };
        let rule = if order["rule"].is_null() { "all".to_owned() } else { text(&order["rule"]) };
        let fingerprint = text(&order["fingerprint"]);
        vec![text(&order["caller"]), rule, limit, text(&order["until"]), fingerprint]
    });
    table(&["CALLER", "RULE", "LIMIT", "UNTIL", "FINGERPRINT"], rows.collect(), "no overrides")
}

fn changes(answer: &Value) -> String {
    let rows = list(&answer["changes"])
        .map(|change| ["at", "by", "what", "was", "now", "until"].map(|name| text(&change[name])).to_vec());
    table(&["AT", "BY", "WHAT", "WAS", "NOW", "UNTIL"], rows.collect(), "nothing was changed")
}

fn counter(answer: &Value) -> String {
    let unit = if answer["kind"] == "concurrency" { " in flight" } else { "" };
    let reset = match answer["reset_ms"].as_f64() {
        Some(reset) if reset > 0.0 => format!(", nothing used in {reset} ms"),
        _ => String::new(),
    };
    format!(
        "{} of {}{unit} by rule {}: {} left{reset}\n",
        text(&answer["used"]),
        text(&answer["limit"]),
        text(&answer["rule"]),
        text(&answer["remaining"])
    )
}

fn decisions<'a>(decisions: impl Iterator<Item = &'a Value>) -> String {
    let rows = decisions.map(|one| {
        vec![
            text(&one["time"]),
            text(&one["id"]),
            format!("{} {}", text(&one["method"]), text(&one["path"])),
            text(&one["caller"]),
            text(&one["decision"]),
            text(&one["rule"]),
            text(&one["reason"]),
        ]
    });
    table(&["TIME", "ID", "REQUEST", "CALLER", "DECISION", "RULE", "REASON"], rows.collect(), "no decisions")
}

/// A line for each field.
fn decision(answer: &Value) -> String {
    let fields = answer.as_object().into_iter().flatten().filter(|(name, _)| *name != "v");
    let rows = fields.map(|(name, value)| {
        let value = if value.is_array() { joined(value) } else { text(value) };
        vec![name.clone(), value]
    });
    table(&[], rows.collect(), "nothing")
}

fn limit(limit: &Value) -> String {
    if let Some(targets) = limit["target"].as_object() {
        let targets = targets.iter().map(|(signal, target)| format!("{signal} {}", text(target)));
        return format!("shed above {}", targets.collect::<Vec<_>>().join(", "));
    }
    if let Some(reserve) = limit["reserve"].as_object() {
        let kept =
            reserve.iter().map(|(level, share)| format!("{} for {level}", reading(share, &"share".into())));
        return format!("{} of {}", kept.collect::<Vec<_>>().join(", "), text(&limit["capacity"]));
    }
    if limit["quota"].is_null() {
        return format!("{} in flight", text(&limit["limit"]));
    }
    format!("{} burst {}", text(&limit["quota"]), text(&limit["most"]))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn joined(value: &Value) -> String {
    list(value).map(text).collect::<Vec<_>>().join(", ")
}

/// Lines that may be printed.
pub(super) fn lines(value: &Value) -> String {
    let lines = value.as_str().unwrap_or_default().lines();
    lines.map(|line| format!("{}\n", escaped(line))).collect()
}

/// What may be printed on one line: control characters could move the cursor.
fn text(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    escaped(&text).into_owned()
}

/// Columns as wide as their widest cell.
fn table(heads: &[&str], mut rows: Vec<Vec<String>>, nothing: &str) -> String {
    if rows.is_empty() {
        return format!("{nothing}\n");
    }
    if !heads.is_empty() {
        rows.insert(0, heads.iter().map(|head| (*head).to_owned()).collect());
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["ünï".to_owned(), "22".to_owned()]];
        assert_eq!(table(&["NAME", "N"], rows, "none"), "NAME  N\na     1\nünï   22\n");
        assert_eq!(table(&["NAME"], Vec::new(), "none"), "none\n");
    }

    #[test]
    fn what_would_move_the_cursor_is_written_out() {
        assert_eq!(text(&json!("a\u{1b}[2Jb")), r"a\u001b[2Jb");
    }
}
