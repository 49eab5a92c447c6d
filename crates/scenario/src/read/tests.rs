use tidegate_core::Criticality;

use super::*;

const GOOD: &str = r#"id   = "X"
what = "a step"
timeline = [
    { phase = "calm", length = "10s", real = "2s" },
    { times = 3, real = 2, phases = [{ phase = "on", length = "2s" }, { phase = "off", length = "1s" }] },
]

[service]
workers = 10
work    = { exponential = "10ms" }

[traffic]
load    = { calm = 0.5, on = [1, 3] }
timeout = "200ms"

[class.low]
share       = "60%"
criticality = "sheddable"

[class.high]
share       = "40%"
criticality = "critical"

[[fault]]
during = "on"
slow   = 5

[[assert]]
what     = "S"
measure  = "success"
of       = "high"
over     = "on"
at_least = 0.9
"#;

fn problems(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    Scenario::read("x.toml", &GOOD.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn a_file_says_it_all() {
    let scenario = Scenario::read("x.toml", GOOD).unwrap();
    let phases = |pace| scenario.timeline.stretches(pace).len();
    assert_eq!((phases(Pace::Virtual), phases(Pace::Real)), (7, 5));
    let seconds = |from, until| Duration::from_secs(from)..Duration::from_secs(until);
    assert_eq!(scenario.timeline.during("on", Pace::Real), [seconds(2, 4), seconds(5, 7)]);
    let high = &scenario.classes[1];
    assert_eq!((high.name.as_str(), high.criticality), ("high", Criticality::Critical));
    let level = scenario.load_of(high).during("on");
    assert!((level.first - 0.4).abs() < 1e-9 && (level.last - 1.2).abs() < 1e-9);
    assert_eq!(scenario.traffic.patience, Duration::from_millis(200));
    assert_eq!(scenario.classes_called("critical"), [1]);
}

#[test]
fn every_problem_has_its_line() {
    assert_eq!(problems("workers = 10", "worker = 10"), "x.toml:8: `service` has no `workers`");
    assert_eq!(
        problems("timeout = \"200ms\"", "timeout = \"200ms\"\nretrys = 3"),
        "x.toml:15: unknown key `retrys` in `traffic`; it knows load, timeout, attempts, pause, patience"
    );
    assert_eq!(
        problems("slow   = 5", "slwo   = 5"),
        "x.toml:26: unknown key `slwo` in a fault; did you mean `slow`?"
    );
    assert_eq!(
        problems("workers = 10", "workers = \"ten\""),
        "x.toml:9: a whole number from 1 is wanted here, not the text \"ten\""
    );
    assert_eq!(
        problems("\"10ms\"", "10"),
        "x.toml:10: a length of time such as \"250ms\", \"20s\" or \"10min\" is wanted here, not the number 10"
    );
    assert_eq!(
        problems("calm = 0.5", "clam = 0.5"),
        "x.toml:13: the timeline has no phase `clam`; it has calm, on, off"
    );
    assert_eq!(
        problems("\"60%\"", "\"50%\""),
        "x.toml:16: the shares of the classes make 90.0000 %, not 100"
    );
    assert_eq!(
        problems("of       = \"high\"", "of = \"hihg\""),
        "x.toml:28: `hihg` is neither a class nor the criticality of one"
    );
    assert_eq!(
        problems("at_least = 0.9", ""),
        "x.toml:28: this needs a bound, either `at_least` or `at_most`"
    );
    assert!(
        problems("\"success\"", "\"succes\"")
            .starts_with("x.toml:30: `succes` is no measure; there are goodput,")
    );
    assert!(problems("id   =", "id   ").starts_with("x.toml:1: this is not TOML: "));
    assert!(problems("\"10s\"", "\"10.05s\"").contains("tenths of a second"));
}

#[test]
fn all_problems_are_told_at_once() {
    let text = GOOD.replace("workers = 10", "workers = 0").replace("slow   = 5", "slow = 1");
    let problems = Scenario::read("x.toml", &text).unwrap_err();
    assert_eq!(problems.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [9, 24]);
}
