//! The tables, in Markdown.

use tidegate_bench_lab::table::{circumstances, line};
use tidegate_scenario::Bound;

use crate::bars::{self, OURS, SHOWN};
use crate::behind::Behind;
use crate::figures::{Figures, LEVELS};
use crate::plan::{Measured, Part};

/// Everything a run found out, as `RESULTS.md` keeps it.
pub(crate) fn render(measured: &Measured) -> String {
    let mut text = String::new();
    beginning(&mut text, measured);
    for part in &measured.plan.parts {
        scenario(&mut text, measured, part);
        if part.calm.is_some() {
            costs(&mut text, measured, part);
        }
    }
    bars(&mut text, measured);
    text
}

fn beginning(text: &mut String, measured: &Measured) {
    circumstances(text, &measured.versions, "the run", measured.others);
    line(text, &format!("{}\n", measured.rounds.told()));
    line(
        text,
        "Shares are of 1; a median where there are several plays. The criticality of a request is known to",
    );
    line(text, "everybody and looked at by tidegate alone.\n");
}

fn scenario(text: &mut String, measured: &Measured, part: &Part) {
    let (id, what) = (&part.scenario.id, &part.scenario.what);
    let from = match part.from.as_secs() {
        0 => String::new(),
        1 => ", from a second after it began".to_owned(),
        seconds => format!(", from {seconds} seconds after it began"),
    };
    line(text, &format!("### {id}: {what}\n"));
    let over = part.over.join("* and *");
    line(text, &format!("In phase *{over}*{from}.\n"));
    let levels = LEVELS.map(|level| format!(" {level} |")).concat();
    line(
        text,
        &format!(
            "| behind | plays | goodput | critical and above |{levels} p99 ÷ unloaded | back after | not sent |"
        ),
    );
    line(text, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for behind in players(measured, part) {
        let figure = |value: fn(&Figures) -> f64| measured.rounds.figure(id, behind.name(), value).median;
        let plays = measured.rounds.of(id, behind.name()).count();
        let levels: String = (0..LEVELS.len())
            .map(|level| measured.rounds.figure(id, behind.name(), |figures| figures.levels[level]).median)
            .map(|level| format!(" {} |", number(level, 3)))
            .collect();
        let (title, goodput, critical) =
            (behind.title(), number(figure(|it| it.goodput), 2), number(figure(|it| it.critical), 4));
        let (p99, back) = (number(figure(|it| it.p99), 2), seconds(figure(|it| it.recovery)));
        let unsent = number(figure(|it| it.unsent), 4);
        line(
            text,
            &format!("| {title} | {plays} | {goodput} | {critical} |{levels} {p99} | {back} | {unsent} |"),
        );
    }
    line(text, "");
}

fn costs(text: &mut String, measured: &Measured, part: &Part) {
    let id = &part.scenario.id;
    line(text, "Processor time of all processes of the gateway, in microseconds.\n");
    line(text, "| gateway | a forwarded answer | a refusal | ratio |");
    line(text, "|---|---:|---:|---:|");
    for behind in players(measured, part) {
        let figure = |value: fn(&Figures) -> f64| measured.rounds.figure(id, behind.name(), value).median;
        let (forwarded, refused) = (figure(|it| it.cost.forwarded), figure(|it| it.cost.refused));
        let ratio = figure(|it| it.cost.refused / it.cost.forwarded);
        let title = behind.title();
        line(text, &format!("| {title} | {forwarded:.1} | {refused:.1} | {} |", number(ratio, 2)));
    }
    line(text, "");
}

fn bars(text: &mut String, measured: &Measured) {
    line(text, &format!("### Bars, for the worst play of {OURS}\n"));
    line(text, "The other columns are medians, as above.\n");
    let heads = SHOWN.map(|name| format!(" {name} |")).concat();
    line(text, &format!("| scenario | what it asks of {OURS} | bar |{heads} its worst play | verdict |"));
    line(text, "|---|---|---:|---:|---:|---:|---:|---:|---|");
    for bar in bars::of(&measured.rounds) {
        let bound = match bar.bound {
            Bound::AtLeast(bound) => format!("≥ {bound}"),
            Bound::AtMost(bound) => format!("≤ {bound}"),
        };
        let measured = bar.measured.map(|value| format!(" {} |", number(value, 4))).concat();
        let worst = number(bar.worst, 4);
        let verdict = if bar.is_met() { "met" } else { "**missed**" };
        let (scenario, what) = (&bar.scenario, &bar.what);
        line(text, &format!("| {scenario} | {what} | {bound} |{measured} {worst} | {verdict} |"));
    }
}

fn players<'a>(measured: &'a Measured, part: &'a Part) -> impl Iterator<Item = &'a Behind> {
    let plan = &measured.plan;
    plan.field.iter().filter(move |behind| plan.turns(part, behind) > 0)
}

/// A number, a dash where there is none, and a word for what never happened.
fn number(value: f64, decimals: usize) -> String {
    match value {
        value if value.is_nan() => "–".to_owned(),
        value if value.is_infinite() => "never".to_owned(),
        value => format!("{value:.decimals$}"),
    }
}

fn seconds(value: f64) -> String {
    if value.is_finite() { format!("{value:.1} s") } else { number(value, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_has_a_word() {
        assert_eq!([number(0.5, 2), number(f64::NAN, 2)], ["0.50", "–"]);
        assert_eq!([seconds(0.5), seconds(f64::INFINITY), seconds(f64::NAN)], ["0.5 s", "never", "–"]);
    }
}
