//! The generated reference is what is committed.

#![expect(clippy::disallowed_methods, reason = "the reference is files")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tidegate_policy::{reference, schema};

const STALE: &str = "is not what the declarations say: run
    BLESS=1 cargo test -p tidegate-policy --test reference
and commit it";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference")
}

fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn compare(name: &str, generated: &str) {
    let path = directory().join(name);
    if is_blessed() {
        fs::write(&path, generated).expect("the reference can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "docs/reference/{name} {STALE}");
}

#[test]
fn the_reference_of_keys_is_up_to_date() {
    compare("policy.md", &reference::keys());
}

#[test]
fn the_reference_of_codes_is_up_to_date() {
    compare("errors.md", &reference::codes());
}

#[test]
fn the_schema_is_up_to_date() {
    let path = directory().join("tidegate.schema.json");
    if is_blessed() {
        fs::write(&path, format!("{:#}\n", schema())).unwrap();
    }
    // As values, for the order of an object's fields depends on what else is built.
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let committed: Value = serde_json::from_str(&committed).unwrap_or_default();
    assert!(committed == schema(), "docs/reference/tidegate.schema.json {STALE}");
}

#[test]
fn the_schema_of_the_access_log_is_up_to_date() {
    let schema = tidegate_policy::record::schema();
    let path = directory().join("access-log.schema.json");
    if is_blessed() {
        fs::write(&path, format!("{schema:#}\n")).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let committed: Value = serde_json::from_str(&committed).unwrap_or_default();
    assert!(committed == schema, "docs/reference/access-log.schema.json {STALE}");
}

/// Whether a value is what a schema says, patterns and ranges aside.
fn fits(value: &Value, schema: &Value) -> bool {
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().any(|schema| fits(value, schema));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.contains(value);
    }
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(fields)) => {
            let required = schema["required"].as_array().is_none_or(|keys| {
                keys.iter().all(|key| key.as_str().is_some_and(|key| fields.contains_key(key)))
            });
            let field = |(key, value): (&String, &Value)| match &schema["properties"][key] {
                Value::Null => fits(value, &schema["additionalProperties"]),
                schema => fits(value, schema),
            };
            required && fields.iter().all(field)
        }
        (Some("array"), Value::Array(items)) => items.iter().all(|item| fits(item, &schema["items"])),
        (Some("string"), Value::String(_)) | (Some("boolean"), Value::Bool(_)) => true,
        (Some("integer"), Value::Number(number)) => number.is_u64(),
        (Some("number"), Value::Number(_)) => true,
        _ => false,
    }
}

fn json_of(value: toml::de::DeValue<'_>) -> Value {
    use toml::de::DeValue;
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            number.as_str().replace('_', "").parse::<i64>().map(Value::from).unwrap_or_default()
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map(Value::from).unwrap_or_default(),
        DeValue::Boolean(value) => Value::from(value),
        DeValue::Datetime(_) => Value::Null,
        DeValue::Array(items) => items.into_iter().map(|item| json_of(item.into_inner())).collect(),
        DeValue::Table(table) => {
            let field = |(key, value): (toml::Spanned<_>, toml::Spanned<_>)| {
                let key: std::borrow::Cow<'_, str> = key.into_inner();
                (key.into_owned(), json_of(value.into_inner()))
            };
            Value::Object(table.into_iter().map(field).collect())
        }
    }
}

#[test]
fn the_examples_fit_the_schema_and_mistyped_ones_do_not() {
    fn example(text: &str) -> Value {
        let table = toml::de::DeTable::parse(text).expect("the example is TOML");
        json_of(toml::de::DeValue::Table(table.into_inner()))
    }
    for text in [
        include_str!("examples/supported.toml"),
        include_str!("examples/complete.toml"),
        include_str!("examples/details.toml"),
        include_str!("mistyped/right.toml"),
    ] {
        assert!(fits(&example(text), &schema()), "{text}");
        assert!(!fits(&example(&format!("lisen = 1\n{text}")), &schema()));
    }
}
