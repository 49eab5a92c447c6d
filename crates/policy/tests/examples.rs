//! Examples of the language: everything in them is known, and what is supported compiles to what it says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Cost, Criticality, Moment, Ratio, WallTime};
use tidegate_policy::policy::{
    AccessLog, Capacity, ClientAddress, Concurrency, CriticalitySource, Degrade, DegradeWhen, Endpoint,
    Guard, KeySource, KnownCallers, LegacyReset, Limit, LimitAlgorithm, Listener, LogAlways, LogFormat,
    LogTarget, MOST_OVERRIDES, MOST_PLANS_A_RULE, MOST_RULES_A_ROUTE, MOST_SIGNALS, MOST_SOURCES_A_KEY, Mode,
    Network, PathPattern, Policy, Protocols, Rate, RatelimitFields, Reserve, Secret, Server, Settle, Shape,
    Shed, SignalFrom, SignalName, SignalSpec, Tls, Upstream, UpstreamProtocol, WaitingOrder, WaitingQueue,
};
use tidegate_policy::{Attributes, Code, Decision, Gate, Now, Source, callers_file, read};

const SUPPORTED: &str = include_str!("examples/supported.toml");
const CALLERS: &str = include_str!("examples/callers.toml");

fn supported() -> Policy {
    let callers = Source::named("callers.toml", CALLERS.as_bytes());
    let source = Source::named("supported.toml", SUPPORTED.as_bytes());
    let (policy, warnings) = read(source, Some(callers)).expect("the example has no errors");
    assert_eq!(warnings, []);
    policy
}

fn rate<'a>(policy: &'a Policy, name: &str) -> &'a Rate {
    let rule = policy.rules.iter().find(|rule| rule.name == name);
    match rule.map(|rule| &rule.limit) {
        Some(Limit::Rate(rate)) => rate,
        other => unreachable!("{name} is {other:?}"),
    }
}

#[test]
fn every_key_of_the_language_is_known() {
    for text in [include_str!("examples/complete.toml"), include_str!("examples/details.toml")] {
        let problems = read(Source::named("tidegate.toml", text.as_bytes()), None).unwrap_err();
        let allowed = [Code::NotSupported, Code::NoCallers];
        let others: Vec<_> = problems
            .iter()
            .filter(|problem| problem.severity() == tidegate_policy::Severity::Error)
            .filter(|problem| !allowed.contains(&problem.code))
            .collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}

#[test]
fn what_is_not_supported_yet_is_refused_by_name() {
    let text = include_str!("examples/complete.toml");
    let problems = read(Source::named("tidegate.toml", text.as_bytes()), None).unwrap_err();
    let refused: BTreeSet<&str> = problems
        .iter()
        .filter(|problem| problem.code == Code::NotSupported)
        .map(|problem| problem.path.as_str())
        .collect();
    let expected = [
        "egress",
        "queue",
        "rls",
        "route[1].park",
        "route[2].cache",
        "rule.concurrent.store",
        "rule.fleet_usage.store",
        "rule.request_rate.flush",
        "rule.request_rate.on_store_failure",
        "rule.request_rate.store",
        "rule.request_rate.sync",
        "store",
        "telemetry.otlp",
        "upstream.orders.attempt_timeout",
        "upstream.orders.breaker",
        "upstream.orders.deadline",
        "upstream.orders.fallback",
        "upstream.orders.retry",
        "upstream.orders.throttle",
    ];
    assert_eq!(refused, BTreeSet::from(expected));
}

#[test]
fn the_callers_file_is_the_one_the_policy_names() {
    let source = Source::named("supported.toml", SUPPORTED.as_bytes());
    assert_eq!(callers_file(source).as_deref(), Some("callers.toml"));
    assert_eq!(callers_file(Source::named("tidegate.toml", b"listen = \"0.0.0.0:80\"")), None);
    assert_eq!(callers_file(Source::named("tidegate.toml", b"[caller")), None);
}

#[test]
fn quotas_compile_to_what_they_say() {
    let policy = supported();
    let request_rate = rate(&policy, "request_rate");
    assert_eq!(request_rate.written, "100/s");
    assert_eq!((request_rate.most(), request_rate.window()), (Cost::of(200), Duration::from_secs(2)));
    assert_eq!(rate(&policy, "cpu_share").most(), "2.5".parse().unwrap(), "the number in the quota");
    assert_eq!(rate(&policy, "waiting").most(), Cost::of(6), "the one that passes and five that wait");
    assert!(matches!(rate(&policy, "monthly").shape, Shape::Calendar(_)));
    assert!(matches!(rate(&policy, "minutely").shape, Shape::FixedWindow(_)));
    assert!(matches!(rate(&policy, "sliding").shape, Shape::SlidingWindow(_)));
    assert!(matches!(rate(&policy, "logged").shape, Shape::SlidingLog(_)));
    assert!(matches!(rate(&policy, "smoothed").shape, Shape::Smooth(_)));
    assert!(matches!(rate(&policy, "warming").shape, Shape::WarmUp(_)));
}

#[test]
fn numbers_that_stand_in_keep_the_algorithm_and_have_their_own_burst() {
    let policy = supported();
    let rule = &policy.rules[0];
    let most = |limit: &Limit| match limit {
        Limit::Rate(rate) => (rate.written.clone(), rate.most().whole()),
        Limit::Concurrency(limit) => (String::new(), u64::from(*limit)),
        Limit::Reserve(_) | Limit::Shed(_) => unreachable!("they have no numbers that stand in"),
    };
    assert_eq!(most(&rule.plans["free"]), ("5/s".to_owned(), 10));
    assert_eq!(most(&rule.per_criticality[&Criticality::Sheddable]), ("10/s".to_owned(), 10));
    assert_eq!(rule.shadow.as_ref().map(most), Some(("80/s".to_owned(), 160)));
    assert_eq!(most(&policy.callers["acct_big"].overrides["request_rate"]), ("50/s".to_owned(), 100));
    assert_eq!(most(&policy.callers["acct_big"].overrides["concurrent"]), (String::new(), 200));
    assert_eq!(policy.callers["acct_small"].plan.as_deref(), Some("free"));
}

#[test]
fn routes_callers_and_criticality_compile_to_what_they_say() {
    let policy = supported();
    let names: Vec<&str> = policy.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names, ["health", "charges", "route_3", "everything_else"]);
    let charges = &policy.routes[1];
    assert_eq!(charges.rules, [0, 1, 2, 11, 12, 13, 14]);
    assert_eq!((charges.cost.of("POST"), charges.cost.of("GET")), (Cost::of(5), Cost::ONE));
    assert_eq!(charges.matcher.path, PathPattern::new("/v1/charges/**").ok());
    assert!(policy.routes[0].is_exempt);
    assert_eq!(policy.routes[2].upstream.as_deref(), Some("reports"));
    assert_eq!(policy.caller.0, [KeySource::Header("x-api-key".to_owned()), KeySource::ClientIp]);
    assert_eq!(policy.known, KnownCallers::Table);
    let from = [
        CriticalitySource::Header("x-criticality".to_owned()),
        CriticalitySource::Baggage("criticality".to_owned()),
    ];
    assert_eq!(policy.criticality_from, from);
    let assigned: Vec<Criticality> = policy.criticality.iter().map(|(_, level)| *level).collect();
    assert_eq!(assigned, [Criticality::CriticalPlus, Criticality::Sheddable]);
    assert_eq!(policy.rules[9].mode, Mode::Shadow);
    let settle = policy.rules[2].cost.as_ref().and_then(|cost| cost.settle.clone());
    assert_eq!(settle, Some(Settle::ResponseHeader("x-cpu-seconds".to_owned())));
    assert_eq!(charges.upgrades, ["websocket"]);
    assert_eq!(policy.rules[0].line.0, 52);
}

#[test]
fn what_protects_the_service_compiles_to_what_it_says() {
    let policy = supported();
    let limit = |name: &str| {
        let rule = policy.rules.iter().find(|rule| rule.name == name).unwrap();
        (rule.limit.clone(), rule.mode)
    };
    let reserve = |capacity, level, kept| Limit::Reserve(Reserve { capacity, level, kept });
    let share = |share| Ratio::new(share).unwrap();
    let fleet = reserve(Capacity::Places(400), Criticality::Critical, share(0.2));
    assert_eq!(limit("fleet_usage"), (fleet, Mode::Enforce));
    let orders = reserve(Capacity::Upstream("orders".into()), Criticality::CriticalPlus, share(0.125));
    assert_eq!(limit("orders_usage"), (orders, Mode::Shadow));
    let [sheddable, sheddable_plus, critical, _] = Criticality::ALL;
    let worker = Shed {
        targets: vec![
            (SignalName::InFlight, 0.8),
            (SignalName::QueueDelay, 0.005),
            (SignalName::Cpu, 0.85),
            (SignalName::Own("db_load".into()), 0.7),
            (SignalName::Own("backlog".into()), 1_500.0),
        ],
        order: vec![sheddable, sheddable_plus],
        ramp: Duration::from_secs(60),
    };
    assert_eq!(limit("worker_usage"), (Limit::Shed(worker), Mode::Enforce));
    let memory = Shed {
        targets: vec![
            (SignalName::Memory, 0.9),
            (SignalName::MemoryPressure, 0.1),
            (SignalName::EventLoop, 0.02),
            (SignalName::UpstreamUtilization, 0.75),
        ],
        order: vec![sheddable, sheddable_plus, critical],
        ramp: Duration::from_secs(120),
    };
    assert_eq!(limit("memory_usage"), (Limit::Shed(memory), Mode::Shadow));
    let signal = |name: &str, from| SignalSpec { name: name.into(), from };
    let from = SignalFrom::ResponseHeader("x-db-load".to_owned());
    assert_eq!(policy.signals, [signal("db_load", from), signal("backlog", SignalFrom::Api)]);
    let degrade: Vec<Option<&Degrade>> = policy.routes.iter().map(|route| route.degrade.as_ref()).collect();
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let (body, when) = ("{\"items\":[]}".to_owned(), DegradeWhen::Shedding);
    let charges = Degrade { when, status: 203, body, headers };
    let (body, when) = (String::new(), DegradeWhen::Switched);
    let last = Degrade { when, status: 204, body, headers: Vec::new() };
    assert_eq!(degrade, [None, Some(&charges), None, Some(&last)]);
}

#[test]
fn the_gateway_compiles_to_what_it_says() {
    let (policy, seconds) = (supported(), Duration::from_secs);
    let network = |address: &str, prefix| Network::of(address.parse().unwrap(), prefix);
    let server = Server {
        admin: "0.0.0.0:9900".parse().ok(),
        admin_token: Some(Secret::File("/run/secrets/token".to_owned())),
        workers: Some(4),
        drain: seconds(20),
        drain_delay: seconds(5),
        trusted_proxies: vec![network("10.0.0.0", 8), network("2001:db8::", 32), network("192.0.2.7", 32)],
        client_address: ClientAddress::ProxyProtocol,
        ipv6_prefix: 56,
        ratelimit_fields: RatelimitFields::Refused,
        legacy_ratelimit_fields: Some(LegacyReset::UnixTime),
        guard: Guard::Refuse,
        debug_headers: true,
    };
    assert_eq!(policy.server, server);
    let public = Listener {
        name: "public".to_owned(),
        bind: "0.0.0.0:8443".parse().unwrap(),
        protocols: Protocols { http1: false, h2: true },
        tls: Some(Tls { cert: "tls.crt".to_owned(), key: "tls.key".to_owned() }),
        max_connections: 5_000,
        max_connections_per_address: 50,
        max_header_bytes: 16 * 1024,
        max_headers: 64,
        head_timeout: seconds(5),
        body_idle_timeout: seconds(30),
        idle_timeout: seconds(120),
    };
    assert_eq!(policy.listeners, [public, Listener::new("listener_2", "[::1]:8080".parse().unwrap())]);
    let orders = Upstream {
        name: "orders".to_owned(),
        endpoints: vec![
            Endpoint::new(false, "orders-1", Some(8080)),
            Endpoint::new(false, "2001:db8::1", None),
        ],
        protocol: UpstreamProtocol::Http1,
        timeout: Some(seconds(2)),
        connect_timeout: Duration::from_millis(250),
        max_connections: 100,
        idle_timeout: seconds(30),
        concurrency: Concurrency {
            algorithm: LimitAlgorithm::Gradient,
            min: 20,
            max: 400,
            latency: Some(Duration::from_millis(500)),
            queue: WaitingQueue {
                timeout: Some(Duration::ZERO),
                order: WaitingOrder::Fair,
                max_waiting: 1_000,
            },
        },
    };
    let reports = Upstream::new("reports", vec![Endpoint::new(true, "reports.example.com", None)]);
    assert_eq!(reports.protocol, UpstreamProtocol::Auto, "what TLS negotiates");
    let fixed = Concurrency { algorithm: LimitAlgorithm::Fixed, min: 5, max: 5, ..Concurrency::default() };
    let reports = Upstream { timeout: None, concurrency: fixed, ..reports };
    assert_eq!(policy.upstreams, [Arc::new(orders), Arc::new(reports)]);
    let log = AccessLog {
        to: LogTarget::File("/var/log/tidegate.json".to_owned()),
        format: LogFormat::Json,
        sample_accepted: 5_000,
        always: LogAlways { refused: true, shadow: false, failed: true },
    };
    assert_eq!(policy.access_log, Some(log));
}

#[test]
fn what_is_not_written_has_its_default() {
    let (policy, warnings) =
        read(Source::named("tidegate.toml", b"[telemetry]\naccess_log = {}"), None).unwrap();
    assert_eq!(warnings, []);
    assert_eq!((policy.server, policy.listeners.len(), policy.upstreams.len()), (Server::default(), 0, 0));
    let log = AccessLog {
        to: LogTarget::Stdout,
        format: LogFormat::Json,
        sample_accepted: 1_000_000,
        always: LogAlways { refused: true, shadow: true, failed: false },
    };
    assert_eq!(policy.access_log, Some(log));
}

/// The least share that is asked for is not none, and none is none.
#[test]
fn shares_of_the_log_are_millionths() {
    for (share, millionths) in
        [("0%", 0), ("0.000001%", 1), ("1%", 10_000), ("33.3333%", 333_333), ("100%", 1_000_000)]
    {
        let text = format!("telemetry = {{ access_log = {{ sample_accepted = \"{share}\" }} }}");
        let (policy, _) = read(Source::named("tidegate.toml", text.as_bytes()), None).unwrap();
        assert_eq!(policy.access_log.map(|log| log.sample_accepted), Some(millionths), "{share}");
    }
}

#[test]
fn addresses_of_one_ipv6_network_share_a_counter() {
    let now = Now { moment: Moment::from_nanos(0), wall: WallTime::from_unix_nanos(0) };
    let is_shared = |prefix: u8| {
        let text =
            format!("[server]\nipv6_prefix = {prefix}\n[rule.one]\nkey = \"client-ip\"\nquota = \"1/day\"");
        let (policy, _) = read(Source::named("tidegate.toml", text.as_bytes()), None).unwrap();
        let gate = Gate::new(policy, 1, now).unwrap();
        let ask = |client: &str| {
            let client = client.parse().ok();
            let attributes =
                Attributes { method: "GET", path: "/", host: "", headers: &(), client, criticality: None };
            matches!(gate.decide(now, &attributes), Decision::Admit(_))
        };
        assert!(ask("2001:db8:0:7::1"));
        !ask("2001:db8:0:8::1")
    };
    assert!(!is_shared(64), "a network each");
    assert!(is_shared(56), "0007 and 0008 begin with the same eight bits");
}

/// What compiles fits the gate: the bounds of both are the same.
#[test]
fn the_largest_policies_that_compile_are_gates() {
    let now = Now { moment: Moment::from_nanos(0), wall: WallTime::from_unix_nanos(0) };
    assert!(Gate::new(supported(), 1, now).is_ok());

    let mut text = "caller = { max_keys = 10, table = \"callers.toml\" }\n".to_owned();
    for index in 0..MOST_RULES_A_ROUTE {
        let key = ["\"caller\""; MOST_SOURCES_A_KEY].join(", ");
        text.push_str(&format!("[rule.r{index}]\nquota = \"10/s\"\nkey = [{key}]\n"));
        for plan in 0..MOST_PLANS_A_RULE {
            text.push_str(&format!("plans.p{plan} = {{ quota = \"{}/s\" }}\n", plan + 1));
        }
    }
    let callers: String = (0..MOST_OVERRIDES)
        .map(|index| format!("[c{index}]\noverrides.r0 = {{ quota = \"1/s\" }}\n"))
        .collect();
    let read = |text: &str, callers: &str| {
        let callers = Source::named("callers.toml", callers.as_bytes());
        read(Source::named("tidegate.toml", text.as_bytes()), Some(callers))
    };
    let (policy, _) = read(&text, &callers).unwrap();
    assert!(Gate::new(policy, 1, now).is_ok());

    let more = format!("{callers}[one_more]\noverrides.r0 = {{ quota = \"1/s\" }}\n");
    let codes =
        |problems: Vec<tidegate_policy::Problem>| problems.into_iter().map(|problem| problem.code).next();
    assert_eq!(codes(read(&text, &more).unwrap_err()), Some(Code::TooMany));
    let more = format!("{text}[rule.r99]\nquota = \"10/s\"\n");
    assert_eq!(codes(read(&more, &callers).unwrap_err()), Some(Code::TooManyRules));
}

/// Plans and shadows share the rule's algorithm, but a day of the calendar is counted otherwise than a minute.
#[test]
fn every_algorithm_with_every_window_in_its_plans_is_a_gate() {
    let now = Now { moment: Moment::from_nanos(0), wall: WallTime::from_unix_nanos(0) };
    let windows = ["s", "30s", "day", "month"];
    for algorithm in
        ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "smooth", "warm_up"]
    {
        for (own, others) in windows.iter().flat_map(|own| windows.iter().map(move |other| (own, other))) {
            let text = format!(
                "caller = {{ max_keys = 10, table = \"callers.toml\" }}\n\
                 [rule.all]\nkey = \"caller\"\nalgorithm = \"{algorithm}\"\nquota = \"10/{own}\"\n\
                 plans = {{ gold = {{ quota = \"20/{others}\" }} }}\nshadow = {{ quota = \"5/{others}\" }}\n\
                 per_criticality = {{ sheddable = {{ quota = \"5/{others}\" }} }}\n"
            );
            let callers = format!("[big]\nplan = \"gold\"\noverrides.all = {{ quota = \"7/{others}\" }}\n");
            let callers = Source::named("callers.toml", callers.as_bytes());
            let (policy, warnings) =
                read(Source::named("tidegate.toml", text.as_bytes()), Some(callers)).unwrap();
            assert_eq!(warnings, []);
            let gate = Gate::new(policy, 1, now);
            assert!(gate.is_ok(), "{text}\n{gate:?}");
        }
    }
}

#[test]
fn lists_of_networks_endpoints_and_signals_have_a_bound() {
    let list = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(|index| format!("\"{}\"", item(index))).collect::<Vec<_>>().join(", ")
    };
    let problems = |count: usize| {
        let networks = list(count, &|index| format!("10.0.{}.{}", index / 256, index % 256));
        let endpoints = list(count, &|index| format!("http://orders-{index}"));
        let text =
            format!("[server]\ntrusted_proxies = [{networks}]\n[upstream.orders]\nendpoints = [{endpoints}]");
        let read = read(Source::named("tidegate.toml", text.as_bytes()), None);
        read.err().unwrap_or_default().into_iter().map(|problem| problem.message).collect::<Vec<_>>()
    };
    assert_eq!(problems(1_024), [] as [&str; 0]);
    let expected = [
        "`trusted_proxies` has 1025 networks, more than 1024",
        "upstream `orders` has 1025 endpoints, more than 1024",
    ];
    assert_eq!(problems(1_025), expected);

    let signals = |count: usize| {
        let signals = (0..count).map(|index| format!("[signal.s{index}]\nfrom = \"api\"\n"));
        let read = read(Source::named("tidegate.toml", signals.collect::<String>().as_bytes()), None);
        read.err().unwrap_or_default().into_iter().map(|problem| problem.message).collect::<Vec<_>>()
    };
    assert_eq!(signals(MOST_SIGNALS), [] as [&str; 0]);
    assert_eq!(signals(MOST_SIGNALS + 1), ["there are 33 signals, more than 32"]);
}
