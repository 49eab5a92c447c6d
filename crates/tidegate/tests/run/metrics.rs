//! The page for Prometheus, as the gateway fills it.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::gateway::support::Upstream;
use crate::operated::Operated;

const REFERENCE: &str = include_str!("../../../../docs/reference/metrics.md");

const RULES: &str = "[rule.per_key]\nkey = \"header:x-api-key\"\nalgorithm = \"fixed_window\"\nquota = \"3/day\"\n\
                     [rule.places]\nkind = \"concurrency\"\nkey = \"header:x-api-key\"\nlimit = 10\n";

fn page() -> String {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, RULES);
    let statuses = gateway.gateway.statuses(5, "/", &[("x-api-key", "ann")]);
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
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

#[test]
fn the_reference_names_every_metric_with_its_labels_and_no_other() {
    let page = page();
    let exported: BTreeSet<(String, BTreeSet<String>)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| {
            let name = line.split(' ').next().unwrap();
            let is_its = |line: &&str| {
                let rest = line.strip_prefix(name).unwrap_or_default();
                rest.starts_with(['{', ' '])
                    || ["_bucket{", "_count{"].iter().any(|end| rest.starts_with(end))
            };
            let sample = page.lines().find(is_its).unwrap_or_else(|| panic!("{name} has no sample"));
            (name.to_owned(), labels(sample))
        })
        .collect();
    let written = REFERENCE.lines().filter_map(|line| line.strip_prefix("| `tidegate_"));
    let written: BTreeSet<(String, BTreeSet<String>)> = written
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            let name = format!("tidegate_{}", cells[0].trim().trim_end_matches('`'));
            (name, cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect())
        })
        .collect();
    assert_eq!(written, exported);
}

fn labels(sample: &str) -> BTreeSet<String> {
    let Some((_, rest)) = sample.split_once('{') else { return BTreeSet::new() };
    let rest = rest.split('}').next().unwrap();
    let names = rest.split("\",").map(|label| label.split('=').next().unwrap().to_owned());
    names.filter(|name| name != "le").collect()
}
