//! A scenario from its file to its findings, over real sockets.

use tidegate_load::drill::Drill;
use tidegate_scenario::{Scenario, Variant};

/// Half of what the service can do; then it is gone, and callers try again; then half again.
const RESTART: &str = r#"
id   = "X"
what = "a service that is gone for a second"
timeline = [
    { phase = "before", length = "1s" },
    { phase = "down", length = "1s" },
    { phase = "after", length = "2s" },
]

[service]
workers = 4
work    = { exact = "10ms" }

[traffic]
load     = { before = 0.5, down = 0.5, after = 0.5 }
timeout  = "500ms"
attempts = 3
pause    = "50ms"
patience = "1s"

[class.low]
share       = "50%"
criticality = "sheddable"

[class.high]
share       = "50%"
criticality = "critical_plus"
callers     = 1

[[fault]]
during = "down"
stop   = true

[[assert]]
what     = "S before"
measure  = "success"
of       = ["low", "critical_plus"]
over     = "before"
until    = "800ms"
at_least = 0.95

[[assert]]
what    = "S while it is gone"
measure = "success"
over    = "down"
from    = "100ms"
until   = "700ms"
at_most = 0

[[assert]]
what     = "G afterwards"
measure  = "goodput"
over     = "after"
from     = "500ms"
at_least = 0.4

[[assert]]
what    = "A afterwards"
measure = "attempts"
over    = "after"
from    = "500ms"
at_most = 1.2

[[assert]]
what    = "what reaches it while it is gone"
measure = "let_in"
over    = "down"
from    = "100ms"
at_most = 0
"#;

#[test]
fn a_scenario_is_played_and_judged() {
    let scenario = Scenario::read("restart.toml", RESTART).unwrap();
    let drill = Drill::prepare(scenario).unwrap();
    let service = drill.service();
    let outcome = drill.run(service, None).unwrap();
    for finding in outcome.findings(Variant::Protected) {
        assert!(finding.holds(), "{finding}\n{}", outcome.table(Variant::Protected));
    }
    // 200 requests come a second; those of the second in which nobody is there are tried three times.
    let [requests, attempts] = [outcome.report.total.due(), outcome.report.attempts.len() as u64];
    assert!((680..920).contains(&requests), "{requests}");
    assert!((250..500).contains(&(attempts - requests)), "{attempts} for {requests}");
    let json = outcome.to_json(Variant::Naive);
    assert_eq!((&json["scenario"], &json["variant"]), (&"X".into(), &"naive".into()));
    assert_eq!(json["findings"].as_array().unwrap().len(), 5);
}
