//! The three steps of the tutorial, with the ports of this machine.

use std::fs;

use crate::gateway::support::{Client, Upstream};
use crate::process::{Folder, Process};

const TUTORIAL: &str = include_str!("../../../../docs/tutorial/first-gateway.md");

/// The first block of code in this language after a heading.
fn block<'a>(heading: &str, language: &str) -> &'a str {
    let (_, section) = TUTORIAL.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let (_, rest) = section.split_once(&format!("```{language}\n")).unwrap();
    rest.split("```").next().unwrap()
}

#[test]
fn three_steps_lead_from_nothing_to_a_refused_request() {
    let upstream = Upstream::ok();
    let seven_lines = block("## 1. Write seven lines", "toml");
    assert_eq!(seven_lines.lines().count(), 7);
    let policy =
        seven_lines.replace("0.0.0.0:8080", "127.0.0.1:0").replace("http://127.0.0.1:3000", &upstream.url());
    let folder = Folder::with(&[("tidegate.toml", &policy)]);

    assert_eq!(block("## 2. Run it", "sh"), "tidegate run\n");
    let process = Process::follow(&mut folder.run(&[]));
    let said = process.introduction();
    let (begin, address) = said.rsplit_once(' ').unwrap();
    let sentence = |line: &str| line.split_once(' ').map(|(_time, rest)| rest.to_owned());
    let shown = block("## 2. Run it", "text");
    assert_eq!(sentence(&format!("{begin} 0.0.0.0:8080\n")), sentence(shown));

    let sent = block("## 3. Send too much", "sh");
    assert_eq!(sent, "curl -si -H 'x-api-key: alice' 'http://127.0.0.1:8080/?[1-30]'\n");
    let mut client = Client::connect(address.parse().unwrap());
    let answers: Vec<_> =
        (1..=30).map(|n| client.get(&format!("/?{n}"), &[("x-api-key", "alice")])).collect();
    assert!(answers[..20].iter().all(|answer| answer.status() == 200), "the burst is served");
    let refused = answers.iter().find(|answer| answer.status() != 200).expect("one is refused");
    let mut shown = block("## 3. Send too much", "text").lines();
    assert_eq!(shown.next(), Some(refused.head.first_line.as_str()));
    for field in shown {
        let (name, value) = field.split_once(": ").unwrap();
        assert_eq!(refused.get(name), Some(value), "{name}");
    }
    assert_eq!(client.get("/", &[("x-api-key", "bob")]).status(), 200);

    fs::write(folder.path().join("tidegate.toml"), policy.replace("10/s", "20/s")).unwrap();
    let wanted = sentence(block("## Change it while it runs", "text").trim_end()).unwrap();
    assert!(process.errors.find(|line| line.ends_with(&wanted)).is_some(), "{:#?}", process.errors.so_far());
}
