//! More connections than there is room for.

use std::net::Ipv4Addr;

use crate::gateway::support::{Client, Gateway, Upstream, request};

fn start(upstream: &Upstream, limits: &str) -> Gateway {
    Gateway::start(&format!(
        "upstream = \"{}\"\nserver.workers = 2\n[[listener]]\nbind = \"127.0.0.1:0\"\n{limits}",
        upstream.url()
    ))
}

fn served(client: &mut Client) -> bool {
    client.get("/", &[]).status() == 200
}

#[test]
fn beyond_the_most_connections_newcomers_wait_until_one_ends() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "max_connections = 2\n");
    // The system chooses the worker, so that it takes some rounds to meet all ways they can be spread.
    for round in 0..8 {
        let (mut first, mut second) = (gateway.connect(), gateway.connect());
        assert!(served(&mut first) && served(&mut second), "round {round}");
        let asked = upstream.requests().len();
        let mut waiting: Vec<Client> = (0..4).map(|_| gateway.connect()).collect();
        for client in &mut waiting {
            client.send(request("GET", "/waiting", &[], ""));
        }
        assert!((0..50).all(|_| served(&mut first) && served(&mut second)), "round {round}");
        assert_eq!(upstream.requests().len(), asked + 100, "nobody else was served meanwhile");
        drop((first, second));
        // Each of them makes room for the next.
        let answers: Vec<_> = waiting
            .into_iter()
            .map(|mut client| std::thread::spawn(move || client.response().status()))
            .collect();
        assert!(answers.into_iter().all(|status| status.join().unwrap() == 200), "round {round}");
    }
}

#[test]
fn one_address_cannot_take_all_connections() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "max_connections = 100\nmax_connections_per_address = 10\n");
    let greedy = Ipv4Addr::new(127, 0, 0, 2);
    let mut held: Vec<Client> = (0..10).map(|_| gateway.connect_from(greedy)).collect();
    assert!(held.iter_mut().all(served));
    assert!((0..200).all(|_| gateway.connect_from(greedy).is_closed()), "more are turned away");
    assert_eq!(gateway.get("/", &[]).status(), 200, "others are served");
    assert!(held.iter_mut().all(served), "and who was there stays");
}
