//! Callers: the heaviest, and what limits of their own mean.

use axum::extract::{RawQuery, State};
use serde_json::{Map, Value, json};
use tidegate_core::Cost;
use tidegate_core::heavy::{Heavy, Ranking};
use tidegate_policy::policy::Limit;
use tidegate_policy::problem::{File, Severity};
use tidegate_policy::record::cost_json;
use tidegate_policy::{Format, Source};

use super::answer::{Json, Refusal};
use super::input::{Query, either};
use super::serve::Shared;
use super::station::PolicyText;

/// The length of the gate's lists.
const MOST_CALLERS: usize = 32;

/// `GET /api/v1/callers?sort=refused&n=20`
pub(super) async fn get(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json, Refusal> {
    let query = Query::read(query.as_deref(), &["sort", "n"])?;
    let most = query.count("n", 20, MOST_CALLERS)?;
    let (sort, ranking) = match query.given("sort") {
        None | Some("refused") => ("refused", Ranking::Refusals),
        Some("cost") => ("cost", Ranking::Cost),
        Some("shadow") => ("shadow", Ranking::ShadowRefusals),
        Some(other) => {
            let words = either(&["refused", "cost", "shadow"]);
            return Err(Refusal::bad(format!("`sort` is `{other}`, but must be {words}")));
        }
    };
    let callers = shared.station.gate().callers(ranking, most);
    let callers: Vec<Value> = callers.iter().map(|heavy| heavy_json(heavy, ranking)).collect();
    Ok(Json::ok(json!({ "v": 1, "sort": sort, "callers": callers })))
}

fn heavy_json(heavy: &Heavy, ranking: Ranking) -> Value {
    let counted = |count: u64| match ranking {
        Ranking::Cost => cost_json(Cost::from_micros(count)),
        Ranking::Refusals | Ranking::ShadowRefusals => count.into(),
    };
    json!({
        "caller": heavy.name.as_str(),
        "fingerprint": format!("{:016x}", heavy.key.bits()),
        "weight": counted(heavy.weight),
        "error": counted(heavy.error),
    })
}

/// The rule's limit with other numbers: what a table of callers with this one entry would make of the policy. So an
/// override means the same here as there, and its mistakes are told in the same words.
pub(super) fn limit(
    policy: &PolicyText,
    caller: &str,
    rule: &str,
    numbers: Map<String, Value>,
) -> Result<Limit, Refusal> {
    let entry = json!({ caller: { "overrides": { rule: numbers } } }).to_string();
    let callers = Source { name: "override", text: entry.as_bytes(), format: Format::Yaml };
    let source = Source { name: &policy.name, text: &policy.text, format: policy.format };
    match tidegate_policy::read(source, Some(callers)) {
        Ok((read, _)) => {
            let found = read.callers.get(caller).and_then(|caller| caller.overrides.get(rule));
            found.cloned().ok_or_else(|| Refusal::bad("these numbers make no limit"))
        }
        Err(problems) => {
            let of_these = problems
                .iter()
                .filter(|problem| problem.severity() == Severity::Error && problem.file == File::Callers);
            let told: Vec<String> = of_these.map(told).collect();
            let detail =
                if told.is_empty() { "the policy itself cannot be read".to_owned() } else { told.join("; ") };
            Err(Refusal::bad(detail))
        }
    }
}

fn told(problem: &tidegate_policy::Problem) -> String {
    let advice = problem.label.as_ref().or(problem.help.as_ref());
    advice.map_or_else(|| problem.message.clone(), |advice| format!("{}: {advice}", problem.message))
}
