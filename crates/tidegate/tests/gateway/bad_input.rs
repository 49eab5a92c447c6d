//! What cannot be served is said in one clear sentence, with the right exit code.

use std::net::TcpListener;
use std::process::{Command, Output};

use crate::support::{refused_to_start, tls};

/// The code of a bad policy, which starting again does not cure.
const BAD_POLICY: i32 = 78;

const SERVES: &str = "listen = '127.0.0.1:0'\nupstream = 'http://127.0.0.1:9'";

/// Runs the binary with a policy it must refuse with one sentence, a code and a line.
#[track_caller]
fn is_refused(policy: &str, files: &[(&str, &str)], code: i32, sentence: &str) {
    let (ended, said) = refused_to_start(policy, files);
    assert!(ended == code && said.starts_with(sentence), "{policy}\n{ended}: {said}");
    assert!(said.contains(" TG0") && said.contains("--> tidegate.toml:"), "{said}");
}

#[test]
fn a_bad_policy_is_told_with_all_its_problems() {
    let (code, said) = refused_to_start(
        "listen = '127.0.0.1:0'
upstream = 'http://127.0.0.1:9'
[rule.per_key]
quota = '10'
brust = 20
[rule.other]
key = 'header:'
quota = '1/s'
algorithm = 'fixed_windw'
[[route]]
rules = ['none']
",
        &[],
    );
    assert_eq!(code, BAD_POLICY);
    for problem in
        ["quota `10` has no unit", "unknown key `brust`", "`burst`?", "fixed_windw", "`none`", "header:"]
    {
        assert!(said.contains(problem), "{problem} is missing in {said}");
    }
    assert!(said.contains("tidegate.toml:5:1"), "{said}");
    assert!(said.lines().last().unwrap().ends_with(" errors."), "{said}");
}

#[test]
fn a_file_that_is_no_policy_is_a_bad_policy() {
    for text in ["[", "listen = ", "\u{fffd}", "42"] {
        let (code, said) = refused_to_start(text, &[]);
        assert_eq!(code, BAD_POLICY, "{text:?}: {said}");
        assert!(said.contains("tidegate.toml:1:"), "{said}");
    }
}

#[test]
fn a_gateway_needs_to_know_where_to_listen_and_where_to_send() {
    is_refused(
        "upstream = 'http://127.0.0.1:9'",
        &[],
        BAD_POLICY,
        "error: the policy does not say where to listen",
    );
    is_refused("listen = '127.0.0.1:0'", &[], BAD_POLICY, "error: the policy does not say where requests go");
    let (code, said) = refused_to_start("", &[]);
    assert_eq!((code, said.lines().last()), (BAD_POLICY, Some("2 errors.")), "{said}");
}

#[test]
fn a_port_in_use_is_an_error_although_workers_share_theirs() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let sentence = format!("error: listener `default` cannot bind {address}: another process listens there");
    is_refused(&format!("listen = '{address}'\nupstream = 'http://127.0.0.1:9'"), &[], 1, &sentence);
}

#[test]
fn a_port_of_another_gateway_is_in_use_too() {
    let upstream = crate::support::Upstream::ok();
    let first = crate::support::Gateway::before(&upstream, "");
    let address = first.address();
    let (code, said) =
        refused_to_start(&format!("listen = '{address}'\nupstream = '{}'", upstream.url()), &[]);
    assert_eq!((code, said.contains("another process listens there")), (1, true), "{said}");
    assert_eq!(first.get("/", &[]).status(), 200);
}

#[test]
fn a_port_of_the_admin_api_that_is_in_use_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (code, said) = refused_to_start(&format!("{SERVES}\n[server]\nadmin = '{address}'"), &[]);
    assert!(code == 1 && said.contains(&address.to_string()) && said.contains("TG0407"), "{said}");
}

#[test]
fn an_admin_api_for_everybody_needs_a_token() {
    let (code, said) = refused_to_start(&format!("{SERVES}\n[server]\nadmin = '0.0.0.0:0'"), &[]);
    assert_eq!(code, BAD_POLICY, "{said}");
    assert!(said.contains("admin_token"), "{said}");
}

const ENCRYPTED: &str = "upstream = 'http://127.0.0.1:9'
[[listener]]
name = 'public'
bind = '127.0.0.1:0'
tls = { cert = 'tls.crt', key = 'tls.key' }";

#[test]
fn a_missing_certificate_is_named() {
    is_refused(
        ENCRYPTED,
        &[],
        BAD_POLICY,
        "error: tls.crt cannot be read: No such file or directory (os error 2)",
    );
    let cert = [("tls.crt", tls::CERT)];
    is_refused(
        ENCRYPTED,
        &cert,
        BAD_POLICY,
        "error: tls.key cannot be read: No such file or directory (os error 2)",
    );
}

#[test]
fn a_certificate_that_is_none_is_named() {
    for (cert, key, why) in [
        ("nonsense", tls::KEY, "tls.crt holds no certificate"),
        (tls::CERT, "nonsense", "tls.key holds no private key"),
        (tls::KEY, tls::KEY, "tls.crt holds no certificate"),
        (tls::CERT, tls::CERT, "tls.key holds no private key"),
    ] {
        let (code, said) = refused_to_start(ENCRYPTED, &[("tls.crt", cert), ("tls.key", key)]);
        assert!(code == BAD_POLICY && said.starts_with(&format!("error: {why}")), "{code}: {said}");
    }
}

#[test]
fn a_callers_table_that_cannot_be_read_is_named() {
    let policy = format!("{SERVES}\n[caller]\ntable = 'callers.toml'");
    let sentence =
        "error: the table of callers `callers.toml` cannot be read: No such file or directory (os error 2)";
    is_refused(&policy, &[], BAD_POLICY, sentence);
    let (code, said) = refused_to_start(&policy, &[("callers.toml", "[acct]\nplann = 'gold'")]);
    assert_eq!((code, said.contains("callers.toml:2:")), (BAD_POLICY, true), "{said}");
}

#[test]
fn an_access_log_that_cannot_be_opened_is_named() {
    let policy = format!("{SERVES}\n[telemetry]\naccess_log = {{ to = 'none/access.log' }}");
    let sentence =
        "error: the access log none/access.log cannot be written: No such file or directory (os error 2)";
    is_refused(&policy, &[], BAD_POLICY, sentence);
}

fn run(flags: &[&str]) -> (Option<i32>, String) {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("run").args(flags).current_dir(folder).env("XDG_CONFIG_HOME", folder);
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_policy_that_is_not_there_is_named() {
    let (code, said) = run(&["-c", "nowhere.toml"]);
    assert_eq!(
        (code, said.trim_end()),
        (Some(1), "error: nowhere.toml cannot be read: No such file or directory (os error 2)")
    );
}

#[test]
fn flags_that_make_no_policy_are_a_usage_error() {
    for flags in [
        &["--upstream", "http://127.0.0.1:9", "--rule", "per_key 10/s"][..],
        &["--listen", "127.0.0.1:0"],
        &["--upstream", "http://127.0.0.1:9", "-c", "tidegate.toml"],
        &["--admin", "nonsense"],
    ] {
        let (code, said) = run(flags);
        assert_eq!(code, Some(2), "{flags:?}: {said}");
        assert!(said.starts_with("error: "), "{said}");
    }
}

#[test]
fn flags_that_make_a_bad_policy_say_so() {
    let (code, said) = run(&["--listen", "127.0.0.1:0", "--upstream", "ftp://a", "--rule", "r: 10/s"]);
    assert_eq!(code, Some(BAD_POLICY), "{said}");
    assert!(said.contains("ftp://a"), "{said}");
}
