//! Policies come and go while requests are served: none is lost, none is charged twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::gateway::support::{Gateway, Upstream};
use crate::operated::{Operated, policy};

/// The quota is one that nobody reaches; routes, upstreams and other rules come and go with `number`.
fn changing(number: u32, upstream: &Upstream, other: &Upstream) -> String {
    let upstream = if number.is_multiple_of(2) { upstream } else { other };
    let mut rest = format!(
        "[rule.per_key]\nkey = \"header:x-api-key\"\nalgorithm = \"fixed_window\"\nquota = \"{}/month\"\n",
        1_000_000 + number
    );
    if number.is_multiple_of(3) {
        rest.push_str("[rule.places]\nkind = \"concurrency\"\nkey = \"header:x-api-key\"\nlimit = 100\n");
    }
    if number.is_multiple_of(5) {
        rest.push_str("[[route]]\nname = \"all\"\nmatch = { path = \"/**\" }\nrules = [\"per_key\"]\n");
    }
    policy(upstream, &rest)
}

#[test]
fn twenty_policies_under_traffic_lose_nothing_and_charge_once() {
    let (one, other) = (Upstream::ok(), Upstream::ok());
    let gateway = Operated::of(Gateway::start(&changing(0, &one, &other)));
    let is_over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = ["ann", "bob"]
        .into_iter()
        .map(|key| {
            let (mut client, is_over) = (gateway.gateway.connect(), Arc::clone(&is_over));
            std::thread::spawn(move || {
                let mut sent = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    let answer = client.get("/", &[("x-api-key", key)]);
                    assert_eq!(answer.status(), 200, "{answer:?}");
                    sent += 1;
                }
                (key, sent)
            })
        })
        .collect();
    for number in 1..=20 {
        let next = changing(number, &one, &other);
        if number.is_multiple_of(2) {
            gateway.rewrite(&next);
            gateway.says(&format!("tidegate: tidegate.toml in force as version {}", number + 1));
        } else {
            let taken = gateway.put(&next);
            assert_eq!(taken.status(), 200, "{taken:?}");
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let mut all = 0;
    for caller in callers {
        let (key, sent) = caller.join().unwrap();
        assert!(sent > 20, "{key} was served all the time: {sent}");
        assert_eq!(gateway.get(&format!("/api/v1/counters/per_key/{key}"))["used"], sent, "{key}");
        all += sent;
    }
    assert_eq!(gateway.policy_version(), 21);
    assert_eq!((one.requests().len() + other.requests().len()) as u64, all, "each was sent on once");
    assert!(!one.requests().is_empty() && !other.requests().is_empty());
}
