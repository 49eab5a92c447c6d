//! How it begins, and what keeps it from beginning.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Signal, getrlimit};

use crate::gateway::support::{Client, Gateway, Upstream, refused_to_start};
use crate::operated::{Operated, policy};
use crate::process::{BINARY, Folder, Process, ended};

const POLICY: &str = "listen = \"127.0.0.1:0\"\nupstream = \"http://127.0.0.1:9\"\n";

fn with_server(server: &str) -> String {
    format!("{POLICY}[server]\n{server}")
}

#[test]
fn without_a_policy_it_says_what_to_do() {
    let (code, said) = ended(Folder::with(&[]).run(&[]));
    assert_eq!(
        (code, said.as_str()),
        (
            1,
            "error: no policy was named, and there is none in ./tidegate.toml, $XDG_CONFIG_HOME/tidegate/ or \
             /etc/tidegate/; write one with `tidegate init`, or name a service to protect: `tidegate run --upstream \
             http://127.0.0.1:3000`"
        )
    );
    let (code, said) = ended(Folder::with(&[]).run(&["-c", "elsewhere.toml"]));
    assert_eq!(code, 1);
    assert!(said.starts_with("error: elsewhere.toml cannot be read: "), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn room_for_open_files_is_made_before_callers_come() {
    let gateway = Gateway::before(&Upstream::ok(), "");
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let room = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
    let allowed = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    assert!(room.trim().parse::<u64>().unwrap() >= allowed.min(20_000), "{room} of {allowed}");
}

#[test]
fn it_says_which_file_it_uses_and_where_it_listens() {
    let folder = Folder::with(&[("mine.toml", POLICY)]);
    let said = Process::follow(&mut folder.run(&["-c", "mine.toml"])).introduction();
    assert!(said.contains(" info tidegate: mine.toml in force, admin API off, serving 127.0.0.1:"), "{said}");
    let found = Folder::with(&[("tidegate.yaml", "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:9\n")]);
    let said = Process::follow(&mut found.run(&["--admin", "127.0.0.1:0"])).introduction();
    assert!(said.contains(" info tidegate: tidegate.yaml in force, admin API on 127.0.0.1:"), "{said}");
}

#[test]
fn it_says_what_listens_how_much_the_policy_has_and_what_the_machine_allows() {
    let folder = Folder::with(&[("tidegate.toml", &with_server("workers = 1\n"))]);
    let process = Process::follow(&mut folder.run(&[]));
    process.introduction();
    let allowed = process.errors.find(|line| line.contains("the machine allows")).unwrap();
    assert!(allowed.ends_with(" open files; 1 worker"), "{allowed}");
    let said = process.errors.so_far().join("\n");
    for part in [
        "info tidegate: listener `default` on 127.0.0.1:",
        " speaks HTTP/2 and HTTP/1.1 without TLS, at most 20000 connections\n",
        "info tidegate: the policy has 0 rules, 1 route, 1 upstream\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn what_init_writes_runs_and_holds_a_caller_to_its_quota() {
    let upstream = Upstream::ok();
    for name in ["tidegate.toml", "tidegate.yaml"] {
        let folder = Folder::with(&[]);
        let file = folder.path().join(name);
        let written = Command::new(BINARY).arg("init").arg(&file).output().unwrap();
        assert!(written.status.success(), "{written:?}");
        let text = fs::read_to_string(&file).unwrap();
        let here =
            text.replace("0.0.0.0:8080", "127.0.0.1:0").replace("http://127.0.0.1:3000", &upstream.url());
        assert_ne!(here, text);
        fs::write(&file, here).unwrap();
        let process = Process::follow(&mut folder.run(&[]));
        let address = process.introduction().rsplit_once(' ').unwrap().1.parse().unwrap();
        let mut client = Client::connect(address);
        let mut statuses = (0..30).map(|_| client.get("/", &[("x-api-key", "alice")]).status());
        assert!(statuses.by_ref().take(20).all(|status| status == 200), "{name}: the burst is served");
        assert!(statuses.any(|status| status == 429), "{name}: the rest is not");
        assert_eq!(client.get("/", &[("x-api-key", "bob")]).status(), 200);
        assert!(!process.errors.so_far().iter().any(|line| line.contains(" warn ")), "{name}");
    }
}

#[test]
fn a_rule_that_refuses_is_told_once_and_the_rest_as_a_count() {
    let upstream = Upstream::ok();
    let rules =
        "[rule.per_path]\nkey = \"path\"\nquota = \"1/h\"\n[rule.idle]\nkey = \"path\"\nquota = \"9/s\"\n";
    let folder = Folder::with(&[(
        "tidegate.toml",
        &format!("listen = \"127.0.0.1:0\"\nupstream = \"{}\"\n{rules}", upstream.url()),
    )]);
    let mut process = Process::follow(&mut folder.run(&[]));
    let address = process.introduction().rsplit_once(' ').unwrap().1.parse().unwrap();
    let mut client = Client::connect(address);
    let mut refused = |count| (0..count).filter(|_| client.get("/", &[]).status() == 429).count();
    assert_eq!(refused(2), 1);
    let first = process.errors.find(|line| line.contains("refuses")).expect("it is told");
    let sentence = " info tidegate: `per_path` refuses rule=per_path reason=quota count=1";
    assert!(first.ends_with(sentence), "{first}");
    assert_eq!(refused(500), 500);
    process.signal(Signal::TERM);
    process.wait();
    let said = process.errors.all();
    let told: Vec<&String> = said.iter().filter(|line| line.contains("reason=")).collect();
    assert_eq!(told.len(), 2, "{said:#?}");
    let rest = "`per_path` has refused 500 more rule=per_path reason=quota count=500 seconds=";
    assert!(told[1].contains(rest), "{told:?}");
}

#[test]
fn strangers_are_not_let_to_the_admin_api_without_a_token() {
    let folder = Folder::with(&[("tidegate.toml", POLICY)]);
    let (code, said) = ended(folder.run(&["--admin", "0.0.0.0:9900"]));
    assert_eq!(code, 78);
    assert!(
        said.starts_with("error: admin 0.0.0.0:9900 can be reached by others and asks for no token"),
        "{said}"
    );
    assert!(
        said.contains("TG0309\n  = add `admin_token = { env = \"TIDEGATE_TOKEN\" }` to `server`"),
        "{said}"
    );
    let (code, said) = refused_to_start(&with_server("admin = \"0.0.0.0:9900\"\n"), &[]);
    assert_eq!(code, 78);
    assert!(said.contains("admin 0.0.0.0:9900 can be reached by others and asks for no token"), "{said}");
}

#[test]
fn a_token_that_is_none_is_told_without_its_value() {
    let admin = "admin = \"127.0.0.1:0\"\n";
    let file = with_server(&format!("{admin}admin_token = {{ file = \"secret\" }}\n"));
    let (code, said) = refused_to_start(&file, &[]);
    assert_eq!(code, 78);
    assert!(said.starts_with("error: the admin token in secret cannot be read: "), "{said}");
    for empty in ["", "\n", "two words\n"] {
        let said = refused_to_start(&file, &[("secret", empty)]);
        assert_eq!(said.0, 78);
        let sentence = "error: the admin token in secret must be one word of visible ASCII characters";
        assert!(said.1.starts_with(sentence) && said.1.contains("TG0406\n --> tidegate.toml:5:"), "{said:?}");
    }
    let variable = with_server(&format!("{admin}admin_token = {{ env = \"TIDEGATE_TEST_TOKEN\" }}\n"));
    let folder = Folder::with(&[("tidegate.toml", &variable)]);
    let (code, said) = ended(folder.run(&[]));
    assert_eq!(code, 78);
    assert!(said.starts_with("error: the admin token $TIDEGATE_TEST_TOKEN is not set"), "{said}");
}

#[test]
fn with_a_token_only_those_who_bring_it_are_answered() {
    let policy = with_server("admin = \"127.0.0.1:0\"\nadmin_token = { file = \"secret\" }\n");
    let gateway = Operated::of(Gateway::start_with(&policy, &[("secret", "open-sesame\n")]));
    assert_eq!(gateway.ask("GET", "/api/v1/status", "").status(), 401);
    assert_eq!(gateway.ask("GET", "/readyz", "").status(), 200, "health is open to all");
    let brought = [("authorization", "Bearer open-sesame")];
    assert_eq!(gateway.ask_with("GET", "/api/v1/status", &brought, "").status(), 200);
}

#[test]
fn a_port_in_use_is_told_with_its_line_and_another_start_may_help() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (code, said) = refused_to_start(&with_server(&format!("admin = \"{address}\"\n")), &[]);
    let sentence = format!("error: the admin API cannot bind {address}: another process listens there");
    assert!(code == 1 && said.starts_with(&sentence) && said.contains("TG0407"), "{code} {said}");
    assert!(said.contains("--> tidegate.toml:4:9   stop it, or choose another port"), "{said}");
    let (code, said) = refused_to_start(&POLICY.replace("127.0.0.1:0", &address.to_string()), &[]);
    let sentence = format!("error: listener `default` cannot bind {address}: another process listens there");
    assert!(code == 1 && said.starts_with(&sentence), "{code} {said}");
    assert!(said.contains("--> tidegate.toml:1:10   stop it"), "{said}");
    drop(taken);
    let folder = Folder::with(&[("tidegate.toml", &POLICY.replace("127.0.0.1:0", &address.to_string()))]);
    let (code, said) = ended(folder.run(&["--admin", &address.to_string()]));
    let sentence = format!("error: admin and listen both bind {address}");
    assert!(code == 78 && said.starts_with(&sentence), "{code} {said}");
}

#[cfg(target_os = "linux")] // only there the limits of another process can be read
#[test]
fn the_number_of_open_files_is_raised_to_what_is_allowed() {
    let folder = Folder::with(&[("tidegate.toml", POLICY)]);
    let process = Process::follow(&mut folder.shell("ulimit -Sn 256; exec \"$@\""));
    process.introduction();
    let limits = fs::read_to_string(format!("/proc/{}/limits", process.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "{line}");
    assert_ne!(words[3], "256", "{line}");
}

#[test]
fn the_access_log_may_go_where_everything_else_is_said() {
    let upstream = Upstream::ok();
    let log = "[telemetry.access_log]\nto = \"stderr\"\nsample_accepted = \"100%\"\n";
    let gateway = Operated::before(&upstream, log);
    assert_eq!(gateway.gateway.get("/logged", &[]).status(), 200);
    let line = gateway.gateway.errors().find(|line| line.starts_with('{')).expect("the request is logged");
    assert!(line.contains("\"path\":\"/logged\""), "{line}");
}

#[test]
fn nobody_needs_to_listen_to_what_it_says() {
    let upstream = Upstream::ok();
    let folder = Folder::with(&[("tidegate.toml", &policy(&upstream, ""))]);
    let mut command = folder.run(&[]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    drop(said);
    let address = line.trim_end().rsplit_once("serving ").unwrap().1.parse().unwrap();
    let admin = line.split_once("admin API on ").unwrap().1.split(',').next().unwrap().parse().unwrap();
    fs::write(folder.path().join("tidegate.toml"), policy(&upstream, "server.debug_headers = true\n"))
        .unwrap();
    let is_taken = || {
        let page = Client::connect(admin).get("/metrics", &[("host", "127.0.0.1")]);
        page.text().contains("tidegate_policy_version 2\n")
    };
    while !is_taken() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
    assert_eq!(Client::connect(address).get("/", &[]).status(), 200);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn its_own_lines_have_the_form_and_the_level_that_the_policy_says() {
    let quiet = format!("{POLICY}[telemetry]\nlog = {{ format = \"json\", level = \"info\" }}\n");
    let folder = Folder::with(&[("tidegate.toml", &quiet)]);
    let process = Process::follow(&mut folder.run(&[]));
    let line = process.introduction();
    let read: serde_json::Value = serde_json::from_str(&line).expect(&line);
    assert_eq!(read["level"], "info");
    assert!(read["message"].as_str().unwrap().contains("tidegate.toml in force"), "{line}");
    assert!(read["time"].as_str().unwrap().ends_with('Z'), "{line}");

    fs::write(folder.path().join("tidegate.toml"), quiet.replace("\"info\"", "\"warn\"")).unwrap();
    process.signal(Signal::HUP);
    fs::write(folder.path().join("tidegate.toml"), quiet.replace("upstream", "upsteam")).unwrap();
    process.signal(Signal::HUP);
    let is_told = |line: &str| line.contains("Policy not loaded") && line.contains("TG0102");
    let line = process.errors.find(is_told).expect("it is an error");
    let read: serde_json::Value = serde_json::from_str(&line).expect(&line);
    assert_eq!((&read["level"], &read["problems"][0]["code"]), (&"error".into(), &"TG0102".into()));
}

#[test]
fn the_environment_wins_over_the_form_and_level_of_the_policy() {
    let folder = Folder::with(&[("tidegate.toml", POLICY)]);
    let process = Process::follow(folder.run(&[]).env("TIDEGATE_LOG", "json,debug"));
    let line = process.introduction();
    assert!(line.starts_with('{'), "{line}");
    let mut command = folder.run(&[]);
    command.env("TIDEGATE_LOG", "loud");
    let sentence = "error: TIDEGATE_LOG is `loud`, but must be a level (error, warn, info or debug), a form (text or json), \
                    or both with a comma between";
    assert_eq!(ended(command), (78, sentence.to_owned()));
}
