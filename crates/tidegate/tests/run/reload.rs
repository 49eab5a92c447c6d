//! How changes of the policy come into force, and which do not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::gateway::support::{Gateway, Signal, Upstream};
use crate::operated::{Operated, policy};
use crate::process::Folder;

/// A rule that admits so many requests of a key for good.
fn rule(most: u32) -> String {
    format!(
        "[rule.per_key]\nkey = \"header:x-api-key\"\nalgorithm = \"fixed_window\"\nquota = \"{most}/day\"\n"
    )
}

/// How many requests of a new key pass.
fn most(gateway: &Operated, key: &str) -> usize {
    let statuses = gateway.gateway.statuses(10, "/", &[("x-api-key", key)]);
    statuses.iter().filter(|status| **status == 200).count()
}

#[test]
fn a_changed_file_is_taken_at_once() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, &rule(1));
    assert_eq!(most(&gateway, "a"), 1);
    let begun = Instant::now();
    for version in 2..8 {
        gateway.rewrite(&policy(&upstream, &rule(version)));
        gateway.says(&format!("tidegate: tidegate.toml in force as version {version}"));
    }
    // Looking every two seconds would take twelve.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(most(&gateway, "b"), 7);
    assert_eq!(gateway.policy_version(), 7);
}

#[test]
fn a_changed_table_of_callers_is_taken_at_once() {
    let upstream = Upstream::ok();
    let callers = |quota: &str| format!("[a]\noverrides.per_key = {{ quota = \"{quota}/day\" }}\n");
    let rest =
        format!("[caller]\nfrom = [\"header:x-api-key\"]\ntable = \"tables/callers.toml\"\n{}", rule(1));
    let folder = Folder::with(&[("tidegate.toml", &policy(&upstream, &rest))]);
    fs::create_dir(folder.path().join("tables")).unwrap();
    let table = folder.path().join("tables/callers.toml");
    fs::write(&table, callers("3")).unwrap();
    let file = folder.path().join("tidegate.toml");
    let gateway = Operated::of(Gateway::start_by_flags(&["-c", file.to_str().unwrap()]));
    assert_eq!((most(&gateway, "a"), most(&gateway, "b")), (3, 1));
    fs::write(&table, callers("5")).unwrap();
    gateway.says(&format!("tidegate: {} in force as version 2", file.display()));
    assert_eq!((most(&gateway, "a"), most(&gateway, "c")), (2, 1), "what was used stays used");
}

/// As volumes of Kubernetes do: files are links through `..data`, which is swapped in one step.
fn swap(volume: &Path, version: &str, policy: &str) {
    let folder = volume.join(version);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tidegate.toml"), policy).unwrap();
    symlink(version, volume.join("..data_tmp")).unwrap();
    fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
}

#[test]
fn a_volume_whose_links_are_swapped_is_noticed() {
    let upstream = Upstream::ok();
    let folder = Folder::with(&[]);
    swap(folder.path(), "..1", &policy(&upstream, &rule(1)));
    let file = folder.path().join("tidegate.toml");
    symlink("..data/tidegate.toml", &file).unwrap();
    let gateway = Operated::of(Gateway::start_by_flags(&["-c", file.to_str().unwrap()]));
    for version in 2..5 {
        let begun = Instant::now();
        swap(folder.path(), &format!("..{version}"), &policy(&upstream, &rule(version)));
        gateway.says(&format!("tidegate: {} in force as version {version}", file.display()));
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    }
    assert_eq!(most(&gateway, "a"), 4);
}

#[test]
fn what_the_system_does_not_tell_is_noticed_by_looking() {
    let upstream = Upstream::ok();
    let folder = Folder::with(&[]);
    for version in [1, 2] {
        let place = folder.path().join(version.to_string());
        fs::create_dir(&place).unwrap();
        fs::write(place.join("tidegate.toml"), policy(&upstream, &rule(version))).unwrap();
    }
    // Nothing happens in the folder of the file when a link further up leads elsewhere.
    let link = folder.path().join("current");
    symlink("1", &link).unwrap();
    let file = link.join("tidegate.toml");
    let gateway = Operated::of(Gateway::start_by_flags(&["-c", file.to_str().unwrap()]));
    let begun = Instant::now();
    symlink("2", folder.path().join("next")).unwrap();
    fs::rename(folder.path().join("next"), &link).unwrap();
    gateway.says(&format!("tidegate: {} in force as version 2", file.display()));
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    fs::write(folder.path().join("2/tidegate.toml"), policy(&upstream, &rule(3))).unwrap();
    gateway.says(&format!("tidegate: {} in force as version 3", file.display()));
    assert_eq!(most(&gateway, "a"), 3);
}

#[test]
fn a_file_that_is_touched_and_not_changed_is_not_taken() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, &rule(1));
    gateway.rewrite(&policy(&upstream, &rule(1)));
    gateway.gateway.signal(Signal::HUP);
    gateway.says("tidegate: tidegate.toml is the policy in force; version 1 stays");
    assert_eq!(gateway.policy_version(), 1);
    gateway.rewrite(&policy(&upstream, &rule(2)));
    gateway.says("tidegate: tidegate.toml in force as version 2");
    assert_eq!(gateway.metric("tidegate_policy_load_failures_total"), 0);
}

#[test]
fn a_policy_that_was_sent_holds_until_the_file_changes_or_is_ordered() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, &rule(1));
    let sent = policy(&upstream, &rule(2));
    let taken = gateway.put(&sent);
    assert_eq!((taken.status(), &taken.json()["policy_version"]), (200, &2.into()), "{taken:?}");
    assert_eq!(most(&gateway, "a"), 2);
    assert_eq!(gateway.ask("GET", "/api/v1/policy", "").text(), sent);
    gateway.says("tidegate: a policy sent to the admin API in force as version 2");
    gateway.gateway.signal(Signal::HUP);
    gateway.says("tidegate: tidegate.toml in force as version 3");
    assert_eq!(most(&gateway, "b"), 1);
    gateway.put(&sent);
    gateway.rewrite(&policy(&upstream, &rule(3)));
    gateway.says("tidegate: tidegate.toml in force as version 5");
    assert_eq!(most(&gateway, "c"), 3);
}

#[test]
fn a_sent_policy_may_be_held_to_replace_the_one_that_was_read() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, &rule(1));
    let read = gateway.ask("GET", "/api/v1/policy", "");
    gateway.rewrite(&policy(&upstream, &rule(2)));
    gateway.says("tidegate: tidegate.toml in force as version 2");
    let fields = [("content-type", "application/toml"), ("if-match", read.get("etag").unwrap())];
    let late = gateway.ask_with("PUT", "/api/v1/policy", &fields, &policy(&upstream, &rule(3)));
    assert_eq!(late.status(), 412);
    assert_eq!(gateway.metric("tidegate_policy_load_failures_total"), 0, "nothing was wrong with it");
}

#[test]
fn a_wrong_file_changes_nothing_and_is_told_until_it_is_right() {
    let upstream = Upstream::ok();
    let right = policy(&upstream, &rule(2));
    let gateway = Operated::of(Gateway::start(&right));
    gateway.rewrite(&right.replace("2/day", "2").replace("key = ", "kee = "));
    gateway.says("Policy not loaded; the running one (version 1) stays.");
    let said = gateway.gateway.errors().so_far().join("\n");
    assert!(said.contains("error: quota `2` has no unit"), "{said}");
    assert!(said.contains("did you mean `key`?"), "{said}");
    assert!(said.contains("\n2 errors"), "{said}");
    let status = gateway.get("/api/v1/status");
    assert_eq!(status["health"], "red");
    let verdict = status["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("Red: the policy on disk is wrong since "), "{verdict}");
    assert!(verdict.ends_with("; version 1 stays."), "{verdict}");
    assert_eq!(status["policy"]["failure"]["problems"].as_array().unwrap().len(), 2, "{status:#}");
    assert_eq!(gateway.metric("tidegate_policy_load_failures_total"), 1);
    assert_eq!((gateway.policy_version(), most(&gateway, "a")), (1, 2), "it goes on as before");

    gateway.rewrite(&right);
    gateway.says("tidegate: tidegate.toml is the policy in force; version 1 stays");
    let status = gateway.get("/api/v1/status");
    // It may be yellow for what was refused a moment ago.
    assert_ne!(status["health"], "red", "{status:#}");
    assert!(status["policy"]["failure"].is_null(), "{status:#}");
    assert_eq!((gateway.policy_version(), gateway.metric("tidegate_policy_load_failures_total")), (1, 1));
}

#[test]
fn a_file_that_goes_away_and_comes_back_is_told_once() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, &rule(2));
    let file = gateway.gateway.folder().join("tidegate.toml");
    fs::remove_file(&file).unwrap();
    gateway.says("Policy not loaded; the running one (version 1) stays.");
    assert_eq!(gateway.get("/api/v1/status")["health"], "red");
    // Another file in the folder makes it look again.
    fs::write(gateway.gateway.folder().join("other"), "").unwrap();
    gateway.rewrite(&policy(&upstream, &rule(2)));
    gateway.says("tidegate: tidegate.toml is the policy in force; version 1 stays");
    assert_eq!(gateway.get("/api/v1/status")["health"], "green");
    assert_eq!(gateway.metric("tidegate_policy_load_failures_total"), 1);
}

#[test]
fn what_takes_a_restart_is_told() {
    let upstream = Upstream::ok();
    let right = policy(&upstream, &rule(1));
    let gateway = Operated::of(Gateway::start(&right));
    let (listen, admin) = ("listen = \"127.0.0.1:0\"", "server.admin = \"127.0.0.1:0\"");
    for (changed, why) in [
        (right.replace(listen, "listen = \"127.0.0.2:0\""), "its listeners differ"),
        (right.replace(admin, "server.admin = \"127.0.0.2:0\""), "`admin` of `server` differs"),
        (
            right.replace(admin, "server = { admin = \"127.0.0.1:0\", workers = 7 }"),
            "`workers` of `server` differs",
        ),
    ] {
        gateway.rewrite(&changed);
        gateway.says(&format!("error: tidegate.toml: {why}, which takes a restart"));
        let verdict = gateway.get("/api/v1/status")["verdict"].to_string();
        assert!(verdict.contains("Red: the policy on disk waits for a restart since "), "{verdict}");
        assert!(verdict.contains(&format!("(tidegate.toml: {why}, which takes a restart); ")), "{verdict}");
        let refused = gateway.put(&changed);
        assert_eq!(refused.status(), 409, "{refused:?}");
        assert_eq!(refused.json()["detail"], format!("sent: {why}, which takes a restart"));
    }
    let nowhere = right.replace(&format!("upstream = \"{}\"", upstream.url()), "");
    let refused = gateway.put(&nowhere);
    assert_eq!(refused.status(), 422);
    assert!(refused.text().contains("does not say where requests go"), "{}", refused.text());
    assert_eq!((gateway.policy_version(), most(&gateway, "a")), (1, 1));
}

/// Writes a file in steps, with pauses that are shorter than a file must be still.
fn write_slowly(path: &Path, text: &str) {
    let mut file = fs::File::create(path).unwrap();
    for part in text.as_bytes().chunks(text.len().div_ceil(6)) {
        std::io::Write::write_all(&mut file, part).unwrap();
        file.sync_all().unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
}

const TWO_RULES: &str =
    "[rule.first]\nquota = \"1000/s\"\n[rule.second]\nquota = \"1000/s\"\n[rule.third]\nquota = \"1000/s\"\n";

#[test]
fn a_file_that_is_written_in_steps_is_read_when_it_is_whole() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, TWO_RULES);
    let file = gateway.gateway.folder().join("tidegate.toml");
    let changed = policy(&upstream, &TWO_RULES.replace("1000/s", "999/s"));
    // Other files of the folder change all the while.
    fs::write(gateway.gateway.folder().join("other.log"), "").unwrap();
    write_slowly(&file, &changed);
    gateway.says("tidegate: tidegate.toml in force as version 2");
    assert_eq!(gateway.metric("tidegate_policy_load_failures_total"), 0, "no part of it was tried");
    let status = gateway.get("/api/v1/status");
    assert_eq!(status["policy"]["lost"], serde_json::json!([]), "{status:#}");
    assert_eq!(gateway.policy_version(), 2);
}

/// Waits for a warning, whose line has fields behind the sentence.
#[track_caller]
fn warns(gateway: &Operated, sentence: &str) {
    let begin = format!(" warn tidegate: {sentence}");
    let errors = gateway.gateway.errors();
    assert!(errors.find(|line| line.contains(&begin)).is_some(), "no {sentence:?} in {:#?}", errors.so_far());
}

#[test]
fn what_a_changed_file_loses_is_said_in_log_and_status() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, TWO_RULES);
    let cut = TWO_RULES.split_once("[rule.second]").unwrap().0;
    gateway.rewrite(&policy(&upstream, cut));
    warns(&gateway, "version 2 of tidegate.toml has lost rule `second`, rule `third` policy=tidegate.toml");
    let status = gateway.get("/api/v1/status");
    crate::published::assert_is("Status", &status);
    assert_eq!(status["policy"]["lost"], serde_json::json!(["rule `second`", "rule `third`"]));
    gateway.rewrite(&policy(&upstream, TWO_RULES));
    gateway.says("tidegate: tidegate.toml in force as version 3");
    assert_eq!(gateway.get("/api/v1/status")["policy"]["lost"], serde_json::json!([]));
}

#[test]
fn an_emptied_file_removes_nothing_however_it_is_emptied() {
    let upstream = Upstream::ok();
    let right = policy(&upstream, TWO_RULES);
    let gateway = Operated::of(Gateway::start(&right));
    let file = gateway.gateway.folder().join("tidegate.toml");
    let fails = |count: u64| {
        gateway.until("/metrics", |page| {
            page.text().contains(&format!("tidegate_policy_load_failures_total {count}\n"))
        });
        let rules = gateway.get("/api/v1/rules");
        assert_eq!(rules["rules"].as_array().unwrap().len(), 3, "{rules:#}");
    };
    fs::File::options().write(true).truncate(true).open(&file).unwrap();
    fails(1);
    gateway.rewrite(&right);
    gateway.says("tidegate: tidegate.toml is the policy in force; version 1 stays");
    gateway.rewrite("");
    fails(2);
    gateway.rewrite(&right[..right.len() - 3]);
    fails(3);
    gateway.rewrite(&right);
    gateway.until("/api/v1/status", |status| status.json()["health"] == "green");
    assert_eq!(gateway.policy_version(), 1);
}

#[test]
fn a_guarded_policy_gives_nothing_up_without_an_operators_word() {
    let upstream = Upstream::ok();
    let guarded = format!("server.guard = \"refuse\"\n{TWO_RULES}");
    let right = policy(&upstream, &guarded);
    let gateway = Operated::of(Gateway::start(&right));
    let confirm = || gateway.ask("POST", "/api/v1/policy/confirm", "");
    assert_eq!(confirm().status(), 404, "nothing is held");
    // What was cut has lost the guard too.
    let cut = policy(&upstream, TWO_RULES.split_once("[rule.third]").unwrap().0);
    gateway.rewrite(&cut);
    let sentence = "tidegate.toml would lose rule `third`, so it is held until `tidegate ctl policy confirm`; \
                    version 1 stays";
    warns(&gateway, sentence);
    let status = gateway.get("/api/v1/status");
    crate::published::assert_is("Status", &status);
    assert_eq!((&status["policy"]["failure"]["held"], &status["health"]), (&true.into(), &"yellow".into()));
    let verdict = status["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("Held: the policy on disk waits to be confirmed since "), "{verdict}");
    assert!(verdict.contains("it loses rule `third`"), "{verdict}");
    gateway.gateway.signal(Signal::HUP);
    assert_eq!(gateway.policy_version(), 1, "a signal is no word");
    // Another file than the one that was held is not confirmed.
    fs::write(gateway.gateway.folder().join("tidegate.toml"), &cut[..cut.len() - 1]).unwrap();
    assert_eq!(confirm().status(), 409);
    gateway.rewrite(&cut);
    gateway.until("/api/v1/status", |status| status.json()["policy"]["failure"]["held"] == true);
    let confirmed = confirm();
    assert_eq!(confirmed.status(), 200, "{confirmed:?}");
    crate::published::assert_is("PolicyTaken", &confirmed.json());
    assert_eq!(confirmed.json()["lost"], serde_json::json!(["rule `third`"]));
    assert_eq!((gateway.policy_version(), confirm().status()), (2, 404));
    assert_eq!(gateway.get("/api/v1/status")["health"], "green");
    assert_eq!(gateway.metric("tidegate_policy_load_failures_total"), 0, "it was never wrong");
}

#[test]
fn a_guarded_policy_takes_what_loses_nothing_and_forgets_what_was_held() {
    let upstream = Upstream::ok();
    let guarded = format!("server.guard = \"refuse\"\n{TWO_RULES}");
    let gateway = Operated::of(Gateway::start(&policy(&upstream, &guarded)));
    gateway.rewrite(&policy(&upstream, "server.guard = \"refuse\"\n"));
    gateway.until("/api/v1/status", |status| status.json()["policy"]["failure"]["held"] == true);
    gateway.rewrite(&policy(&upstream, &guarded.replace("1000/s", "5/s")));
    gateway.says("tidegate: tidegate.toml in force as version 2");
    assert_eq!(gateway.ask("POST", "/api/v1/policy/confirm", "").status(), 404);
}
