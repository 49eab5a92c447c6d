//! Every algorithm of a rate rule, as callers and the service feel it.

use std::time::{Duration, Instant, SystemTime};

use crate::support::{Gateway, H2Client, Upstream, full};

/// Asks until it is served; gives the time since `began`.
fn served_after(gateway: &Gateway, began: Instant) -> Duration {
    let mut client = gateway.connect();
    while client.get("/", &[]).status() != 200 {
        assert!(began.elapsed() < Duration::from_secs(15), "nothing is served any more");
    }
    began.elapsed()
}

fn start(upstream: &Upstream, rule: &str) -> Gateway {
    Gateway::before(upstream, &format!("[rule.shared]\n{rule}"))
}

#[test]
fn a_token_bucket_passes_its_burst_and_then_its_rate() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "quota = '5/s'\nburst = 2");
    let began = Instant::now();
    assert_eq!(gateway.statuses(2, "/", &[]), [200, 200]);
    // Two are there at once; the third and fourth have to be earned.
    served_after(&gateway, began);
    assert!(served_after(&gateway, began) >= Duration::from_millis(400));
}

#[test]
fn a_token_bucket_of_hours_says_when_to_come_again() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "quota = '2/h'\nburst = 3");
    assert_eq!(gateway.statuses(4, "/", &[]), [200, 200, 200, 429]);
    let refused = gateway.get("/", &[]);
    let retry: u64 = refused.get("retry-after").unwrap().parse().unwrap();
    assert!((1790..=1800).contains(&retry), "{retry}");
    assert_eq!(refused.get("ratelimit-policy"), Some("\"shared\";q=3;w=5400"));
}

#[test]
fn a_fixed_window_ends_at_midnight() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "quota = '3/day'\nalgorithm = 'fixed_window'");
    assert_eq!(gateway.statuses(4, "/", &[]), [200, 200, 200, 429]);
    let retry: u64 = gateway.get("/", &[]).get("retry-after").unwrap().parse().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let left = 86_400 - now % 86_400;
    assert!(retry.abs_diff(left) <= 1, "{retry} and not {left}");
}

#[test]
fn a_fixed_window_begins_anew() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "quota = '2/s'\nalgorithm = 'fixed_window'");
    let mut client = gateway.connect();
    let statuses: Vec<u16> = std::iter::repeat_with(|| client.get("/", &[]).status()).take(5).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    assert!(served_after(&gateway, Instant::now()) <= Duration::from_millis(1500));
}

#[test]
fn a_sliding_window_spends_its_quota_and_recovers() {
    let upstream = Upstream::ok();
    for buckets in [1, 4] {
        let rule = format!("quota = '4/400ms'\nalgorithm = 'sliding_window'\nbuckets = {buckets}");
        let gateway = start(&upstream, &rule);
        let began = Instant::now();
        let served = gateway.statuses(8, "/", &[]).iter().filter(|status| **status == 200).count();
        // Requests of one stretch of 400 ms, unless the machine is so slow that it takes longer.
        assert!(
            served == 4 || began.elapsed() > Duration::from_millis(400),
            "{served} with {buckets} buckets"
        );
        served_after(&gateway, began);
    }
}

#[test]
fn a_sliding_log_lets_nobody_in_before_somebody_has_left() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "quota = '3/500ms'\nalgorithm = 'sliding_log'");
    let began = Instant::now();
    assert_eq!(gateway.statuses(3, "/", &[]), [200, 200, 200]);
    assert!(served_after(&gateway, began) >= Duration::from_millis(500));
}

/// Sends so many requests at once, in order; gives their statuses, and when each served one came to the service.
fn at_once(upstream: &Upstream, rule: &str, count: usize) -> (Vec<u16>, Vec<(String, Duration)>) {
    let gateway = start(upstream, rule);
    let client = H2Client::connect(gateway.address());
    let began = Instant::now();
    let statuses = client.runtime().block_on(async {
        let mut sender = client.sender();
        let mut answers = Vec::new();
        for number in 0..count {
            let request = http::Request::get(format!("http://a/{number}")).body(full("")).unwrap();
            sender.ready().await.unwrap();
            answers.push(sender.send_request(request));
        }
        let mut statuses = Vec::new();
        for answer in answers {
            statuses.push(answer.await.unwrap().status().as_u16());
        }
        statuses
    });
    let arrivals = upstream.arrivals();
    let arrivals = arrivals.into_iter().map(|(target, at)| (target, at.duration_since(began))).collect();
    (statuses, arrivals)
}

/// Nobody may come before its turn; how late somebody comes is the machine's business.
fn came_in_turn(arrivals: &[(String, Duration)], turns: &[u64]) {
    let targets: Vec<&str> = arrivals.iter().map(|(target, _)| target.as_str()).collect();
    let expected: Vec<String> = (0..turns.len()).map(|number| format!("/{number}")).collect();
    assert_eq!(targets, expected);
    for ((target, at), turn) in arrivals.iter().zip(turns) {
        assert!(*at >= Duration::from_millis(*turn), "{target} came after {at:?} instead of {turn} ms");
    }
}

#[test]
fn a_leaky_bucket_lets_requests_wait_for_their_turn() {
    let upstream = Upstream::ok();
    let (statuses, arrivals) = at_once(&upstream, "quota = '4/s'\nalgorithm = 'leaky_bucket'\nburst = 3", 6);
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
    came_in_turn(&arrivals, &[0, 250, 500, 750]);
}

#[test]
fn a_leaky_bucket_delays_only_those_behind_delay() {
    let upstream = Upstream::ok();
    let rule = "quota = '5/s'\nalgorithm = 'leaky_bucket'\nburst = 4\ndelay = 2";
    let (statuses, mut arrivals) = at_once(&upstream, rule, 6);
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    // The first three go at once, in whatever order their connections are made.
    arrivals[..3].sort_unstable();
    came_in_turn(&arrivals, &[0, 0, 0, 200, 400]);
    assert!(arrivals[2].1 < arrivals[3].1);
}

#[test]
fn a_leaky_bucket_without_delay_lets_nobody_wait() {
    let upstream = Upstream::ok();
    let rule = "quota = '1/min'\nalgorithm = 'leaky_bucket'\nburst = 4\nnodelay = true";
    let (statuses, arrivals) = at_once(&upstream, rule, 6);
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    assert!(arrivals.iter().all(|(_, at)| *at < Duration::from_secs(15)), "{arrivals:?}");
}

#[test]
fn smooth_spaces_requests_evenly_and_refuses_longer_waits() {
    let upstream = Upstream::ok();
    let rule = "quota = '4/s'\nalgorithm = 'smooth'\nmax_wait = '600ms'\nburst = 1";
    let (statuses, mut arrivals) = at_once(&upstream, rule, 6);
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
    // One was stored, so two go at once.
    arrivals[..2].sort_unstable();
    came_in_turn(&arrivals, &[0, 0, 250, 500]);
}

#[test]
fn warm_up_is_slower_while_cold() {
    let upstream = Upstream::ok();
    let rule = "quota = '20/s'\nalgorithm = 'warm_up'\nwarm_up = '60s'\ncold_factor = 3\nmax_wait = '5s'";
    let (statuses, arrivals) = at_once(&upstream, rule, 3);
    assert_eq!(statuses, [200, 200, 200]);
    // Warm, each would follow the one before it after 50 ms; cold it is nearly three times that.
    came_in_turn(&arrivals, &[0, 140, 280]);
}

#[test]
fn a_caller_who_goes_away_while_waiting_is_not_sent_on() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "quota = '2/s'\nalgorithm = 'leaky_bucket'\nburst = 5");
    assert_eq!(gateway.get("/first", &[]).status(), 200);
    let mut gone = gateway.connect();
    gone.send("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n");
    gone.cut();
    assert_eq!(gateway.get("/last", &[]).status(), 200);
    assert_eq!(upstream.targets(), ["/first", "/last"]);
}
