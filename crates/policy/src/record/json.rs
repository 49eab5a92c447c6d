use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Retry};

use super::{Decided, ParseError, Record, StandsFor, outcome_name, time};
use crate::escape::escaped_json;

impl Record {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                fields.insert(name.to_owned(), value);
            }
        };
        put("v", Self::VERSION.into());
        put("time", time::write(self.time).into());
        put("id", self.id.map(|id| id.to_string()).into());
        put("request_id", self.request_id.as_deref().into());
        put("listener", self.listener.as_deref().into());
        put("method", known(&self.method));
        put("host", self.host.as_deref().into());
        put("path", known(&self.path));
        put("client", self.client.map(|client| client.to_string()).into());
        put("user_agent", self.user_agent.as_deref().into());
        put("route", self.route.as_deref().into());
        put("caller", self.caller.as_deref().into());
        put("fingerprint", self.fingerprint.map(|hash| format!("{hash:016x}")).into());
        put("fingerprints", by_rule(&self.fingerprints, |hash| format!("{hash:016x}").into()));
        if self.decided != Decided::Malformed {
            put("criticality", self.criticality.as_str().into());
            put("cost", cost_json(self.cost));
        }
        put("settled", by_rule(&self.settled, |cost| cost_json(*cost)));
        put("decision", self.decided.as_str().into());
        put("rule", self.rule.as_deref().into());
        put("reason", self.reason.as_deref().into());
        put("retry_ms", self.retry.map_or(Value::Null, retry_json));
        if !self.shadow_refusals.is_empty() {
            put("shadow", json!(self.shadow_refusals));
        }
        if !self.wait.is_zero() {
            put("wait_ms", millis_json(self.wait));
        }
        put("endpoint", self.endpoint.as_deref().into());
        if self.attempts > 0 {
            put("attempts", self.attempts.into());
        }
        put("upstream_ms", self.upstream.map_or(Value::Null, millis_json));
        put("duration_ms", self.duration.map_or(Value::Null, millis_json));
        put("status", self.status.into());
        put("sent_bytes", self.sent_bytes.into());
        put("received_bytes", self.received_bytes.into());
        put("error", self.error.as_deref().into());
        put("detail", self.detail.as_deref().into());
        put("outcome", self.outcome.map(outcome_name).into());
        if self.stands_for != StandsFor::ONE {
            put("stands_for", self.stands_for.json());
        }
        Value::Object(fields)
    }

    /// As one line of JSON, without the end of the line, and without anything that a terminal would carry out.
    #[must_use]
    pub fn to_line(&self) -> String {
        escaped_json(self.to_json().to_string())
    }

    /// Reads a line.
    ///
    /// # Errors
    /// When it is not JSON, has a later version, or a field is missing or wrong.
    pub fn from_line(line: &str) -> Result<Self, ParseError> {
        let value: Value = serde_json::from_str(line)
            .map_err(|problem| ParseError::NotJson { problem: problem.to_string() })?;
        Self::from_json(&value)
    }

    /// Reads a record from JSON.
    ///
    /// # Errors
    /// When it has a later version, or a field is missing or wrong.
    pub fn from_json(value: &Value) -> Result<Self, ParseError> {
        let fields = Fields(value);
        let version = fields.read("v", "a number", Value::as_u64)?;
        if version.is_some_and(|version| version > Self::VERSION) {
            return Err(ParseError::Version { found: version.unwrap_or_default() });
        }
        fields.need("v", "the version of the schema", version)?;
        let decided = fields.need("decision", DECISION, fields.read("decision", DECISION, read_decided)?)?;
        // What could not be read has none of them.
        let need_if_read = |name: &'static str, text: Option<String>| match (text, decided) {
            (None, Decided::Malformed) => Ok(String::new()),
            (text, _) => fields.need(name, TEXT, text),
        };
        let id = fields.read("id", ID, |value| value.as_str()?.parse().ok())?;
        Ok(Self {
            time: fields.need(
                "time",
                TIME,
                fields.read("time", TIME, |value| time::read(value.as_str()?))?,
            )?,
            id: if decided == Decided::Malformed { id } else { Some(fields.need("id", ID, id)?) },
            request_id: fields.text("request_id")?,
            listener: fields.text("listener")?,
            method: need_if_read("method", fields.text("method")?)?,
            host: fields.text("host")?,
            path: need_if_read("path", fields.text("path")?)?,
            client: fields.read("client", "an address", |value| value.as_str()?.parse().ok())?,
            user_agent: fields.text("user_agent")?,
            route: fields.text("route")?,
            caller: fields.text("caller")?,
            fingerprint: fields.read("fingerprint", ID, fingerprint)?,
            fingerprints: fields
                .read("fingerprints", "a fingerprint for each rule", |value| of_rules(value, fingerprint))?
                .unwrap_or_default(),
            criticality: fields
                .read("criticality", "a criticality", |value| value.as_str()?.parse().ok())?
                .unwrap_or_default(),
            cost: fields.read("cost", "a number from 0", read_cost)?.unwrap_or(match decided {
                Decided::Malformed => Cost::ZERO,
                Decided::Admitted | Decided::Refused => Cost::ONE,
            }),
            settled: fields
                .read("settled", "a number from 0 for each rule", |value| of_rules(value, read_cost))?
                .unwrap_or_default(),
            decided,
            rule: fields.text("rule")?,
            reason: fields.text("reason")?,
            retry: fields.read("retry_ms", "a number of milliseconds, or \"never\"", read_retry)?,
            shadow_refusals: fields.read("shadow", "a list of rules", read_names)?.unwrap_or_default(),
            wait: fields.read("wait_ms", MILLIS, read_millis)?.unwrap_or_default(),
            endpoint: fields.text("endpoint")?,
            attempts: fields
                .read("attempts", COUNT, |value| u32::try_from(value.as_u64()?).ok())?
                .unwrap_or_default(),
            upstream: fields.read("upstream_ms", MILLIS, read_millis)?,
            duration: fields.read("duration_ms", MILLIS, read_millis)?,
            status: fields.read("status", "a status", |value| u16::try_from(value.as_u64()?).ok())?,
            sent_bytes: fields.read("sent_bytes", COUNT, Value::as_u64)?,
            received_bytes: fields.read("received_bytes", COUNT, Value::as_u64)?,
            error: fields.text("error")?,
            detail: fields.text("detail")?,
            stands_for: fields
                .read("stands_for", "a number above 0", StandsFor::read)?
                .unwrap_or(StandsFor::ONE),
            outcome: fields.read("outcome", "ok, failed, overloaded or abandoned", read_outcome)?,
        })
    }
}

const TEXT: &str = "a text";
const TIME: &str = "a time in UTC such as 2026-11-15T23:18:39.25Z";
const ID: &str = "sixteen hexadecimal digits";
const MILLIS: &str = "a number of milliseconds";
const COUNT: &str = "a whole number";
const DECISION: &str = "admitted, refused or malformed";

struct Fields<'a>(&'a Value);

impl Fields<'_> {
    fn read<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ParseError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or(ParseError::Field { name, expected }),
        }
    }

    fn text(&self, name: &'static str) -> Result<Option<String>, ParseError> {
        self.read(name, TEXT, |value| value.as_str().map(str::to_owned))
    }

    #[expect(clippy::unused_self, reason = "reads as what it is asked of")]
    fn need<T>(&self, name: &'static str, expected: &'static str, value: Option<T>) -> Result<T, ParseError> {
        value.ok_or(ParseError::Field { name, expected })
    }
}

/// Whole costs as whole numbers, others as decimals; above 2⁵¹ millionths, where readers lose digits, as text.
#[must_use]
pub fn cost_json(cost: Cost) -> Value {
    match cost.micros() {
        micros if micros % 1_000_000 == 0 => (micros / 1_000_000).into(),
        micros if micros < 1 << 51 => decimal(micros),
        _ => cost.to_string().into(),
    }
}

/// Milliseconds with decimals: exact to the nanosecond up to 26 days.
#[must_use]
pub fn millis_json(duration: Duration) -> Value {
    match u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX) {
        nanos if nanos % 1_000_000 == 0 => (nanos / 1_000_000).into(),
        nanos => decimal(nanos),
    }
}

pub(crate) fn retry_json(retry: Retry) -> Value {
    match retry {
        Retry::After(wait) => millis_json(wait),
        Retry::Never => "never".into(),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "below 2⁵¹ nothing is lost there and back, above it digits nobody reads"
)]
pub(super) fn decimal(millionths: u64) -> Value {
    (millionths as f64 / 1e6).into()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the number is from 0, and what is too large saturates"
)]
pub(super) fn millionths(value: &Value) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return Some(whole.saturating_mul(1_000_000));
    }
    let number = value.as_f64()?;
    (number >= 0.0 && number <= u64::MAX as f64).then(|| (number * 1e6).round() as u64)
}

fn read_cost(value: &Value) -> Option<Cost> {
    match value.as_str() {
        Some(text) => text.parse().ok(),
        None => millionths(value).map(Cost::from_micros),
    }
}

fn read_millis(value: &Value) -> Option<Duration> {
    millionths(value).map(Duration::from_nanos)
}

fn read_retry(value: &Value) -> Option<Retry> {
    match value.as_str() {
        Some("never") => Some(Retry::Never),
        Some(_) => None,
        None => read_millis(value).map(Retry::After),
    }
}

fn read_names(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

fn fingerprint(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?, 16).ok()
}

/// Nothing where nothing is known.
fn known(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

/// An object with a member for each rule; nothing without any.
fn by_rule<T>(rules: &[(String, T)], json: impl Fn(&T) -> Value) -> Value {
    if rules.is_empty() {
        return Value::Null;
    }
    Value::Object(rules.iter().map(|(rule, value)| (rule.clone(), json(value))).collect())
}

fn of_rules<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<(String, T)>> {
    value.as_object()?.iter().map(|(rule, value)| Some((rule.clone(), read(value)?))).collect()
}

fn read_decided(value: &Value) -> Option<Decided> {
    Decided::ALL.into_iter().find(|decided| value.as_str() == Some(decided.as_str()))
}

fn read_outcome(value: &Value) -> Option<Outcome> {
    let outcomes = [Outcome::Ok, Outcome::Failed, Outcome::Overloaded, Outcome::Abandoned];
    outcomes.into_iter().find(|outcome| value.as_str() == Some(outcome_name(*outcome)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_core::{Criticality, WallTime};

    use super::*;
    use crate::decision::DecisionId;

    fn refused() -> Record {
        Record {
            time: WallTime::from_unix_nanos(1_700_000_000_250_000_000),
            id: Some(DecisionId::new(0xc0ffee)),
            method: "GET".to_owned(),
            path: "/v1/orders".to_owned(),
            route: Some("orders".to_owned()),
            caller: Some("sk_live_…".to_owned()),
            fingerprint: Some(7),
            criticality: Criticality::Sheddable,
            cost: Cost::from_micros(2_500_000),
            decided: Decided::Refused,
            rule: Some("per_key".to_owned()),
            reason: Some("quota_spent".to_owned()),
            retry: Some(Retry::After(Duration::from_micros(93_500))),
            status: Some(429),
            ..Record::malformed(WallTime::from_unix_nanos(0))
        }
    }

    #[test]
    fn a_record_is_one_line_that_says_only_what_is_known() {
        let line = refused().to_line();
        assert!(!line.contains('\n') && !line.contains("null") && !line.contains("wait"));
        assert!(line.contains(r#""retry_ms":93.5"#) && line.contains(r#""cost":2.5"#), "{line}");
        assert_eq!(Record::from_line(&line), Ok(refused()));
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        let said = |line: &str| Record::from_line(line).unwrap_err().to_string();
        assert!(said("{").starts_with("the line is not JSON: "));
        assert_eq!(said(r#"{"v":3}"#), "the record has version 3, but at most 2 is known here");
        assert_eq!(said(r#"{"v":2}"#), format!("`decision` must be {DECISION}"));
        assert_eq!(said(r#"{"v":1,"decision":"refused","time":3}"#), format!("`time` must be {TIME}"));
        assert_eq!(said("{}"), "`v` must be the version of the schema");
    }

    #[test]
    fn lines_of_the_first_version_are_read() {
        let line = r#"{"v":1,"time":"2023-11-14T22:13:20.25Z","id":"0000000000c0ffee","method":"GET",
            "path":"/v1/orders","route":"orders","caller":"sk_live_…","fingerprint":"0000000000000007",
            "criticality":"sheddable","cost":2.5,"decision":"refused","rule":"per_key",
            "reason":"quota_spent","retry_ms":93.5,"status":429}"#;
        assert_eq!(Record::from_line(line), Ok(refused()));
    }

    #[test]
    fn what_could_not_be_read_is_a_line_without_a_decision() {
        let time = WallTime::from_unix_nanos(1_700_000_000_250_000_000);
        let record = Record {
            client: Some([203, 0, 113, 7].into()),
            error: Some("malformed".to_owned()),
            status: Some(400),
            stands_for: StandsFor::of_count(17),
            ..Record::malformed(time)
        };
        let line = record.to_line();
        for absent in ["\"id\"", "method", "path", "cost", "criticality"] {
            assert!(!line.contains(absent), "{absent} in {line}");
        }
        assert!(line.contains(r#""stands_for":17"#), "{line}");
        assert_eq!(Record::from_line(&line), Ok(record));
    }

    #[test]
    fn a_sampled_line_says_how_many_it_stands_for() {
        for (share, written) in [(1_000_000, None), (10_000, Some("100")), (300_000, Some("3.333333"))] {
            let record = Record { stands_for: StandsFor::of_share(share), ..refused() };
            let line = record.to_line();
            let written = written.map(|number| format!("\"stands_for\":{number}"));
            assert_eq!(line.contains("stands_for"), written.is_some());
            assert!(written.is_none_or(|written| line.contains(&written)), "{line}");
            assert_eq!(Record::from_line(&line), Ok(record));
        }
    }

    #[test]
    fn what_strangers_send_is_cut_and_carries_nothing_out() {
        let long = "ü".repeat(2_000);
        let path = Record::cut(&long, Record::MOST_OF_PATH);
        assert!(path.len() <= Record::MOST_OF_PATH && path.ends_with('…'));
        assert_eq!(Record::cut("/v1", Record::MOST_OF_PATH), "/v1");
        let agent = Record::cut_field(Some(&[0xff; 10_000])).unwrap();
        assert!(agent.len() <= Record::MOST_OF_TEXT && agent.ends_with('…'));
        assert_eq!(Record::cut_field(Some(b"")), None);
        let odd = Record { user_agent: Some("a\u{9b}2J\u{202e}\u{7f}\n".to_owned()), ..refused() };
        let line = odd.to_line();
        assert!(!line.chars().any(crate::is_hidden), "{line}");
        assert_eq!(Record::from_line(&line), Ok(odd));
    }

    proptest! {
        #[test]
        fn whatever_is_written_can_be_read(
            nanos in 0_u64..1 << 62,
            id in any::<u64>(),
            path in "/\\PC{0,20}",
            micros in any::<u64>(),
            took in prop::option::of(0_u64..1 << 51),
            retry in prop::option::of(prop::option::of(0_u64..1 << 51)),
            shadow in prop::collection::vec("[a-z_]{1,8}", 0..3),
            level in 0_usize..4,
            texts in prop::collection::vec("(\\PC|\\p{C}){0,20}", 8),
            client in any::<std::net::IpAddr>(),
            rules in prop::collection::btree_map("[a-z_]{1,8}", any::<u64>(), 0..3),
            bytes in prop::option::of(any::<u64>()),
            attempts in 0_u32..9,
            share in 1_u32..=1_000_000,
            decided in 0_usize..3,
        ) {
            let mut texts = texts.into_iter();
            let mut text = || texts.next();
            let decided = Decided::ALL[decided];
            let is_read = decided != Decided::Malformed;
            let record = Record {
                time: WallTime::from_unix_nanos(nanos),
                id: is_read.then(|| DecisionId::new(id)),
                method: if is_read { refused().method } else { String::new() },
                path: if is_read { path } else { String::new() },
                cost: if is_read { Cost::from_micros(micros) } else { Cost::ZERO },
                decided,
                request_id: text(),
                listener: text(),
                host: text(),
                client: Some(client),
                user_agent: text(),
                endpoint: text(),
                error: text(),
                detail: text(),
                fingerprints: rules.clone().into_iter().collect(),
                settled: rules.into_iter().map(|(rule, micros)| (rule, Cost::from_micros(micros))).collect(),
                attempts,
                upstream: took.map(Duration::from_nanos),
                sent_bytes: bytes,
                received_bytes: bytes,
                stands_for: StandsFor::of_share(share),
                duration: took.map(Duration::from_nanos),
                retry: retry.map(|after| after.map_or(Retry::Never, |n| Retry::After(Duration::from_nanos(n)))),
                shadow_refusals: shadow,
                criticality: if is_read { Criticality::ALL[level] } else { Criticality::Critical },
                outcome: took.map(|_| Outcome::Overloaded),
                fingerprint: Some(id),
                ..refused()
            };
            prop_assert_eq!(Record::from_line(&record.to_line()), Ok(record));
        }
    }
}
