//! Every line of the access log is a record that can be read back.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tidegate_core::Cost;
use tidegate_core::permit::Outcome;
use tidegate_policy::Record;
use tidegate_policy::record::{Decided, StandsFor};

use crate::support::{Answer, Gateway, Message, Signal, Upstream, until};

/// A service that fails on request.
fn failing() -> Upstream {
    Upstream::answering(|request| match request.target() {
        "/fail" => Answer::raw("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"),
        _ => Answer::text("hello"),
    })
}

fn start(upstream: &Upstream, log: &str, rule: &str) -> Gateway {
    Gateway::before(upstream, &format!("[telemetry]\naccess_log = {{ {log} }}\n{rule}"))
}

fn records(lines: &[String]) -> Vec<Record> {
    let read = |line: &String| Record::from_line(line).unwrap_or_else(|problem| panic!("{problem}: {line}"));
    lines.iter().map(read).collect()
}

/// Everything that was logged, once the gateway has ended.
fn logged(mut gateway: Gateway) -> Vec<Record> {
    gateway.signal(Signal::TERM);
    assert!(gateway.wait().success());
    records(&gateway.output().all())
}

const TWO_A_KEY: &str = "[caller]\nfrom = 'header:x-api-key'\n[rule.per_key]\nkey = 'caller'\nquota = '2/h'";

#[test]
fn every_request_is_logged_with_what_became_of_it() {
    let upstream = failing();
    let gateway = start(&upstream, "to = 'stdout'", TWO_A_KEY);
    let alice = [("x-api-key", "sk_live_0123456789abcdef")];
    let mut client = gateway.connect();
    client.get("/a?secret=1", &alice);
    client.ask("POST", "/fail", &alice, "body");
    client.get("/c", &alice);
    let [ok, failed, refused] = logged(gateway).try_into().unwrap();

    assert_eq!((ok.method.as_str(), ok.path.as_str(), ok.route.as_deref()), ("GET", "/a", Some("default")));
    assert_eq!((ok.is_admitted(), ok.status), (true, Some(200)));
    assert!(ok.duration.is_some() && ok.rule.is_none());
    assert_eq!((failed.method.as_str(), failed.status), ("POST", Some(500)));
    assert_eq!(
        (refused.is_admitted(), refused.status, refused.rule.as_deref()),
        (false, Some(429), Some("per_key"))
    );
    assert_eq!(refused.reason.as_deref(), Some("quota_spent"));
    assert!(refused.retry.is_some());
    assert!(ok.fingerprint.is_some() && ok.fingerprint == refused.fingerprint);
    assert_ne!(ok.caller.as_deref(), Some(alice[0].1), "secrets are not logged");
    assert_ne!(ok.id, refused.id);
}

#[test]
fn refusals_are_logged_whatever_the_sample_is() {
    let upstream = failing();
    let gateway = start(&upstream, "to = 'stdout', sample_accepted = '0%', always = ['refused']", TWO_A_KEY);
    gateway.statuses(5, "/", &[("x-api-key", "a")]);
    let records = logged(gateway);
    assert_eq!(records.len(), 3, "{records:#?}");
    assert!(records.iter().all(|record| !record.is_admitted()));
}

#[test]
fn what_a_shadow_would_have_refused_is_logged() {
    let upstream = failing();
    let rule = "[rule.dark]\nquota = '2/h'\nmode = 'shadow'";
    let gateway = start(&upstream, "to = 'stdout', sample_accepted = '0%', always = ['shadow']", rule);
    assert_eq!(gateway.statuses(3, "/", &[]), [200; 3]);
    let [record] = logged(gateway).try_into().unwrap();
    assert_eq!((record.is_admitted(), record.shadow_refusals), (true, vec!["dark".to_owned()]));
}

#[test]
fn failures_are_logged_whatever_the_sample_is() {
    let upstream = failing();
    let gateway = start(&upstream, "to = 'stdout', sample_accepted = '0%', always = ['failed']", "");
    for target in ["/", "/fail", "/"] {
        gateway.get(target, &[]);
    }
    let [record] = logged(gateway).try_into().unwrap();
    assert_eq!((record.path.as_str(), record.status), ("/fail", Some(500)));
}

#[test]
fn a_share_of_what_is_admitted_is_logged() {
    let upstream = failing();
    let gateway = start(&upstream, "to = 'stdout', sample_accepted = '50%'", "");
    gateway.statuses(400, "/", &[]);
    let count = logged(gateway).len();
    // 200 give or take; ten deviations of 10 are beyond chance.
    assert!((100..=300).contains(&count), "{count}");
}

#[test]
fn the_log_may_be_a_file_beside_the_policy() {
    let upstream = failing();
    let mut gateway = start(&upstream, "to = 'access.log'", "");
    gateway.statuses(3, "/", &[]);
    gateway.signal(Signal::TERM);
    assert!(gateway.wait().success());
    let text = fs::read_to_string(gateway.folder().join("access.log")).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(records(&lines).len(), 3);
    assert!(gateway.output().all().is_empty());
}

#[test]
fn a_log_that_is_moved_away_begins_anew_under_its_name() {
    let upstream = failing();
    let gateway = start(&upstream, "to = 'access.log'", "");
    let [name, moved] = ["access.log", "access.log.1"].map(|name| gateway.folder().join(name));
    let paths = |path: &Path| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        records(&lines).into_iter().map(|record| record.path).collect()
    };
    gateway.get("/before", &[]);
    until(|| paths(&name) == ["/before"]);
    fs::rename(&name, &moved).unwrap();
    // It looks once a second; until then lines go to the file that was moved.
    until(|| {
        gateway.get("/after", &[]);
        name.exists()
    });
    until(|| !paths(&name).is_empty());
    assert_eq!(paths(&moved).first().unwrap(), "/before");
    assert!(paths(&moved)[1..].iter().chain(&paths(&name)).all(|path| path == "/after"));
}

#[test]
fn a_full_disk_loses_lines_and_nothing_else() {
    let upstream = failing();
    let gateway = start(&upstream, "to = '/dev/full'", "");
    assert_eq!(gateway.statuses(3, "/", &[]), [200; 3]);
    let line = gateway.errors().find(|line| line.contains("access log")).expect("operators are told");
    assert!(
        line.contains(" tidegate: the access log /dev/full cannot be written, and lines are lost: "),
        "{line}"
    );
    assert_eq!(gateway.statuses(3, "/", &[]), [200; 3]);
}

#[test]
fn lines_come_while_it_runs() {
    let upstream = failing();
    let gateway = start(&upstream, "to = 'stdout'", "");
    gateway.get("/now", &[]);
    assert_eq!(records(&gateway.output().first(1))[0].path, "/now");
}

#[test]
fn a_caller_who_goes_away_is_logged_as_gone() {
    let upstream = Upstream::answering(|_| Answer::silence());
    let gateway = start(&upstream, "to = 'stdout'", "");
    let mut client = gateway.connect();
    client.send("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n");
    upstream.wait_for(1);
    client.cut();
    assert_eq!(records(&gateway.output().first(1))[0].status, Some(499));
}

#[test]
fn who_is_cut_off_by_us_is_told_from_who_went_away() {
    let upstream = Upstream::answering(|_| Answer::silence());
    let mut gateway =
        Gateway::before(&upstream, "server.drain = '100ms'\n[telemetry]\naccess_log = { to = 'stdout' }");
    let clients = ["/one", "/two"].map(|target| {
        let mut client = gateway.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        client
    });
    upstream.wait_for(2);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait().code(), Some(0));
    drop(clients);
    let statuses: Vec<_> = records(&gateway.output().all()).iter().map(|record| record.status).collect();
    assert_eq!(statuses, [Some(503); 2]);
    let said = "tidegate: 2 requests were cut off, which had not ended within `drain`";
    assert!(
        gateway.errors().all().iter().any(|line| line.ends_with(said)),
        "{:#?}",
        gateway.errors().so_far()
    );
}

#[test]
fn what_terminals_would_carry_out_is_written_out() {
    let rule = "[caller]\nfrom = [\"header:x-api-key\"]\n[rule.r]\nkey = \"caller\"\nquota = \"10/s\"\n";
    let upstream = Upstream::ok();
    let gateway = Gateway::before(
        &upstream,
        &format!("{rule}[telemetry.access_log]\nto = \"stdout\"\nsample_accepted = \"100%\"\n"),
    );
    assert_eq!(gateway.get("/", &[("x-api-key", "a\u{9b}2J\u{202e}b")]).status(), 200);
    let line = gateway.output().find(|line| line.contains("\"caller\"")).expect("it is logged");
    assert!(line.contains(r#""caller":"a\u009b2J\u202eb""#), "{line}");
}

const TRUSTED: &str = "server.trusted_proxies = ['127.0.0.2']\n";

#[test]
fn a_line_says_who_asked_for_what_and_what_it_took() {
    let upstream = Upstream::answering(|_| Answer::text("hello"));
    let policy = format!("{TRUSTED}[telemetry]\naccess_log = {{ to = 'stdout' }}\n{TWO_A_KEY}");
    let gateway = Gateway::before(&upstream, &policy);
    let fields =
        [("x-api-key", "sk_live_0123456789abcdef"), ("user-agent", "shop/3.1"), ("host", "api.example:8080")];
    let mut client = gateway.connect();
    client.ask("POST", "/v1/orders?page=2", &fields, "four");
    let mut client = gateway.connect_from([127, 0, 0, 2].into());
    let forwarded = [("x-forwarded-for", "203.0.113.7"), ("x-api-key", "other")];
    client.get("/v1/orders", &forwarded);
    let [direct, behind] = logged(gateway).try_into().unwrap();

    assert_eq!(
        (direct.host.as_deref(), direct.user_agent.as_deref()),
        (Some("api.example"), Some("shop/3.1"))
    );
    assert_eq!(direct.client, Some([127, 0, 0, 1].into()));
    assert_eq!(direct.listener.as_deref(), Some("default"));
    assert_eq!((direct.sent_bytes, direct.received_bytes), (Some(5), Some(4)));
    assert_eq!((direct.attempts, direct.outcome), (1, Some(Outcome::Ok)));
    assert_eq!(direct.endpoint.as_deref(), Some(upstream.url().as_str()));
    assert!(direct.upstream.unwrap() <= direct.duration.unwrap());
    assert_eq!(direct.fingerprints, [("per_key".to_owned(), direct.fingerprint.unwrap())]);
    assert_eq!((direct.error, direct.stands_for), (None, StandsFor::ONE));
    assert_eq!(behind.client, Some([203, 0, 113, 7].into()));
    assert_ne!(behind.fingerprints, direct.fingerprints);
}

#[test]
fn requests_are_called_by_one_number_on_their_whole_way() {
    let upstream = Upstream::ok();
    let policy = format!("{TRUSTED}[telemetry]\naccess_log = {{ to = 'stdout' }}\n");
    let gateway = Gateway::before(&upstream, &policy);
    let given = [("x-request-id", "req-1")];
    gateway.connect().get("/", &given);
    gateway.connect_from([127, 0, 0, 2].into()).get("/", &given);
    gateway.connect_from([127, 0, 0, 2].into()).get("/", &[("x-request-id", "a b")]);
    let sent: Vec<String> =
        upstream.requests().iter().map(|request| request.all("x-request-id").join("|")).collect();
    let records = logged(gateway);
    let called: Vec<String> = records.iter().map(|record| record.request_id.clone().unwrap()).collect();
    assert_eq!(sent, called, "the service and the log call them the same");
    let ids: Vec<String> = records.iter().map(|record| record.id.unwrap().to_string()).collect();
    assert_eq!(called, [&ids[0], "req-1", &ids[2]], "a stranger is not believed, nor what is no number");
}

#[test]
fn a_sampled_line_says_how_many_it_stands_for() {
    let upstream = failing();
    let gateway = start(&upstream, "to = 'stdout', sample_accepted = '50%', always = ['failed']", "");
    gateway.statuses(200, "/", &[]);
    gateway.statuses(10, "/fail", &[]);
    let records = logged(gateway);
    let (failed, drawn): (Vec<_>, Vec<_>) =
        records.iter().partition(|record: &&Record| record.status == Some(500));
    assert_eq!(failed.len(), 10);
    assert!(failed.iter().all(|record| record.stands_for == StandsFor::ONE));
    assert!(!drawn.is_empty() && drawn.iter().all(|record| record.stands_for == StandsFor::of_count(2)));
}

/// The only line, and the answer, of a request to a service that is not well.
fn failure(upstream: &str) -> (Record, Message) {
    let gateway = Gateway::start(&format!(
        "listen = '127.0.0.1:0'
        [telemetry]
        access_log = {{ to = 'stdout' }}
        [upstream.default]
        {upstream}"
    ));
    let answer = gateway.get("/", &[]);
    let [record] = logged(gateway).try_into().unwrap();
    (record, answer)
}

#[test]
fn an_error_says_which_step_failed_to_operators_and_to_callers() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let reset = Upstream::scripted(|wire| drop(wire.request()));
    let nonsense = Upstream::answering(|_| Answer::raw("NONSENSE\r\n\r\n"));
    let silent = Upstream::answering(|_| Answer::silence());
    // Its certificate is one that the system does not trust.
    let over_tls = Upstream::answering_over_tls(|_| Answer::text("hello"));
    let at = |url: &str| format!("endpoints = ['{url}']\ntimeout = '300ms'");
    for (upstream, status, error, told) in [
        (at(&format!("http://{closed}")), 502, "connect_refused", "connection_refused"),
        (at("http://nowhere.invalid:80"), 502, "dns_error", "dns_error"),
        (at(&over_tls.url().replace("http:", "https:")), 502, "tls", "tls_protocol_error"),
        (at(&reset.url()), 502, "reset", "connection_terminated"),
        (at(&nonsense.url()), 502, "bad_answer", "http_protocol_error"),
        (at(&silent.url()), 504, "silent", "http_response_timeout"),
    ] {
        let upstream =
            upstream.replace("timeout = '300ms'", if error == "silent" { "timeout = '300ms'" } else { "" });
        let (record, answer) = failure(&upstream);
        assert_eq!((answer.status(), record.status), (status, Some(status)), "{error}");
        assert_eq!(record.error.as_deref(), Some(error));
        assert!(record.detail.is_some() && record.endpoint.is_some() && record.attempts > 0, "{record:#?}");
        assert!(answer.get("proxy-status").unwrap().contains(&format!("error={told}")), "{answer:?}");
        assert!(!answer.text().contains("127.0.0.1") && !answer.text().contains("nowhere"), "{answer:?}");
    }
}

#[test]
fn a_charge_is_logged_with_what_it_was_settled_to() {
    let upstream = Upstream::answering(|_| Answer::with(&[("x-cpu-seconds", "0.4")], "ok"));
    let rule =
        "[rule.cpu]\nquota = '2.5/s'\ncost = { estimate = 0.01, settle = 'response_header:x-cpu-seconds' }";
    let gateway = start(&upstream, "to = 'stdout'", rule);
    gateway.get("/", &[]);
    let [record] = logged(gateway).try_into().unwrap();
    assert_eq!(record.settled, [("cpu".to_owned(), Cost::from_micros(400_000))]);
}

#[test]
fn what_strangers_send_is_cut_and_carries_nothing_out() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "to = 'stdout'", "");
    let long = "a".repeat(5_000);
    let mut client = gateway.connect();
    client.send(format!("GET /{long} HTTP/1.1\r\nHost: a\r\nUser-Agent: x\u{9b}2J{long}\r\n\r\n")).response();
    let line = gateway.output().first(1).remove(0);
    assert!(line.len() < 4_000 && !line.chars().any(tidegate_policy::is_hidden), "{line}");
    assert!(line.contains("\\u009b2J"), "{line}");
    let record = Record::from_line(&line).unwrap();
    assert_eq!(
        (record.path.len(), record.user_agent.unwrap().len()),
        (Record::MOST_OF_PATH, Record::MOST_OF_TEXT)
    );
}

#[test]
fn lines_are_what_the_published_schema_says() {
    let published = include_str!("../../../../docs/reference/access-log.schema.json");
    let published: Value = serde_json::from_str(published).unwrap();
    let upstream = failing();
    let gateway = start(&upstream, "to = 'stdout'", TWO_A_KEY);
    gateway.statuses(3, "/", &[("x-api-key", "a")]);
    gateway.get("/fail", &[]);
    for line in gateway.output().first(4) {
        let line: Value = serde_json::from_str(&line).unwrap();
        for (name, value) in line.as_object().unwrap() {
            let described = &published["properties"][name];
            assert!(described.is_object(), "{name} is not described");
            let is_text = described["type"] == "string";
            assert_eq!(is_text, value.is_string(), "{name}: {value}");
        }
        for required in published["required"].as_array().unwrap() {
            assert!(line.get(required.as_str().unwrap()).is_some(), "{required} is missing");
        }
    }
}

#[test]
fn what_cannot_be_read_is_logged_too() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "to = 'stdout', sample_accepted = '0%'", "");
    let long = "a".repeat(70_000);
    for (sent, status) in [
        ("GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400),
        ("NONSENSE\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nA: {long}\r\n\r\n"), 431),
    ] {
        assert_eq!(gateway.connect().send(sent).response().status(), status);
    }
    let [twice, nonsense, large] = logged(gateway).try_into().unwrap();
    assert_eq!((twice.method.as_str(), twice.path.as_str(), twice.status), ("GET", "/a", Some(400)));
    assert_eq!(twice.detail.as_deref(), Some("the request has more than one Host field"));
    for record in [&twice, &nonsense, &large] {
        assert_eq!((record.decided, record.id), (Decided::Malformed, None));
        assert_eq!(record.client, Some([127, 0, 0, 1].into()));
        assert_eq!(record.listener.as_deref(), Some("default"));
    }
    assert_eq!((nonsense.error.as_deref(), nonsense.method.as_str()), (Some("malformed"), ""));
    assert_eq!((large.error.as_deref(), large.status), (Some("head_too_large"), Some(431)));
}

#[test]
fn a_flood_of_what_cannot_be_read_does_not_flood_the_log() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "to = 'stdout'", "");
    for _ in 0..300 {
        assert_eq!(gateway.connect().send("NONSENSE\r\n\r\n").response().status(), 400);
    }
    let records = logged(gateway);
    let stand_for: u64 = records.iter().map(|record| record.stands_for.micros() / 1_000_000).sum();
    assert!(records.len() < 300 && stand_for <= 300, "{} for {stand_for}", records.len());
}
