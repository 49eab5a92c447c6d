//! Every answer there is, byte for byte and in the order of its fields, as `spelling.txt` has them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use tidegate_core::{Cost, Moment, Reason, Refusal, Retry, WallTime};
use tidegate_policy::policy::{KeySource, KeySpec, Mode, Policy, Rule, RuleCost, Settle};
use tidegate_policy::{Admitted, Attributes, Decision, Gate, Now, Refused, Turned};
use tidegate_tower::identify::Unclear;
use tidegate_tower::respond::{LegacyReset, RatelimitFields, Speech, Trouble, Unanswered};
use tidegate_tower::{Clock, Respond};

use crate::policies::{PER_KEY, busy, concurrent, policy, protected, reserve, settled, shed};

/// 100 seconds and 7 milliseconds after the beginning.
const NOW: Now =
    Now { moment: Moment::from_nanos(100_007_000_000), wall: WallTime::from_unix_nanos(100_007_000_000) };

const TWO_RULES: [&str; 2] = [
    "[rule.heavy]\nkey = [\"caller\", \"route\"]\nquota = \"90/min\"\nburst = 2.5\ncost = { estimate = 2.5 }\n",
    "[rule.light]\nkey = [\"client-ip\", \"path\"]\nquota = \"1/10s\"\n",
];

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Now {
        NOW
    }
}

/// The answers, each under the line that names it.
#[derive(Default)]
struct Answers(String);

impl Answers {
    fn add(&mut self, title: &str, response: &Response<Bytes>) {
        self.0 += &format!("# {title}\n{}\n", response.status().as_u16());
        self.add_fields(response.headers());
        if !response.body().is_empty() {
            self.0 += &format!("\n{}\n", without_id(std::str::from_utf8(response.body()).unwrap()));
        }
        self.0 += "\n";
    }

    fn add_fields(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            self.0 += &format!("{name}: {}\n", without_id(value.to_str().unwrap()));
        }
    }

    /// The same refusal in HTTP and in gRPC.
    fn add_each(&mut self, title: &str, answer: impl Fn(Speech) -> Response<Bytes>) {
        for speech in [Speech::Http, Speech::Grpc] {
            self.add(&format!("{title}, {speech:?}"), &answer(speech));
        }
    }

    /// What `respond` says after the last request that fits, and then to the one that does not.
    fn add_rules(&mut self, title: &str, respond: &Respond, policy: Policy) {
        let (admitted, refused) = spent(policy);
        if let Some(last) = admitted.last() {
            let mut headers = HeaderMap::new();
            respond.admitted(&Stopped, last, &mut headers);
            self.0 += &format!("# {title}, admitted\n");
            self.add_fields(&headers);
            self.0 += "\n";
        }
        self.add_each(title, |speech| respond.refused(NOW, &refused, speech));
    }
}

/// What a decision is called changes with the gate; how long its name is does not.
fn without_id(text: &str) -> String {
    for start in ["urn:tidegate:decision:", "; id=\""] {
        if let Some((before, id)) = text.split_once(start) {
            let (id, after) = id.split_at(16);
            assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
            return format!("{before}{start}0123456789abcdef{after}");
        }
    }
    text.to_owned()
}

/// Asks until the answer is no.
fn spent(policy: Policy) -> (Vec<Admitted>, Refused) {
    let gate = Gate::new(policy, 1, NOW).unwrap();
    let mut admitted = Vec::new();
    loop {
        match ask(&gate, &["alice"]) {
            Decision::Admit(more) => admitted.push(more),
            Decision::Refuse(refused) => return (admitted, refused),
        }
        assert!(admitted.len() < 1_000, "nobody says no");
    }
}

fn ask(gate: &Gate, keys: &[&str]) -> Decision {
    let keys = keys.iter().map(|key| ("x-api-key".to_owned(), (*key).to_owned()));
    let headers: Vec<_> = keys.chain([("x-other".to_owned(), "o".to_owned())]).collect();
    let client = Some([192, 0, 2, 1].into());
    let (method, path, host, headers) = ("GET", "/a", "example.org", &headers);
    gate.decide(NOW, &Attributes { method, path, host, headers, client, criticality: None })
}

/// The policy with its first rule changed, to what no file could say.
fn with(change: impl FnOnce(&mut Rule)) -> Policy {
    let mut policy = policy([PER_KEY]);
    change(Arc::make_mut(&mut policy.rules[0]));
    policy
}

fn quotas(answers: &mut Answers) {
    let respond = Respond::default();
    answers.add_rules("10 a second by key", &respond, policy([PER_KEY]));
    answers.add_rules("2 in flight", &respond, policy([&concurrent(2)]));
    answers.add_rules("a quota and 3 in flight", &respond, policy([PER_KEY, &concurrent(3)]));
    answers.add_rules("two rules at once", &respond, policy(TWO_RULES));
    for quota in ["3/s", "3/min", "3/h", "3/day", "3/1500ms"] {
        let rule = format!("[rule.timed]\nkey = \"header:x-api-key\"\nquota = \"{quota}\"\n");
        answers.add_rules(quota, &respond, policy([&rule]));
        let fixed = format!("{rule}algorithm = \"fixed_window\"\n");
        answers.add_rules(&format!("{quota} in a fixed window"), &respond, policy([&fixed]));
    }
    for source in ["bytes:response", "bytes:request", "response_header:x-cost"] {
        answers.add_rules(source, &respond, policy([&settled(source)]));
    }
    let per_criticality = "per_criticality = { critical = { quota = \"4/10s\" } }\n";
    answers.add_rules("another limit of the rule", &respond, policy([PER_KEY, per_criticality]));
    let cost = |units| Some(RuleCost { estimate: Cost::of(units), settle: None, abandoned: None });
    answers.add_rules("more than the burst", &respond, with(|rule| rule.cost = cost(21)));
    let cost = RuleCost {
        estimate: Cost::from_micros(12_345_678),
        settle: Some(Settle::RequestBytes),
        abandoned: None,
    };
    answers.add_rules("a cost with a fraction", &respond, with(|rule| rule.cost = Some(cost)));
    let name = "odd \"name\" with \\, 100%,\tand é";
    answers.add_rules("an odd name", &respond, with(|rule| rule.name = name.to_owned()));
    let other = || KeySource::Header("x-other".to_owned());
    for (title, key) in [
        ("no key", vec![]),
        ("everybody", vec![KeySource::Global]),
        ("another field", vec![other()]),
        ("three sources", vec![KeySource::Path, other(), KeySource::Route]),
    ] {
        answers.add_rules(title, &respond, with(|rule| rule.key = KeySpec(key)));
    }
}

fn ways(answers: &mut Answers) {
    for fields in [RatelimitFields::Refused, RatelimitFields::Never] {
        let respond = Respond::default().ratelimit_fields(fields);
        answers.add_rules(&format!("fields {fields:?}"), &respond, policy([PER_KEY]));
    }
    for reset in [LegacyReset::Seconds, LegacyReset::UnixTime] {
        let respond = Respond::default().legacy_ratelimit_fields(reset).debug_headers();
        answers.add_rules(&format!("older fields in {reset:?}"), &respond, policy(TWO_RULES));
    }
}

fn other_refusals(answers: &mut Answers) {
    let respond = Respond::default();
    let (_, mut refused) = spent(policy([PER_KEY]));
    for retry in
        [Retry::After(Duration::ZERO), Retry::After(Duration::from_nanos(61_000_000_001)), Retry::Never]
    {
        refused.refusal = Refusal { reason: Reason::Blocked, retry };
        answers.add_each(&format!("blocked, {retry:?}"), |speech| respond.refused(NOW, &refused, speech));
    }
    let gate = Gate::new(policy([PER_KEY]), 1, NOW).unwrap();
    let twice = ask(&gate, &["alice", "bob"]).refused().unwrap();
    answers.add_each("a key sent twice", |speech| respond.refused(NOW, &twice, speech));
    answers.add("a key sent twice, from a browser", &respond.refused(NOW, &twice, Speech::GrpcWeb));
}

/// What rules say that protect the service: nothing of what it can bear.
fn protecting(answers: &mut Answers) {
    let respond = Respond::default();
    let policy = || policy([PER_KEY]);
    answers.add_rules("a reserve", &respond, protected(policy(), "fleet", reserve(), Mode::Enforce));
    let gate = Gate::new(protected(policy(), "worker", shed(), Mode::Enforce), 1, NOW).unwrap();
    for half in 0..20 {
        gate.steer(Now { moment: NOW.moment.plus(half * Duration::from_millis(500)), ..NOW }, &busy());
    }
    let refused = ask(&gate, &["alice"]).refused().unwrap();
    answers.add_each("shedding", |speech| respond.refused(NOW, &refused, speech));
}

/// What an upstream says to a request that its rules admitted. The time to wait follows from the decision's number.
fn turned_away(answers: &mut Answers) {
    let gate =
        Gate::new(policy([PER_KEY, "[upstream.orders]\nendpoints = [\"http://a:1\"]\n"]), 1, NOW).unwrap();
    let respond = Respond::default().debug_headers();
    let wait = Duration::from_millis(1_200);
    for (reason, retry) in [
        (Reason::QueueFull, Retry::After(Duration::ZERO)),
        (Reason::LimitReached, Retry::After(Duration::ZERO)),
        (Reason::Shed, Retry::After(wait)),
        (Reason::Shed, Retry::Never),
        (Reason::DeadlinePassed, Retry::After(Duration::ZERO)),
    ] {
        let turned = Turned { upstream: "orders", refusal: Refusal { reason, retry } };
        let refused = gate.turn_away(NOW, ask(&gate, &["alice"]).admitted().unwrap(), turned);
        let title = format!("{reason:?} by an upstream, {retry:?}");
        answers.add_each(&title, |speech| respond.refused(NOW, &refused, speech));
    }
}

fn without_rule(answers: &mut Answers) {
    let respond = Respond::default();
    for reason in
        [Reason::QuotaSpent, Reason::Blocked, Reason::Shed, Reason::Throttled, Reason::DeadlinePassed]
    {
        for retry in [Retry::After(Duration::from_millis(1_200)), Retry::Never] {
            let title = format!("{reason:?} without a rule, {retry:?}");
            answers.add_each(&title, |speech| respond.without_rule(Refusal { reason, retry }, speech));
        }
    }
    for trouble in [
        Trouble::Unclear("something is \"odd\""),
        Trouble::NoRoute,
        Trouble::Unreachable(Unanswered::ConnectRefused),
        Trouble::Unreachable(Unanswered::BadAnswer),
        Trouble::Silent,
        Trouble::Busy,
        Trouble::Stalled,
    ] {
        answers.add_each(&format!("{trouble:?}"), |speech| respond.trouble(trouble, speech));
    }
    let unclear = Unclear { what: "the path is odd" };
    answers.add_each("unclear", |speech| respond.unclear(unclear, speech));
}

#[test]
fn every_answer_is_spelt_as_it_is_written_down() {
    let mut answers = Answers::default();
    for add in [quotas, ways, other_refusals, protecting, turned_away, without_rule] {
        add(&mut answers);
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write("tests/contract/spelling.txt", &answers.0).unwrap();
    }
    let (mut told, mut expected) = (answers.0.split("# "), include_str!("spelling.txt").split("# "));
    loop {
        match (told.next(), expected.next()) {
            (None, None) => break,
            (told, expected) => assert_eq!(told, expected),
        }
    }
}
