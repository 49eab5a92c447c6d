//! What `check` says of a policy and what `run` does with it are the same.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::gateway::support::{Gateway, Upstream};
use crate::operated::{Operated, policy};
use crate::process::{BINARY, Folder, ended};

const CERT: &str = include_str!("../gateway/tls/cert.pem");
const KEY: &str = include_str!("../gateway/tls/key.pem");
const OTHER_KEY: &str = include_str!("../gateway/tls/renewed-key.pem");
const SERVED: &str = "listen = \"127.0.0.1:0\"\nupstream = \"http://127.0.0.1:9\"\n";
const ENCRYPTED: &str = "upstream = \"http://127.0.0.1:9\"\n[[listener]]\nbind = \"127.0.0.1:0\"\n\
                         tls = { cert = \"a.crt\", key = \"a.key\" }\n";

/// What `check` says in a folder.
fn check(folder: &Folder, words: &[&str]) -> (i32, String) {
    let mut command = Command::new(BINARY);
    command.arg("check").args(words).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap().trim_end().to_owned())
}

/// What both say of these files, which is the same.
#[track_caller]
fn refused(files: &[(&str, &str)]) -> String {
    let folder = Folder::with(files);
    let (checked, run) = (check(&folder, &[]), ended(folder.run(&[])));
    assert_eq!(checked, run);
    assert_eq!(checked.0, 78, "{}", checked.1);
    checked.1
}

/// The code of each problem, and where it stands.
fn places(said: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in said.lines() {
        if line.starts_with("error: ") {
            found.push((line.rsplit(' ').next().unwrap().to_owned(), String::new()));
        } else if let Some((_, place)) = line.split_once("--> ")
            && let Some(last) = found.last_mut()
        {
            last.1 = place.split(' ').next().unwrap().to_owned();
        }
    }
    found
}

#[track_caller]
fn assert_places(files: &[(&str, &str)], expected: &[(&str, &str)]) {
    let said = refused(files);
    let found = places(&said);
    let found: Vec<_> = found.iter().map(|(code, place)| (code.as_str(), place.as_str())).collect();
    assert_eq!(found, expected, "{said}");
}

#[test]
fn what_keeps_a_gateway_from_starting_is_found_by_check_in_the_same_words() {
    let nowhere = [("TG0401", "tidegate.toml:1:1"), ("TG0402", "tidegate.toml:1:1")];
    assert_places(&[("tidegate.toml", "")], &nowhere);
    assert_places(&[("tidegate.toml", "# nothing\n[rule.all]\nquota = \"1/s\"\n")], &nowhere);
    assert_places(&[("tidegate.toml", "listen = \"127.0.0.1:0\"\n")], &nowhere[1..]);
    assert_places(&[("tidegate.toml", "upstream = \"http://127.0.0.1:9\"\n")], &nowhere[..1]);
    let table = format!("{SERVED}[caller]\ntable = \"callers.toml\"\n");
    assert_places(&[("tidegate.toml", &table)], &[("TG0204", "tidegate.toml:4:9")]);
    let log = format!("{SERVED}[telemetry.access_log]\nto = \"nowhere/access.log\"\n");
    assert_places(&[("tidegate.toml", &log)], &[("TG0408", "tidegate.toml:4:6")]);
    let near = "upstream = \"http://127.0.0.1:9\"\nserver.admin = \"127.0.0.1:7001\"\n\
                [[listener]]\nbind = \"0.0.0.0:7001\"\n[[listener]]\nbind = \"[::]:7002\"\n\
                [[listener]]\nbind = \"127.0.0.1:7002\"\n";
    assert_places(
        &[("tidegate.toml", near)],
        &[("TG0203", "tidegate.toml:4:8"), ("TG0203", "tidegate.toml:8:8")],
    );
}

#[test]
fn certificates_are_named_by_file_and_line() {
    let files = |cert, key| [("tidegate.toml", ENCRYPTED), ("a.crt", cert), ("a.key", key)];
    let said = refused(&files(CERT, OTHER_KEY));
    assert_eq!(places(&said), [("TG0405".to_owned(), "tidegate.toml:4:31".to_owned())]);
    assert!(said.contains("the certificate in a.crt and the key in a.key do not go together"), "{said}");
    let said = refused(&files("no certificate", KEY));
    assert_eq!(places(&said), [("TG0405".to_owned(), "tidegate.toml:4:16".to_owned())]);
    assert!(said.contains("error: a.crt holds no certificate"), "{said}");
    let said = refused(&files(CERT, CERT));
    assert!(said.contains("error: a.key holds no private key"), "{said}");
    assert_places(
        &[("tidegate.toml", ENCRYPTED)],
        &[("TG0404", "tidegate.toml:4:16"), ("TG0404", "tidegate.toml:4:31")],
    );
    let folder = Folder::with(&files(CERT, KEY));
    assert_eq!(check(&folder, &[]), (0, String::new()));
}

#[test]
fn a_policy_is_checked_beside_the_gateway_that_serves_by_it() {
    let upstream = Upstream::ok();
    let folder = Folder::with(&[]);
    let file = folder.path().join("tidegate.toml");
    fs::write(&file, policy(&upstream, "")).unwrap();
    let gateway = Operated::of(Gateway::start_by_flags(&["-c", file.to_str().unwrap()]));
    let address = gateway.gateway.address().to_string();
    let fixed = policy(&upstream, "").replacen("127.0.0.1:0", &address, 1);
    fs::write(&file, fixed).unwrap();
    assert_eq!(check(&folder, &[]), (0, String::new()));
    let elsewhere = format!("listen = \"192.0.2.1:{}\"\nupstream = \"http://127.0.0.1:9\"\n", free_port());
    let folder = Folder::with(&[("tidegate.toml", &elsewhere)]);
    let (code, said) = check(&folder, &[]);
    assert_eq!((code, places(&said)), (78, vec![("TG0407".to_owned(), "tidegate.toml:1:10".to_owned())]));
    assert!(said.contains("this machine has no such address"), "{said}");
    assert_eq!(ended(folder.run(&[])).0, 1, "an address may come");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn what_the_library_does_not_carry_out_is_found_where_it_stands() {
    let folder = Folder::with(&[("tidegate.toml", &format!("{SERVED}server.drain = \"1s\"\n"))]);
    let (code, said) = check(&folder, &["--for", "library"]);
    let expected = [
        ("TG0403", "tidegate.toml:1:10"),
        ("TG0403", "tidegate.toml:2:12"),
        ("TG0403", "tidegate.toml:3:16"),
    ];
    let expected = expected.map(|(code, place)| (code.to_owned(), place.to_owned()));
    assert_eq!((code, places(&said)), (78, expected.to_vec()), "{said}");
    let folder = Folder::with(&[("tidegate.toml", "[rule.all]\nquota = \"1/s\"\n")]);
    assert_eq!(check(&folder, &["--for", "library"]), (0, String::new()));
}
