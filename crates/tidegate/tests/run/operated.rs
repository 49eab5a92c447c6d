//! A gateway with an operator.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use serde_json::Value;

use crate::gateway::support::{Client, Gateway, Message, PATIENCE, Upstream};

/// A gateway that is asked and told over its admin API.
#[derive(Debug)]
pub struct Operated {
    pub gateway: Gateway,
    pub admin: SocketAddr,
}

impl Operated {
    /// With `rest` in its policy, before an upstream.
    pub fn before(upstream: &Upstream, rest: &str) -> Self {
        Self::of(Gateway::start(&policy(upstream, rest)))
    }

    /// A gateway whose admin API is on.
    pub fn of(gateway: Gateway) -> Self {
        let line =
            gateway.errors().find(|line| line.contains("admin API on ")).expect("it says so at the start");
        let (_, rest) = line.split_once("admin API on ").unwrap();
        let admin = rest.split(',').next().unwrap().parse().unwrap();
        Self { gateway, admin }
    }

    /// Asks the admin API, with a body in JSON.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Message {
        self.ask_with(method, path, &[("content-type", "application/json")], body)
    }

    pub fn ask_with(&self, method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Message {
        let fields: Vec<_> = [("host", "127.0.0.1")].iter().chain(fields).copied().collect();
        Client::connect(self.admin).ask(method, path, &fields, body)
    }

    /// What the admin API answers, which must be 200.
    pub fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, "");
        assert_eq!(answer.status(), 200, "{path}: {answer:?}");
        answer.json()
    }

    /// Sends another policy.
    pub fn put(&self, policy: &str) -> Message {
        self.ask_with("PUT", "/api/v1/policy", &[("content-type", "application/toml")], policy)
    }

    /// Puts another policy in the place of its file, in one step.
    pub fn rewrite(&self, policy: &str) {
        let folder = self.gateway.folder();
        fs::write(folder.join("next"), policy).unwrap();
        fs::rename(folder.join("next"), folder.join("tidegate.toml")).unwrap();
    }

    pub fn metrics(&self) -> String {
        self.ask("GET", "/metrics", "").text().to_owned()
    }

    /// One sample, by its name with labels.
    pub fn metric(&self, name: &str) -> u64 {
        let page = self.metrics();
        let sample = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        sample.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
    }

    pub fn policy_version(&self) -> u64 {
        self.metric("tidegate_policy_version")
    }

    /// Waits for a line on its standard error.
    #[track_caller]
    pub fn says(&self, wanted: &str) {
        let errors = self.gateway.errors();
        assert!(
            errors.find(|line| line.ends_with(wanted)).is_some(),
            "no {wanted:?} in {:#?}",
            errors.so_far()
        );
    }

    /// Asks again and again until the answer is right.
    #[track_caller]
    pub fn until(&self, path: &str, is_right: impl Fn(&Message) -> bool) -> Message {
        let begun = Instant::now();
        loop {
            let answer = self.ask("GET", path, "");
            if is_right(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{path} stays {answer:?}");
            std::thread::yield_now();
        }
    }

    pub fn frames(&self) -> Frames {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /api/v1/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").unwrap();
        Frames(BufReader::new(stream))
    }
}

/// A policy with an admin API.
pub fn policy(upstream: &Upstream, rest: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\nupstream = \"{}\"\nserver.admin = \"127.0.0.1:0\"\n{rest}",
        upstream.url()
    )
}

/// Somebody who listens to the stream.
#[derive(Debug)]
pub struct Frames(BufReader<TcpStream>);

impl Iterator for Frames {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.0.read_line(&mut line).unwrap() > 0 && line != "0\r\n" {
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
            line.clear();
        }
        None
    }
}
