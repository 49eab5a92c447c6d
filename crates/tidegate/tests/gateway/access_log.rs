//! Every line of the access log is a record that can be read back.

use std::fs;
use std::path::Path;

use tidegate_policy::Record;

use crate::support::{Answer, Gateway, Signal, Upstream, until};

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
    assert_eq!((ok.is_admitted, ok.status), (true, Some(200)));
    assert!(ok.duration.is_some() && ok.rule.is_none());
    assert_eq!((failed.method.as_str(), failed.status), ("POST", Some(500)));
    assert_eq!(
        (refused.is_admitted, refused.status, refused.rule.as_deref()),
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
    assert!(records.iter().all(|record| !record.is_admitted));
}

#[test]
fn what_a_shadow_would_have_refused_is_logged() {
    let upstream = failing();
    let rule = "[rule.dark]\nquota = '2/h'\nmode = 'shadow'";
    let gateway = start(&upstream, "to = 'stdout', sample_accepted = '0%', always = ['shadow']", rule);
    assert_eq!(gateway.statuses(3, "/", &[]), [200; 3]);
    let [record] = logged(gateway).try_into().unwrap();
    assert_eq!((record.is_admitted, record.shadow_refusals), (true, vec!["dark".to_owned()]));
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
