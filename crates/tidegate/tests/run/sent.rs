//! Policies that are sent: which files they may name, and what their sender is told of them.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::gateway::support::{Gateway, Upstream};
use crate::operated::{Operated, policy};
use crate::process::Folder;

/// What no answer may ever hold.
const SECRET: &str = "root:x:0:0:do-not-tell";

fn naming(upstream: &Upstream, table: &str) -> String {
    let rest = format!(
        "[caller]\nfrom = [\"header:x-api-key\"]\ntable = {table:?}\n\
         [rule.per_key]\nkey = \"caller\"\nquota = \"3/day\"\nplans = {{ gold = {{ quota = \"9/day\" }} }}\n"
    );
    policy(upstream, &rest)
}

/// Sends a policy both ways; gives what both are told.
#[track_caller]
fn refused(gateway: &Operated, sent: &str) -> String {
    let begun = Instant::now();
    let put = gateway.put(sent);
    assert_eq!(put.status(), 422, "{put:?}");
    let toml = [("content-type", "application/toml")];
    let checked = gateway.ask_with("POST", "/api/v1/policy/check", &toml, sent);
    assert_eq!((checked.status(), &checked.json()["ok"]), (200, &false.into()), "{checked:?}");
    assert!(begun.elapsed() < Duration::from_secs(2), "nothing is waited for");
    let told = format!("{}{}", put.text(), checked.text());
    assert!(!told.contains("root:") && !told.contains("do-not-tell"), "{told}");
    told
}

#[test]
fn files_out_of_reach_are_not_read_wherever_links_lead() {
    let upstream = Upstream::ok();
    let outside = Folder::with(&[("callers.toml", SECRET)]);
    let gateway = Operated::before(&upstream, "");
    let folder = gateway.gateway.folder().to_owned();
    let secret = outside.path().join("callers.toml");
    symlink(&secret, folder.join("link.toml")).unwrap();
    symlink("link.toml", folder.join("link_to_link.toml")).unwrap();
    symlink(outside.path(), folder.join("linked")).unwrap();
    fs::create_dir(folder.join("inner")).unwrap();
    let up = format!("../{}/callers.toml", outside.path().file_name().unwrap().to_str().unwrap());
    let names = [
        secret.to_str().unwrap(),
        "/etc/passwd",
        "/etc/there-is-none",
        "/proc/self/environ",
        "/dev/zero",
        up.as_str(),
        "../there-is-none",
        "inner/../../there-is-none",
        "link.toml",
        "link_to_link.toml",
        "linked/callers.toml",
        "inner/../linked/callers.toml",
        "/proc/self/cwd/link.toml",
    ];
    for name in names {
        let told = refused(&gateway, &naming(&upstream, name));
        assert!(
            told.contains("lies outside of the policy's folder") && told.contains(name),
            "{name}: {told}"
        );
    }
    assert_eq!(gateway.policy_version(), 1);
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, "");
    let folder = gateway.gateway.folder().to_owned();
    mknodat(CWD, folder.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    symlink("fifo", folder.join("to_fifo")).unwrap();
    symlink("/dev/zero", folder.join("to_device")).unwrap();
    symlink("loop", folder.join("loop")).unwrap();
    fs::create_dir(folder.join("inner")).unwrap();
    File::create(folder.join("large")).unwrap().set_len((32 << 20) + 1).unwrap();
    for (name, why) in [
        ("fifo", "it is not a regular file"),
        ("to_fifo", "it is not a regular file"),
        ("to_device", "lies outside"),
        ("inner", "it is not a regular file"),
        ("large", "it is larger than 32 MiB"),
        ("loop", "symbolic links"),
        ("none", "No such file"),
    ] {
        let told = refused(&gateway, &naming(&upstream, name));
        assert!(told.contains(&format!("`{name}` cannot be read: ")) && told.contains(why), "{name}: {told}");
    }
    // Many of them at once keep nobody from asking.
    let waiting = naming(&upstream, "fifo");
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..12).map(|_| scope.spawn(|| gateway.put(&waiting).status())).collect();
        assert_eq!(gateway.ask("GET", "/api/v1/status", "").status(), 200);
        assert!(all.into_iter().all(|one| one.join().unwrap() == 422));
    });
}

#[test]
fn what_stands_in_a_table_is_not_told_to_the_sender() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, "");
    let folder = gateway.gateway.folder().to_owned();
    for (text, kind) in [
        (format!("{SECRET}\n"), "TG0101"),
        ("[a]\n\"root:\" = \"do-not-tell\"\n".to_owned(), "TG0102"),
        ("[\"root:x\"]\noverrides.root = { quota = \"do-not-tell\" }\n".to_owned(), "TG01"),
    ] {
        fs::write(folder.join("callers.toml"), text).unwrap();
        let told = refused(&gateway, &naming(&upstream, "callers.toml"));
        assert!(told.contains("callers.toml:") && told.contains(kind), "{told}");
    }
    fs::write(folder.join("callers.toml"), "[\"root:x\"]\nplan = \"do-not-tell\"\n").unwrap();
    let warned = gateway.put(&naming(&upstream, "callers.toml"));
    assert_eq!(warned.status(), 200, "{warned:?}");
    assert!(warned.text().contains("\"callers.toml\""), "{warned:?}");
    assert!(!warned.text().contains("root:") && !warned.text().contains("do-not-tell"), "{warned:?}");
    fs::write(folder.join("callers.toml"), "[ann]\nplan = \"gold\"\n").unwrap();
    let taken = gateway.put(&naming(&upstream, "callers.toml"));
    assert_eq!(taken.status(), 200, "{taken:?}");
    assert_eq!(gateway.get("/api/v1/counters/per_key/ann")["limit"], 9);
}

#[test]
fn what_the_running_policy_reads_may_be_named_again() {
    let upstream = Upstream::ok();
    let outside = Folder::with(&[("callers.toml", "[ann]\nplan = \"gold\"\n"), ("other.toml", "")]);
    let table = outside.path().join("callers.toml");
    let running = naming(&upstream, table.to_str().unwrap());
    let gateway = Operated::of(Gateway::start(&running));
    let taken = gateway.put(&running.replace("9/day", "8/day"));
    assert_eq!(taken.status(), 200, "{taken:?}");
    assert_eq!(gateway.get("/api/v1/counters/per_key/ann")["limit"], 8);
    let other = outside.path().join("other.toml");
    refused(&gateway, &naming(&upstream, other.to_str().unwrap()));
}
