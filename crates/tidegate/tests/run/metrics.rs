//! The page for Prometheus, as the gateway fills it.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::gateway::support::{Gateway, Upstream};
use crate::operated::Operated;

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");

/// Every family has a sample with this.
const RULES: &str = "[rule.per_key]\nkey = \"header:x-api-key\"\nalgorithm = \"fixed_window\"\nquota = \"3/day\"\n\
                     [rule.places]\nkind = \"concurrency\"\nkey = \"header:x-api-key\"\nlimit = 10\n\
                     [signal.backlog]\nfrom = \"api\"\n";

fn page() -> String {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, RULES);
    let statuses = gateway.gateway.statuses(5, "/", &[("x-api-key", "ann")]);
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    let told = gateway.ask("PUT", "/api/v1/signals/backlog", "{\"value\": 12}");
    assert_eq!(told.status(), 200);
    gateway.metrics()
}

#[test]
fn requests_are_counted_where_they_belong() {
    let page = page();
    for line in [
        r#"tidegate_requests_total{listener="default",route="default",criticality="critical",decision="admitted"} 3"#,
        r#"tidegate_requests_total{listener="default",route="default",criticality="critical",decision="refused"} 2"#,
        r#"tidegate_refusals_total{rule="per_key",reason="quota",criticality="critical"} 2"#,
        r#"tidegate_request_duration_seconds_count{route="default",status_class="2xx"} 3"#,
        r#"tidegate_request_duration_seconds_count{route="default",status_class="4xx"} 2"#,
        r#"tidegate_overhead_seconds_count{phase="decide"} 1"#,
        r#"tidegate_in_flight{route="default"} 0"#,
        r#"tidegate_rule_keys{rule="per_key"} 1"#,
        r#"tidegate_upstream_attempts_total{upstream="default",outcome="ok"} 3"#,
        "tidegate_policy_version 1",
    ] {
        assert!(page.lines().any(|known| known == line), "{line} is not in\n{page}");
    }
}

#[test]
fn promtool_finds_nothing_to_say() {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn().expect("promtool is installed");
    promtool.stdin.take().unwrap().write_all(page().as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// A family as the page describes it.
struct Described {
    name: String,
    kind: String,
    help: String,
    labels: Vec<String>,
}

fn described(page: &str) -> Vec<Described> {
    let lines: Vec<&str> = page.lines().collect();
    let heads = lines.windows(2).filter_map(|pair| {
        let (name, help) = pair[0].strip_prefix("# HELP ")?.split_once(' ').unwrap();
        let kind = pair[1].strip_prefix("# TYPE ").unwrap().strip_prefix(name).unwrap().trim();
        Some((name, kind, help))
    });
    heads
        .map(|(name, kind, help)| {
            let is_its = |line: &&&str| {
                let rest = line.strip_prefix(name).unwrap_or_default();
                rest.starts_with(['{', ' '])
                    || ["_bucket{", "_count{"].iter().any(|end| rest.starts_with(end))
            };
            let sample = lines.iter().find(is_its).unwrap_or_else(|| panic!("{name} has no sample"));
            let (name, kind, help) = (name.to_owned(), kind.to_owned(), help.to_owned());
            Described { name, kind, help, labels: labels(sample) }
        })
        .collect()
}

#[test]
fn the_reference_has_the_table_of_all_metrics_as_they_describe_themselves() {
    let mut table = String::from("| name | kind | labels | says |\n|---|---|---|---|\n");
    for Described { name, kind, help, labels } in described(&page()) {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(table, "| `{name}` | {kind} | {} | {help} |", labels.join(", ")).unwrap();
    }
    let reference = fs::read_to_string(REFERENCE).unwrap();
    let begin = reference.find("| name | kind |").unwrap();
    let end = begin + reference[begin..].find("\n\n").unwrap() + 1;
    if std::env::var_os("BLESS").is_some() {
        let blessed = [&reference[..begin], &table, &reference[end..]].concat();
        fs::write(Path::new(REFERENCE), blessed).unwrap();
    } else {
        assert_eq!(&reference[begin..end], table, "if that is right, BLESS=1 writes it anew");
    }
}

#[test]
fn units_and_kinds_stand_in_the_names() {
    for Described { name, kind, labels, .. } in described(&page()) {
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        assert!(name.starts_with("tidegate_") || name.starts_with("process_"), "{name}");
        let strangers = ["caller", "key", "path", "host", "client", "user_agent"];
        assert!(!labels.iter().any(|label| strangers.contains(&label.as_str())), "{name} {labels:?}");
    }
}

#[test]
fn buckets_of_requests_begin_at_a_millisecond() {
    let page = page();
    let first = page.lines().find(|line| line.starts_with("tidegate_request_duration_seconds_bucket"));
    assert!(first.unwrap().contains("le=\"0.001\""), "{first:?}");
}

fn labels(sample: &str) -> Vec<String> {
    let Some((_, rest)) = sample.split_once('{') else { return Vec::new() };
    let rest = rest.split('}').next().unwrap();
    let names = rest.split("\",").map(|label| label.split('=').next().unwrap().to_owned());
    names.filter(|name| name != "le").collect()
}

/// The value of a sample with these labels.
fn value(page: &str, sample: &str) -> f64 {
    let values = page.lines().filter_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    let values: Vec<f64> = values.map(|value| value.parse().unwrap()).collect();
    assert_eq!(values.len(), 1, "{sample} in\n{page}");
    values[0]
}

#[test]
fn signals_stand_under_names_that_say_their_unit() {
    let page = page();
    assert!((0.0..=1.0).contains(&value(&page, "tidegate_signal_ratio{name=\"memory\"}")));
    assert!(value(&page, "tidegate_signal_seconds{name=\"event_loop\"}") >= 0.0);
    assert!((value(&page, "tidegate_signal{name=\"backlog\"}") - 12.0).abs() < 1e-9);
    assert!(!page.contains("tidegate_signal{name=\"memory\"}"), "{page}");
}

#[test]
fn the_process_is_measured_as_prometheus_libraries_do() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let page = page();
    let [resident, reserved] =
        ["process_resident_memory_bytes", "process_virtual_memory_bytes"].map(|name| value(&page, name));
    assert!(resident > 1e6 && resident < reserved, "{resident} of {reserved}");
    let [open, most] = ["process_open_fds", "process_max_fds"].map(|name| value(&page, name));
    assert!(open > 5.0 && open < most, "{open} of {most}");
    assert!(value(&page, "process_cpu_seconds_total") > 0.0);
    let started = value(&page, "process_start_time_seconds");
    assert!((started - now).abs() < Duration::from_secs(60).as_secs_f64(), "{started}, now {now}");
}

#[test]
fn connections_are_counted_by_what_became_of_them() {
    let upstream = Upstream::ok();
    let gateway = Operated::of(Gateway::start(&format!(
        "upstream = '{}'\nserver.admin = '127.0.0.1:0'\n[[listener]]\nname = 'public'\nbind = '127.0.0.1:0'\n\
         max_connections_per_address = 2",
        upstream.url()
    )));
    let clients = [(); 2].map(|()| {
        let mut client = gateway.gateway.connect();
        assert_eq!(client.get("/", &[]).status(), 200);
        client
    });
    let mut rejected = gateway.gateway.connect();
    assert!(rejected.is_closed());
    let counted = |name: &str| gateway.metric(&format!("tidegate_connections_{name}{{listener=\"public\"}}"));
    let names = ["open", "accepted_total", "rejected_total", "abandoned_total"];
    assert_eq!(names.map(counted), [2, 2, 1, 0]);
    drop(clients);
}
