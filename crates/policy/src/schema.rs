//! The JSON Schema of the policy language, for editors.
//!
//! It is made from the declarations in [`document`](crate::document) and is a little wider than what is
//! read: patterns cannot say that a day has no thirty-first hour, nor that a route names a rule that
//! exists.

use serde_json::{Map, Value as Json, json};

use crate::document::read::Read;
use crate::document::spec::{Absent, Key, Section, Shape, Support};
use crate::document::top::PolicyDoc;
use crate::problem::Problems;
use crate::text::{self, Node, Source, Value};

/// The schema of a policy file, in the 2020-12 dialect.
#[must_use]
pub fn schema() -> Json {
    let mut schema = of_shape(PolicyDoc::SHAPE);
    if let Json::Object(fields) = &mut schema {
        fields.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        fields.insert("title".to_owned(), json!("Tidegate policy"));
    }
    schema
}

fn of_shape(shape: &Shape) -> Json {
    match shape {
        Shape::Text(form) => match form.pattern {
            Some(pattern) => json!({ "type": "string", "pattern": pattern }),
            None => json!({ "type": "string" }),
        },
        Shape::Count => json!({ "type": "integer", "minimum": 0 }),
        Shape::Amount => json!({ "type": "number", "minimum": 0 }),
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Choice(words) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            json!({ "enum": words })
        }
        Shape::List(inner) => json!({ "type": "array", "items": of_shape(inner) }),
        Shape::OneOrList(inner) => {
            let one = of_shape(inner);
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        }
        Shape::Named(inner) => json!({ "type": "object", "additionalProperties": of_shape(inner) }),
        Shape::Either(smaller, larger) => json!({ "anyOf": [of_shape(smaller), of_shape(larger)] }),
        Shape::Section(section) => of_section(section),
    }
}

fn of_section(section: &Section) -> Json {
    let properties: Map<String, Json> =
        section.keys.iter().map(|key| (key.name.to_owned(), of_key(key))).collect();
    let required = section.keys.iter().filter(|key| key.absent == Absent::Required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    json!({
        "type": "object",
        "description": section.about.trim(),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn of_key(key: &Key) -> Json {
    let mut schema = of_shape(key.shape);
    let Json::Object(fields) = &mut schema else { return schema };
    let note = match key.support {
        Support::Built => "",
        Support::NotYet => " Not supported yet.",
    };
    fields.insert("description".to_owned(), json!(format!("{}{note}", key.about.trim())));
    if let Absent::Default(value, _) = key.absent {
        fields.extend(from_toml(value).map(|value| ("default".to_owned(), value)));
    }
    fields.extend(from_toml(key.example).map(|value| ("examples".to_owned(), json!([value]))));
    schema
}

/// A value in TOML, as JSON.
fn from_toml(value: &str) -> Option<Json> {
    node(value).as_ref().map(to_json)
}

/// A value in TOML, as a node.
pub(crate) fn node(value: &str) -> Option<Node> {
    let text = format!("value = {value}");
    let root = text::read(Source::named("value.toml", text.as_bytes()), &mut Problems::default())?;
    root.get("value").cloned()
}

fn to_json(node: &Node) -> Json {
    match &node.value {
        Value::Text(text) => json!(text),
        Value::Number(number) => match number.parse::<i64>() {
            Ok(whole) => json!(whole),
            Err(_) => json!(number.parse::<f64>().ok()),
        },
        Value::Boolean(value) => json!(value),
        Value::List(items) => Json::Array(items.iter().map(to_json).collect()),
        Value::Table(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.clone(), to_json(&entry.value))).collect())
        }
        Value::Other(_) => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::read::Place;

    /// Every key of a section and of those below it.
    fn walk(section: &'static Section, path: &str, visit: &mut impl FnMut(&str, &'static Key)) {
        for key in section.keys {
            let path = format!("{path}.{}", key.name);
            visit(&path, key);
            if let Some(inner) = key.shape.section() {
                walk(inner, &path, visit);
            }
        }
    }

    #[test]
    fn every_default_and_example_can_be_read() {
        let top = PolicyDoc::SHAPE.section().unwrap();
        walk(top, "", &mut |path, key| {
            assert!(from_toml(key.example).is_some(), "{path}: {}", key.example);
            if let Absent::Default(value, reason) = key.absent {
                assert!(from_toml(value).is_some(), "{path}: {value}");
                assert!(!reason.is_empty(), "{path}");
            }
            assert!(key.about.trim().ends_with('.'), "{path}: one sentence, with its full stop");
        });
    }

    #[test]
    fn every_example_at_the_top_reads_without_unknown_keys() {
        for key in PolicyDoc::SHAPE.section().unwrap().keys {
            let text = format!("{} = {}", key.name, key.example);
            let mut problems = Problems::default();
            let node = text::read(Source::named("x.toml", text.as_bytes()), &mut problems).unwrap();
            assert!(PolicyDoc::read(&node, &Place::top(), &mut problems).is_some());
            let problems = problems.sorted();
            let other = problems.iter().find(|problem| problem.code != crate::Code::NotSupported);
            assert_eq!(other, None, "{text}");
        }
    }
}
