//! The page for Prometheus, as the gateway fills it.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::gateway::support::{Client, Gateway, Latch, Signal, Upstream, tls, until};
use crate::operated::Operated;

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");

/// Every family has a sample with this.
const RULES: &str = "[rule.per_key]\nkey = \"header:x-api-key\"\nalgorithm = \"fixed_window\"\nquota = \"3/day\"\n\
                     [rule.places]\nkind = \"concurrency\"\nkey = \"header:x-api-key\"\nlimit = 10\n\
                     [signal.backlog]\nfrom = \"api\"\n";

/// In clear and encrypted, with an admin API.
fn start(upstream: &Upstream, rest: &str) -> Operated {
    let policy = format!(
        "upstream = '{}'
        [server]
        admin = '127.0.0.1:0'
        trusted_proxies = ['127.0.0.2']
        [[listener]]
        name = 'default'
        bind = '127.0.0.1:0'
        protocols = ['h2', 'http/1.1']
        max_connections_per_address = 2
        max_header_bytes = '256KiB'
        [[listener]]
        name = 'secure'
        bind = '127.0.0.1:0'
        tls = {{ cert = 'tls.crt', key = 'tls.key' }}
        {rest}",
        upstream.url()
    );
    let files = [("tls.crt", tls::CERT), ("tls.key", tls::KEY), ("renewed", tls::RENEWED_CERT)];
    Operated::of(Gateway::start_with(&policy, &files))
}

fn page() -> String {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, RULES);
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
    let gateway = start(&upstream, "");
    let clients = [(); 2].map(|()| {
        let mut client = gateway.gateway.connect();
        assert_eq!(client.get("/", &[]).status(), 200);
        client
    });
    let mut rejected = gateway.gateway.connect();
    assert!(rejected.is_closed());
    let counted =
        |name: &str| gateway.metric(&format!("tidegate_connections_{name}{{listener=\"default\"}}"));
    let names = ["open", "accepted_total", "rejected_total", "abandoned_total"];
    assert_eq!(names.map(counted), [2, 2, 1, 0]);
    drop(clients);
}

/// How often this was counted at this listener.
fn errors(gateway: &Operated, listener: &str, kind: &str) -> u64 {
    gateway.metric(&format!("tidegate_protocol_errors_total{{listener=\"{listener}\",kind=\"{kind}\"}}"))
}

#[test]
fn breaches_of_protocols_are_counted_by_kind() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let [long, too_long] = [70_000, 300_000].map(|length| "a".repeat(length));
    for (sent, status, kind) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400, "malformed"),
        ("NONSENSE\r\n\r\n".to_owned(), 400, "malformed"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nA: {too_long}\r\n\r\n"), 431, "head_too_large"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(200)), 431, "head_too_large"),
        (format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414, "target_too_long"),
    ] {
        let before = errors(&gateway, "default", kind);
        let mut client = gateway.gateway.connect();
        assert_eq!(client.send(sent).response().status(), status);
        assert_eq!(errors(&gateway, "default", kind), before + 1, "{kind}");
    }
    let mut client = gateway.gateway.connect();
    // A frame of DATA on a stream that nobody opened.
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\0\0\0\0\0\x01x");
    client.rest();
    until(|| errors(&gateway, "default", "http2") == 1);
    let secure = gateway.gateway.addresses()[1];
    let mut client = Client::connect(secure);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.rest();
    until(|| errors(&gateway, "secure", "tls") == 1);
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn callers_that_leave_before_they_ask_break_no_protocol() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    for address in gateway.gateway.addresses() {
        Client::connect(*address).send("GE").cut();
    }
    let open = || {
        let names =
            ["default", "secure"].map(|name| format!("tidegate_connections_open{{listener=\"{name}\"}}"));
        names.map(|name| gateway.metric(&name))
    };
    until(|| open() == [0, 0]);
    let page = gateway.metrics();
    let mut counted = page.lines().filter(|line| line.starts_with("tidegate_protocol_errors_total"));
    assert!(counted.all(|line| line.ends_with(" 0")), "{page}");
}

#[test]
fn headers_of_proxies_that_cannot_be_read_are_counted() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(
        &upstream,
        "server.trusted_proxies = ['127.0.0.2']\nserver.client_address = 'proxy_protocol'\n",
    );
    let mut client = gateway.gateway.connect_from([127, 0, 0, 2].into());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.rest();
    until(|| errors(&gateway, "default", "proxy_header") == 1);
}

#[test]
fn the_end_of_a_certificate_is_told_and_follows_its_renewal() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let expiry = || gateway.metric("tidegate_certificate_expiry_timestamp_seconds{listener=\"secure\"}");
    // 2126-10-23, by what openssl says of the two files.
    assert_eq!(expiry(), 4_948_397_458);
    assert!(
        !gateway.metrics().contains("tidegate_certificate_expiry_timestamp_seconds{listener=\"default\"}")
    );
    let folder = gateway.gateway.folder();
    fs::write(folder.join("tls.key"), tls::RENEWED_KEY).unwrap();
    fs::write(folder.join("tls.crt"), tls::RENEWED_CERT).unwrap();
    gateway.gateway.signal(Signal::HUP);
    until(|| expiry() == 4_948_400_736);
}

#[test]
fn the_latency_of_an_upstream_is_the_time_to_the_head_of_its_answer() {
    let [asked, head, body] = [(); 3].map(|()| Latch::default());
    let upstream = Upstream::scripted({
        let (asked, head, body) = (asked.clone(), head.clone(), body.clone());
        move |wire| {
            while wire.request().is_some() {
                asked.open();
                head.wait();
                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
                body.wait();
                wire.send("ok");
            }
        }
    });
    let gateway = Operated::before(&upstream, "");
    let mut client = gateway.gateway.connect();
    let begun = Instant::now();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    asked.wait();
    let counted = |what: &str| {
        let sample = format!("tidegate_upstream_latency_seconds_{what}{{upstream=\"default\"}}");
        value(&gateway.metrics(), &sample)
    };
    assert!(counted("count") < 0.5);
    head.open();
    client.response_head();
    let longest = begun.elapsed().as_secs_f64();
    assert!((counted("count") - 1.0).abs() < 0.5, "before the body has come");
    assert!(counted("sum") <= longest, "{} of {longest}", counted("sum"));
    body.open();
    assert_eq!(client.take(2), b"ok");
}
