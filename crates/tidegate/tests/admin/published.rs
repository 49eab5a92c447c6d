//! Whether an answer is what the published description says.
//!
//! As much of JSON Schema as the description uses: types, required and known members, items, constants, enumerations
//! and references.

use serde_json::Value;
use tidegate::admin::OPENAPI;

/// Fails unless the value is what the component of this name describes.
#[track_caller]
pub(crate) fn assert_is(component: &str, value: &Value) {
    let described: Value = serde_json::from_str(OPENAPI).unwrap();
    let schema = &described["components"]["schemas"][component];
    assert!(schema.is_object(), "{component} is not described");
    let mut problems = Vec::new();
    compare(&described, schema, value, component, &mut problems);
    assert!(problems.is_empty(), "{problems:#?}\n{value:#}");
}

fn compare(all: &Value, schema: &Value, value: &Value, path: &str, problems: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return compare(all, &all["components"]["schemas"][name], value, path, problems);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => panic!("{path} has no type"),
    };
    if !types.iter().any(|expected| is_a(expected, value)) {
        problems.push(format!("{path} must be {types:?}, but is {value}"));
        return;
    }
    if value.is_null() {
        return;
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        problems.push(format!("{path} must be one of {allowed:?}, but is {value}"));
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        problems.push(format!("{path} must be {}, but is {value}", schema["const"]));
    }
    for item in value.as_array().into_iter().flatten() {
        compare(all, &schema["items"], item, &format!("{path}[]"), problems);
    }
    let Some(members) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            problems.push(format!("{path}.{name} is missing"));
        }
    }
    for (name, member) in members {
        match schema["properties"].get(name) {
            Some(described) => compare(all, described, member, &format!("{path}.{name}"), problems),
            None if schema["additionalProperties"] == false => {
                problems.push(format!("{path}.{name} is not described"))
            }
            None => {}
        }
    }
}

fn is_a(expected: &str, value: &Value) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    }
}

#[test]
fn what_differs_from_the_description_is_noticed() {
    let described: Value = serde_json::from_str(OPENAPI).unwrap();
    let wrong = serde_json::json!({ "v": 2, "caller": 3, "extra": true });
    let mut problems = Vec::new();
    let schema = &described["components"]["schemas"]["OverridesCleared"];
    compare(&described, schema, &wrong, "it", &mut problems);
    problems.sort();
    assert_eq!(
        problems,
        [
            "it.caller must be [\"string\"], but is 3",
            "it.cleared is missing",
            "it.extra is not described",
            "it.v must be 1, but is 2",
        ]
    );
}
