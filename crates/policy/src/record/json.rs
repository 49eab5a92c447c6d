use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Retry};

use crate::escape::escaped_json;

use super::{ParseError, Record, outcome_name, time};

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
        put("id", self.id.to_string().into());
        put("method", self.method.as_str().into());
        put("path", self.path.as_str().into());
        put("route", self.route.as_deref().into());
        put("caller", self.caller.as_deref().into());
        put("fingerprint", self.fingerprint.map(|hash| format!("{hash:016x}")).into());
        put("criticality", self.criticality.as_str().into());
        put("cost", cost_json(self.cost));
        put("decision", if self.is_admitted { "admitted" } else { "refused" }.into());
        put("rule", self.rule.as_deref().into());
        put("reason", self.reason.as_deref().into());
        put("retry_ms", self.retry.map_or(Value::Null, retry_json));
        if !self.shadow_refusals.is_empty() {
            put("shadow", json!(self.shadow_refusals));
        }
        if !self.wait.is_zero() {
            put("wait_ms", millis_json(self.wait));
        }
        put("duration_ms", self.duration.map_or(Value::Null, millis_json));
        put("status", self.status.into());
        put("outcome", self.outcome.map(outcome_name).into());
        Value::Object(fields)
    }

    /// As one line of JSON, without the end of the line.
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
        let decision = fields.text("decision")?;
        Ok(Self {
            time: fields.need(
                "time",
                TIME,
                fields.read("time", TIME, |value| time::read(value.as_str()?))?,
            )?,
            id: fields.need("id", ID, fields.read("id", ID, |value| value.as_str()?.parse().ok())?)?,
            method: fields.need("method", TEXT, fields.text("method")?)?,
            path: fields.need("path", TEXT, fields.text("path")?)?,
            route: fields.text("route")?,
            caller: fields.text("caller")?,
            fingerprint: fields.read("fingerprint", ID, fingerprint)?,
            criticality: fields
                .read("criticality", "a criticality", |value| value.as_str()?.parse().ok())?
                .unwrap_or_default(),
            cost: fields.read("cost", "a number from 0", read_cost)?.unwrap_or(Cost::ONE),
            is_admitted: match decision.as_deref() {
                Some("admitted") => true,
                Some("refused") => false,
                _ => return Err(ParseError::Field { name: "decision", expected: "admitted or refused" }),
            },
            rule: fields.text("rule")?,
            reason: fields.text("reason")?,
            retry: fields.read("retry_ms", "a number of milliseconds, or \"never\"", read_retry)?,
            shadow_refusals: fields.read("shadow", "a list of rules", read_names)?.unwrap_or_default(),
            wait: fields.read("wait_ms", MILLIS, read_millis)?.unwrap_or_default(),
            duration: fields.read("duration_ms", MILLIS, read_millis)?,
            status: fields.read("status", "a status", |value| u16::try_from(value.as_u64()?).ok())?,
            outcome: fields.read("outcome", "ok, failed, overloaded or abandoned", read_outcome)?,
        })
    }
}

const TEXT: &str = "a text";
const TIME: &str = "a time in UTC such as 2026-11-15T23:18:39.25Z";
const ID: &str = "sixteen hexadecimal digits";
const MILLIS: &str = "a number of milliseconds";

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
fn decimal(millionths: u64) -> Value {
    (millionths as f64 / 1e6).into()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the number is from 0, and what is too large saturates"
)]
fn millionths(value: &Value) -> Option<u64> {
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
            id: DecisionId::new(0xc0ffee),
            method: "GET".to_owned(),
            path: "/v1/orders".to_owned(),
            route: Some("orders".to_owned()),
            caller: Some("sk_live_…".to_owned()),
            fingerprint: Some(7),
            criticality: Criticality::Sheddable,
            cost: Cost::from_micros(2_500_000),
            is_admitted: false,
            rule: Some("per_key".to_owned()),
            reason: Some("quota_spent".to_owned()),
            retry: Some(Retry::After(Duration::from_micros(93_500))),
            shadow_refusals: Vec::new(),
            wait: Duration::ZERO,
            duration: None,
            status: Some(429),
            outcome: None,
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
        assert_eq!(said(r#"{"v":2}"#), "the record has version 2, but at most 1 is known here");
        assert_eq!(said(r#"{"v":1}"#), format!("`time` must be {TIME}"));
        assert_eq!(said(r#"{"v":1,"time":3}"#), format!("`time` must be {TIME}"));
        assert_eq!(said("{}"), "`v` must be the version of the schema");
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
        ) {
            let record = Record {
                time: WallTime::from_unix_nanos(nanos),
                id: DecisionId::new(id),
                path,
                cost: Cost::from_micros(micros),
                duration: took.map(Duration::from_nanos),
                retry: retry.map(|after| after.map_or(Retry::Never, |n| Retry::After(Duration::from_nanos(n)))),
                shadow_refusals: shadow,
                criticality: Criticality::ALL[level],
                outcome: took.map(|_| Outcome::Overloaded),
                fingerprint: Some(id),
                ..refused()
            };
            prop_assert_eq!(Record::from_line(&record.to_line()), Ok(record));
        }
    }
}
