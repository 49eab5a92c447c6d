//! Too much at once: what stands before an upstream lets so many in, lets others wait, and refuses the rest.
//!
//! No test knows how fast this machine is. Services hold requests until a test lets go of them, and who
//! waits is asked of the admin API:
//!
//! ```text
//! send /held ──> the service holds it
//! send /next ──> waits, says the admin API
//! let go     ──> both are served
//! ```

mod bulkheads;
mod cohorts;
mod criticality;
mod degrading;
mod endings;
mod load_reports;
mod refusals;
mod reloading;
mod retries;
mod rules;
mod signals;
mod streamed_uploads;
mod streams;
mod uploads;
mod waiting;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use serde_json::Value;

use crate::support::{Client, Gateway, Message, PATIENCE, Signal, Upstream, request};

/// Believed when it says how critical its requests are, and which attempt.
const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// One place, and nobody waits for it.
const ONE: &str = "algorithm = 'fixed'\nmax = 1\nqueue = { timeout = '0s' }";

/// One place, and whoever comes waits for as long as a test may take.
const ONE_AND_A_QUEUE: &str = "algorithm = 'fixed'\nmax = 1\nqueue = { timeout = '60s', order = 'fifo' }";

/// One place, and whoever comes waits for a moment.
const ONE_AND_A_MOMENT: &str = "algorithm = 'fixed'\nmax = 1\nqueue = { timeout = '100ms' }";

/// A gateway before the upstream `orders`, with an operator.
#[derive(Debug)]
struct Guarded {
    gateway: Gateway,
    admin: SocketAddr,
}

impl Guarded {
    /// With the keys of `[upstream.orders.concurrency]`, and the rest of the policy.
    fn before(upstream: &Upstream, concurrency: &str, rest: &str) -> Self {
        Self::start(&policy(upstream, concurrency, rest))
    }

    fn start(policy: &str) -> Self {
        let gateway = Gateway::start(policy);
        let line = gateway.errors().find(|line| line.contains("admin API on ")).expect("it has one");
        let (_, rest) = line.split_once("admin API on ").unwrap();
        let admin = rest.split(',').next().unwrap().parse().unwrap();
        Self { gateway, admin }
    }

    /// Sends a request and does not wait for its answer.
    fn send(&self, target: &str, fields: &[(&str, &str)]) -> Client {
        let mut client = self.gateway.connect();
        client.send(request("GET", target, fields, ""));
        client
    }

    /// Sends a request of some criticality, and waits until it waits as the last of `count`.
    fn line_up(&self, target: &str, fields: &[(&str, &str)], count: u64) -> Client {
        let mut client = self.gateway.connect_from(PROXY);
        client.send(request("GET", target, fields, ""));
        self.until(|orders| orders["waiting"] == count);
        client
    }

    /// Asks the admin API.
    fn ask(&self, path: &str) -> Message {
        Client::connect(self.admin).get(path, &[("host", "127.0.0.1")])
    }

    /// What stands before `orders`, as the admin API tells it.
    fn orders(&self) -> Value {
        let all = self.ask("/api/v1/upstreams").json();
        let all = all["upstreams"].as_array().unwrap();
        all.iter().find(|upstream| upstream["upstream"] == "orders").unwrap()["concurrency"].clone()
    }

    /// Asks again and again until the answer is right.
    #[track_caller]
    fn until(&self, is_right: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let orders = self.orders();
            if is_right(&orders) {
                return orders;
            }
            assert!(begun.elapsed() < PATIENCE, "it stays {orders:#}");
            std::thread::yield_now();
        }
    }

    /// How many requests `orders` has turned away.
    fn turned_away(&self) -> u64 {
        let page = self.ask("/metrics");
        let of_orders = page.text().lines().filter(|line| {
            line.starts_with("tidegate_refusals_total") && line.contains("rule=\"upstream:orders\"")
        });
        of_orders.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    /// Puts another policy in force, as the version that it then is.
    fn change(&self, policy: &str, version: u32) {
        self.gateway.rewrite(policy);
        self.gateway.signal(Signal::HUP);
        let wanted = format!("in force as version {version}");
        let errors = self.gateway.errors();
        assert!(errors.find(|line| line.ends_with(&wanted)).is_some(), "{:#?}", errors.so_far());
    }
}

/// A policy with an upstream `orders` and an admin API, which believes [`PROXY`].
fn policy(upstream: &Upstream, concurrency: &str, rest: &str) -> String {
    format!(
        "listen = '127.0.0.1:0'
        [server]
        admin = '127.0.0.1:0'
        trusted_proxies = ['{PROXY}']
        [upstream.orders]
        endpoints = ['{}']
        [upstream.orders.concurrency]
        {concurrency}
        {rest}",
        upstream.url()
    )
}
