//! `tidegate ctl`: the real binary asks a real admin API.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;

use tidegate::admin::{Stage, Station};

use crate::station::{POLICY, Running};

struct Shell<'a>(&'a Running);

impl Shell<'_> {
    fn run(&self, words: &[&str]) -> Output {
        let mut command = tidegate();
        command.args(["ctl", "--admin", &self.0.address().to_string()]).args(words);
        command.output().expect("the binary runs")
    }

    /// What is printed by a command that ends well.
    #[track_caller]
    fn said(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The exit code and what is complained of.
    fn failed(&self, words: &[&str]) -> (Option<i32>, String) {
        failure(&self.run(words))
    }
}

fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.env_remove("TIDEGATE_TOKEN").env_remove("TIDEGATE_ADMIN");
    command
}

fn failure(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stderr.clone()).unwrap())
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn what_is_asked_is_told_in_words_and_tables() {
    let running = Running::start();
    let shell = Shell(&running);
    let (ids, _) = running.station.requests("ann", 8);
    let status = shell.said(&["status"]);
    assert!(status.starts_with("Healthy: "), "{status}");
    assert!(status.contains("policy version 1 from tidegate.toml, running since 2026-09-21T"), "{status}");
    let rules = shell.said(&["rules"]);
    let first: Vec<&str> = rules.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(first, ["per_key", "enforce", "10/min", "burst", "5", "caller", "5", "3", "0", "1"]);
    let callers = shell.said(&["callers", "--sort", "refused", "-n", "3"]);
    assert!(callers.starts_with("CALLER  REFUSED  FINGERPRINT\nann     3        "), "{callers}");
    let decisions = shell.said(&["decisions", "--refused"]);
    assert_eq!(decisions.lines().count(), 4);
    assert!(decisions.contains("GET /v1/orders  ann     refused   per_key  quota_spent"), "{decisions}");
    let decision = shell.said(&["decision", &ids[7].to_string()]);
    assert!(decision.contains("reason       quota_spent\n"), "{decision}");
    assert_eq!(shell.said(&["decision", &format!("urn:tidegate:decision:{}", ids[7])]), decision);
    assert_eq!(shell.said(&["counter", "places", "ann"]), "0 of 50 in flight by rule places: 50 left\n");
    let explained = shell.said(&["explain", "GET /v1/orders x-api-key:ann"]);
    assert!(explained.contains("per_key") && explained.contains("refuse"), "{explained}");
    let upstreams = shell.said(&["upstreams"]);
    assert!(
        upstreams
            .contains("default   http://127.0.0.1:3000  2            1          1         connect_refused\n"),
        "{upstreams}"
    );
    assert!(
        upstreams
            .contains("default   64     64         12       18.3 ms  10 ms     1.25    80 to 64: requests")
    );
    assert_eq!(
        shell.said(&["capacity"]),
        "1.25 times the capacity is wanted: upstream default has 64 of 64 places taken and 12 waiting\n"
    );
    let signals = shell.said(&["signals"]);
    assert!(
        signals.contains("cpu              42 %     gateway                    85 % by rule worker_usage\n"),
        "{signals}"
    );
    assert!(
        signals.contains("db_load          unknown  api                        0.5 by rule worker_usage\n"),
        "{signals}"
    );
    let routes = shell.said(&["routes"]);
    let catalogue = "catalogue  default   everybody, worker_usage               while requests are shed\n";
    assert!(routes.contains(catalogue), "{routes}");
    assert!(status.contains("signals: cpu 42 %, queue_delay 18.3 ms, backlog 12\n"), "{status}");
    assert_eq!(shell.said(&["policy", "get"]), POLICY);
    let json: serde_json::Value = serde_json::from_str(&shell.said(&["rules", "--json"])).unwrap();
    assert_eq!(json["rules"][0]["rule"], "per_key");
}

#[test]
fn what_is_told_is_done() {
    let running = Running::start();
    let shell = Shell(&running);
    assert_eq!(
        shell.said(&["mode", "per_key", "shadow", "--for", "10min"]),
        "rule per_key is in mode shadow until 2026-09-21T14:23:20Z, then enforce\n"
    );
    assert_eq!(
        shell.said(&["mode", "per_key", "disabled"]),
        "rule per_key is in mode disabled until it is switched again\n"
    );
    assert_eq!(
        shell.said(&["mode", "per_key", "policy"]),
        "rule per_key is in mode enforce, as the policy says\n"
    );
    assert_eq!(
        shell.said(&["override", "a/b c", "per_key", "--quota", "50/s", "--burst", "100", "--new"]),
        "a/b c has 50/s burst 100 by rule per_key until 2026-09-21T15:13:20Z\n"
    );
    assert!(shell.said(&["overrides"]).contains("a/b c   per_key  50/s burst 100  2026-09-21T15:13:20Z  "));
    assert_eq!(
        shell.said(&["override-clear", "a/b c"]),
        "a/b c has no limit of its own any more by per_key\n"
    );
    assert_eq!(shell.said(&["overrides"]), "no overrides\n");
    running.station.requests("ann", 3);
    assert_eq!(
        shell.said(&["block", "ann", "per_key"]),
        "ann is blocked by rule per_key until it is let in again\n"
    );
    assert!(shell.said(&["overrides"]).contains("ann     per_key  blocked"));
    assert_eq!(shell.said(&["unblock", "ann"]), "ann is let in again\n");
    let changes = shell.said(&["changes", "-n", "2"]);
    assert!(changes.starts_with("AT ") && changes.lines().count() == 3, "{changes}");
    assert!(changes.contains("blocked  let in"), "{changes}");
    let (code, said) = shell.failed(&["block", "anm"]);
    assert!(code == Some(1) && said.contains("the nearest are `ann` ("), "{said}");
    assert_eq!(shell.said(&["counter", "per_key", "ann", "--reset"]), "0 of 5 by rule per_key: 5 left\n");
    assert_eq!(
        shell.said(&["degrade", "catalogue", "on", "--ttl", "10min"]),
        "route catalogue gives all its cheaper answer until 2026-09-21T14:23:20Z\n"
    );
    assert_eq!(
        shell.said(&["degrade", "catalogue", "on"]),
        "route catalogue gives all its cheaper answer until it is switched to auto\n"
    );
    let routes = shell.said(&["routes"]);
    assert!(routes.contains("given to all until it is switched to auto\n"), "{routes}");
    assert_eq!(
        shell.said(&["degrade", "catalogue", "auto"]),
        "route catalogue is answered by its upstream\n"
    );
    assert_eq!(shell.said(&["signal", "db_load", "0.7"]), "signal db_load was told 0.7\n");
    let json: serde_json::Value = serde_json::from_str(&shell.said(&["signals", "--json"])).unwrap();
    assert_eq!(json["signals"][3]["value"], 0.7);
    let other = file("put.toml", &POLICY.replace("10/min", "20/min"));
    assert_eq!(shell.said(&["policy", "put", other.to_str().unwrap()]), "taken as version 2\n");
    let checked = shell.said(&["policy", "check", other.to_str().unwrap()]);
    assert!(checked.ends_with("\nfine. 1 warning.\n"), "{checked}");
    assert!(shell.said(&["drain"]).starts_with("Draining: 0 requests in flight.\n"));
    assert_eq!(running.station.stage(), Stage::Draining);
}

#[test]
fn a_wrong_policy_ends_with_78_and_all_its_problems() {
    let running = Running::start();
    let shell = Shell(&running);
    let wrong = file("wrong.toml", &POLICY.replace("burst = 5", "brust = 5"));
    let wrong = wrong.to_str().unwrap();
    let (code, problems) = shell.failed(&["policy", "put", wrong]);
    assert_eq!(code, Some(78));
    assert!(problems.contains("did you mean `burst`?"), "{problems}");
    assert!(problems.ends_with("1 error, 1 warning. The policy stays as it is.\n"), "{problems}");
    let checked = shell.run(&["policy", "check", wrong]);
    assert_eq!(checked.status.code(), Some(78));
    assert!(String::from_utf8(checked.stdout).unwrap().contains("did you mean `burst`?"));
    assert_eq!(running.station.gate().version(), 1);
}

#[test]
fn what_goes_wrong_is_said_in_one_line() {
    let running = Running::start();
    let shell = Shell(&running);
    let (code, problem) = shell.failed(&["mode", "per_kye", "shadow"]);
    assert_eq!(code, Some(1));
    assert!(problem.starts_with("error: there is no rule `per_kye`; the rules are "), "{problem}");
    assert_eq!(shell.failed(&["mode", "per_key", "off"]).0, Some(2));
    assert_eq!(shell.failed(&["mode", "per_key", "shadow", "--for", "10"]).0, Some(2));
    assert_eq!(shell.failed(&["policy"]).0, Some(2));
    assert_eq!(shell.failed(&["degrade", "catalogue", "off"]).0, Some(2));
    assert_eq!(shell.failed(&["signal", "db_load", "much"]).0, Some(2));
    let (code, problem) = shell.failed(&["signal", "cpu", "1"]);
    assert_eq!(code, Some(1));
    assert!(problem.starts_with("error: signal `cpu` is measured by the gateway itself; "), "{problem}");
    let (code, problem) = shell.failed(&["policy", "put", "nowhere.toml"]);
    assert_eq!(code, Some(1));
    assert!(problem.starts_with("error: nowhere.toml cannot be read: "), "{problem}");
    let (code, problem) = shell.failed(&["explain", "GET v1"]);
    assert_eq!(
        (code, problem.as_str()),
        (Some(1), "error: the path `v1` does not begin with a slash; write 'GET /v1'\n")
    );

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (code, problem) = failure(&tidegate().args(["ctl", "status", "--admin", &free]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(problem.starts_with(&format!("error: the admin API at {free} cannot be reached: ")), "{problem}");
}

#[test]
fn what_is_no_admin_api_is_told_nothing_and_believed_nothing() {
    const WORDS: [&[&str]; 23] = [
        &["status"],
        &["rules"],
        &["callers"],
        &["overrides"],
        &["decisions"],
        &["decision", "1"],
        &["explain", "GET /"],
        &["upstreams"],
        &["capacity"],
        &["signals"],
        &["routes"],
        &["mode", "r", "shadow"],
        &["degrade", "r", "on"],
        &["signal", "s", "1"],
        &["override", "a", "r"],
        &["override-clear", "a"],
        &["block", "a"],
        &["unblock", "a"],
        &["changes"],
        &["counter", "r", "a"],
        &["policy", "get"],
        &["policy", "get", "--json"],
        &["drain"],
    ];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Says {} to everything, and hands over what it was asked.
    let other = thread::spawn(move || {
        let answered = listener.incoming().take(WORDS.len()).map(|stream| {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(&stream).lines().map(Result::unwrap);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
            head.join("\n")
        });
        answered.collect::<Vec<_>>()
    });
    for words in WORDS {
        let mut command = tidegate();
        command.env("TIDEGATE_TOKEN", "s3cret").args(["ctl", "--admin", &address]).args(words);
        let output = command.output().unwrap();
        let complaint = format!("error: {address} is not a Tidegate admin API\n");
        assert_eq!(failure(&output), (Some(1), complaint), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
    for head in other.join().unwrap() {
        assert!(head.starts_with("GET /livez ") && !head.contains("s3cret"), "{head}");
    }
}

#[test]
fn the_token_comes_from_a_file_or_the_environment_and_the_address_too() {
    let running = Running::with_token(Some("s3cret"));
    let shell = Shell(&running);
    let (code, problem) = shell.failed(&["status"]);
    assert_eq!(code, Some(1));
    assert!(problem.contains("give the token with --token-file, or in $TIDEGATE_TOKEN"), "{problem}");
    let token = file("token", "s3cret\n");
    assert!(shell.said(&["status", "--token-file", token.to_str().unwrap()]).starts_with("Healthy"));
    let empty = file("no-token", "\n");
    let (code, problem) = shell.failed(&["status", "--token-file", empty.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(problem.ends_with("must be one word of visible ASCII characters\n"), "{problem}");
    let mut command = tidegate();
    command.env("TIDEGATE_TOKEN", "s3cret").env("TIDEGATE_ADMIN", running.address().to_string());
    assert!(command.args(["ctl", "status"]).output().unwrap().status.success());
}
