//! `tidegate bench` as users run it: the real binary against a service of known capacity.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tidegate_load::service::{Queue, Service, Spec, Work};

const SCHEMA: &str = include_str!("../../../docs/reference/bench.schema.json");

fn service(spec: &Spec) -> (Service, String) {
    let service = Service::start(spec).expect("it starts");
    let url = format!("http://{}/", service.address());
    (service, url)
}

/// Two workers of 5 ms: 400 requests a second.
fn spec() -> Spec {
    Spec::new(2, Work::Fixed(Duration::from_millis(5)))
}

fn bench(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate")).arg("bench").args(words).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("answers are text")
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("the answer is JSON")
}

/// Everything in `value` that `schema` does not allow. A word that is not known here holds for nothing.
fn violations(schema: &Value, value: &Value, at: &str, root: &Value, found: &mut Vec<String>) {
    for (word, wanted) in schema.as_object().expect("a schema is an object") {
        let holds = match word.as_str() {
            "$ref" => {
                let pointer = wanted.as_str().expect("a reference").trim_start_matches('#');
                violations(root.pointer(pointer).expect("it exists"), value, at, root, found);
                true
            }
            "anyOf" => list(wanted).iter().any(|choice| {
                let mut own = Vec::new();
                violations(choice, value, at, root, &mut own);
                own.is_empty()
            }),
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| is_type(value, wanted)),
                wanted => is_type(value, wanted),
            },
            "const" => value == wanted,
            "enum" => list(wanted).contains(value),
            "minimum" => value.as_f64().is_none_or(|number| Some(number) >= wanted.as_f64()),
            "minItems" => list(value).len() as u64 >= wanted.as_u64().expect("a number"),
            "maxItems" => list(value).len() as u64 <= wanted.as_u64().expect("a number"),
            "items" => {
                for (index, item) in list(value).iter().enumerate() {
                    violations(wanted, item, &format!("{at}/{index}"), root, found);
                }
                true
            }
            "required" => list(wanted).iter().all(|name| value.get(name.as_str().expect("a name")).is_some()),
            "properties" => {
                for (name, schema) in wanted.as_object().expect("properties") {
                    if let Some(value) = value.get(name) {
                        violations(schema, value, &format!("{at}/{name}"), root, found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object().expect("properties");
                value.as_object().is_none_or(|given| given.keys().all(|name| known.contains_key(name)))
            }
            "description" | "title" | "$schema" | "$id" | "$defs" => true,
            _ => false,
        };
        if !holds {
            found.push(format!("{at}: {word} {wanted} does not hold for {value}"));
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        _ => false,
    }
}

fn assert_valid(report: &Value) {
    let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let mut found = Vec::new();
    violations(&schema, report, "", &schema, &mut found);
    assert_eq!(found, [""; 0]);
}

#[test]
fn the_check_of_the_schema_sees_what_is_wrong() {
    let (_service, url) = service(&spec());
    let mut report = json(&bench(&[&url, "--rate", "20", "--for", "100ms", "--json"]).stdout);
    assert_valid(&report);
    report["total"]["answered"]["2xx"] = "two".into();
    report["late_us"] = Value::Bool(true);
    report["more"] = Value::Null;
    report.as_object_mut().unwrap().remove("seed");
    let schema = serde_json::from_str(SCHEMA).unwrap();
    let mut found = Vec::new();
    violations(&schema, &report, "", &schema, &mut found);
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn a_service_within_its_capacity_answers_everything() {
    let (service, url) = service(&spec());
    let output =
        bench(&[&url, "--rate", "100", "--for", "500ms", "--key", "x-api-key: key-%", "--keys", "9"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let table = text(&output.stdout);
    let row = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).expect("the row is there");
        line[name.len()..].split_whitespace().map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(
        (row("due")[0].as_str(), row("unsent")[0].as_str(), row("2xx")[0].as_str()),
        ("50", "0", "50")
    );
    assert_eq!((row("429")[0].as_str(), row("503")[0].as_str()), ("0", "0"));
    assert_eq!(row("latency"), ["p50", "p90", "p99", "p99.9", "max"]);
    assert_eq!(row("admitted").len(), 10, "five latencies with their units");
    assert!(!table.contains("refused") && !table.contains("reset"), "{table}");
    assert!(text(&output.stderr).starts_with(&format!("GET {url} at 100/s for 500ms")), "{output:?}");
    assert_eq!(service.served().ok, 50);
}

#[test]
fn refusals_are_counted_apart_and_the_json_has_the_published_shape() {
    let (_service, url) = service(&Spec { queue: Queue::Bounded(2), ..spec() });
    for protocol in [&[][..], &["--h2"]] {
        let mut words = vec![&*url, "--rate", "1000", "--for", "1s", "--poisson", "--seed", "7", "--json"];
        words.extend(protocol);
        let output = bench(&words);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report = json(&output.stdout);
        assert_valid(&report);
        let total = &report["total"];
        assert!(total["answered"]["503"].as_u64() > Some(300), "{total:#}");
        assert_eq!(total["latency_us"]["refused"]["count"], total["answered"]["503"]);
        assert_eq!(total["latency_us"]["admitted"]["count"], total["answered"]["2xx"]);
        let goodput = total["goodput"].as_f64().unwrap();
        assert!((200.0..=420.0).contains(&goodput), "{goodput}");
    }
}

#[test]
fn ctrl_c_prints_what_was_measured_so_far() {
    let (_service, url) = service(&spec());
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["bench", &url, "--rate", "100", "--for", "1h", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It says that it can be interrupted once it can.
    let mut announced = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut announced).unwrap();
    assert!(announced.contains("Ctrl-C"), "{announced}");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut printed = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut printed).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report = json(&printed);
    assert_valid(&report);
    assert_eq!(report["stopped"], true);
    assert!(report["length_s"].as_f64() < Some(600.0));
}
