//! The tables, in Markdown.

use tidegate_bench_lab::table::line;

use crate::contender::Mode;
use crate::contenders::{bare_count, clock as bare, failsafe, ours, recloser, tower_resilience};
use crate::memory::MILLION;
use crate::plan::{Keyed, Measured};
use crate::rounds::{Cache, Rounds};

const PEERS: [&str; 5] = [
    "governor as shipped",
    "governor, our hasher",
    "throttlecrab",
    "limitador",
    "pingora-limits (estimates)",
];

/// Everything a run found out, as `RESULTS.md` keeps it.
pub(crate) fn render(measured: &Measured) -> String {
    let mut text = String::new();
    for mode in [Mode::Admitting, Mode::Refusing] {
        let rows: Vec<&Keyed> = measured.keyed.iter().filter(|row| row.mode == mode).collect();
        if !rows.is_empty() {
            keyed(&mut text, mode, &rows, measured.rounds);
        }
    }
    cold(&mut text, measured);
    clock(&mut text, measured);
    unkeyed(&mut text, measured);
    mechanisms(&mut text, measured);
    held(&mut text, measured);
    allocations(&mut text, measured);
    bars(&mut text, measured);
    text
}

fn keyed(text: &mut String, mode: Mode, rows: &[&Keyed], (few, many): (usize, usize)) {
    line(text, &format!("### Keyed decisions, {}\n", mode.name()));
    line(
        text,
        &format!(
            "Nanoseconds per decision, reading the clock included: processor time for one thread, time on the wall for two; median of {few} interleaved rounds, of {many} for a million keys, over several fillings of the tables. \
             In brackets how many times as long as ours of the same round: median, and the quartiles.\n"
        ),
    );
    let names = PEERS.join(" | ");
    line(text, &format!("| keys | spread | threads | {} | {names} |", ours::NAME));
    line(text, &format!("|---:|---|---:|---:|{}", "---:|".repeat(PEERS.len())));
    for row in rows {
        let peers: String =
            PEERS.iter().map(|peer| format!(" {} |", beside(&row.rounds, peer, Cache::Warm))).collect();
        let (keys, ours) = (grouped(row.keys), row.rounds.nanos(ours::NAME, Cache::Warm).median);
        let spread = spread_of(row);
        line(text, &format!("| {keys} | {spread} | {} | {ours:.0} |{peers}", row.threads));
    }
    line(text, "");
}

/// The million keys once more, right after all other contenders had their turn.
fn cold(text: &mut String, measured: &Measured) {
    line(text, "### A million keys with a cold cache\n");
    line(text, &format!("| mode | spread | threads | {} | {} | {} |", ours::NAME, PEERS[0], PEERS[1]));
    line(text, "|---|---|---:|---:|---:|---:|");
    for row in measured.keyed.iter().filter(|row| row.keys == MILLION) {
        let ours = row.rounds.nanos(ours::NAME, Cache::Cold).median;
        let [shipped, hasher] = [PEERS[0], PEERS[1]].map(|peer| beside(&row.rounds, peer, Cache::Cold));
        let (mode, spread) = (row.mode.name(), row.spread.name());
        line(text, &format!("| {mode} | {spread} | {} | {ours:.0} | {shipped} | {hasher} |", row.threads));
    }
    line(text, "");
}

/// A peer's time and how many times ours it is, or nothing if it did not take part.
fn beside(rounds: &Rounds, peer: &str, cache: Cache) -> String {
    let nanos = rounds.nanos(peer, cache).median;
    if nanos.is_nan() {
        return String::new();
    }
    format!("{nanos:.0} ({})", rounds.ratio(peer, ours::NAME, cache).spanned(2, "×"))
}

/// A single key can be spread in one way only.
fn spread_of(row: &Keyed) -> &'static str {
    if row.keys == 1 { "one key" } else { row.spread.name() }
}

fn clock(text: &mut String, measured: &Measured) {
    line(text, "### Ours with and without the clock, ns per decision\n");
    line(
        text,
        "The last two columns are how many times as long as ours not touched, the way the gateway asks.\n",
    );
    let [shipped, hasher] = [PEERS[0], PEERS[1]];
    line(
        text,
        &format!(
            "| mode | keys | spread | threads | touched, then the clock read | not touched | told the moment | clock alone | {shipped} | {hasher} |"
        ),
    );
    line(text, "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|");
    for row in &measured.keyed {
        let nanos = |name| row.rounds.nanos(name, Cache::Warm).median;
        let names = [ours::NAME, ours::UNTOUCHED, ours::TOLD, bare::NAME];
        let times = |peer| row.rounds.ratio(peer, ours::UNTOUCHED, Cache::Warm).median;
        let figures = names.map(|name| format!(" {:.1} |", nanos(name))).concat()
            + &[shipped, hasher].map(|peer| format!(" {:.2}× |", times(peer))).concat();
        let (mode, keys, spread) = (row.mode.name(), grouped(row.keys), spread_of(row));
        line(text, &format!("| {mode} | {keys} | {spread} | {} |{figures}", row.threads));
    }
    line(text, "");
}

fn unkeyed(text: &mut String, measured: &Measured) {
    line(text, "### Decisions without keys, ns beyond the clock\n");
    line(text, &format!("| mode | threads | {} | governor direct | clock alone |", ours::UNKEYED));
    line(text, "|---|---:|---:|---:|---:|");
    for row in &measured.unkeyed {
        let beyond = |name| row.rounds.beyond(name, "clock alone", Cache::Warm).spanned(2, "");
        let alone = row.rounds.nanos("clock alone", Cache::Warm).median;
        let (ours, theirs) = (beyond(ours::UNKEYED), beyond("governor direct"));
        line(text, &format!("| {} | {} | {ours} | {theirs} | {alone:.1} |", row.mode.name(), row.threads));
    }
    line(text, "");
}

fn mechanisms(text: &mut String, measured: &Measured) {
    let peers = [bare_count::NAME, failsafe::NAME, recloser::NAME, tower_resilience::NAME];
    line(text, "### Adaptive mechanisms\n");
    line(
        text,
        "Nanoseconds, with the clock read as often as each wants to know the moment. A peer without the counterpart has no number.\n",
    );
    let names = peers.join(" | ");
    line(
        text,
        &format!(
            "| what | threads | {} beyond the clock | reading the clock | told the moment | clock alone | {names} |",
            ours::NAME
        ),
    );
    line(text, &format!("|---|---:|---:|---:|---:|---:|{}", "---:|".repeat(peers.len())));
    for row in &measured.mechanisms {
        let nanos = |name| row.rounds.nanos(name, Cache::Warm).median;
        let beyond = row.rounds.beyond(ours::NAME, bare::NAME, Cache::Warm).spanned(2, "");
        let known = |nanos: f64| if nanos.is_nan() { String::new() } else { format!("{nanos:.1}") };
        let [read, told, alone] = [ours::NAME, ours::TOLD, bare::NAME].map(|name| known(nanos(name)));
        let peers: String =
            peers.iter().map(|peer| format!(" {} |", beside(&row.rounds, peer, Cache::Warm))).collect();
        line(
            text,
            &format!("| {} | {} | {beyond} | {read} | {told} | {alone} |{peers}", row.what, row.threads),
        );
    }
    line(text, "");
}

fn held(text: &mut String, measured: &Measured) {
    line(text, "### Bytes a key\n");
    line(text, "| contender | keys | bytes a key |");
    line(text, "|---|---:|---:|");
    for held in &measured.held {
        line(text, &format!("| {} | {} | {:.1} |", held.name, grouped(held.keys), held.bytes_per_key));
    }
    line(text, "");
}

fn allocations(text: &mut String, measured: &Measured) {
    line(text, "### Allocations of ours\n");
    line(text, "| kind of decision | decisions | allocations |");
    line(text, "|---|---:|---:|");
    for counted in &measured.allocations {
        let decisions = grouped(counted.decisions);
        line(text, &format!("| {} | {decisions} | {} |", counted.kind, counted.allocations));
    }
    line(text, "");
}

fn bars(text: &mut String, measured: &Measured) {
    line(text, "### Bars\n");
    line(text, "Ours with a key touched before the clock is read, as whoever is told the moment can ask.\n");
    line(text, "| promise | bar | measured | verdict |");
    line(text, "|---|---:|---:|---|");
    for bar in measured.bars() {
        line(text, &bar.row());
    }
    let verdict = if measured.allocates_nothing() { "met" } else { "**missed**" };
    let sum: u64 = measured.allocations.iter().map(|counted| counted.allocations).sum();
    line(text, &format!("| no decision allocates | 0 | {sum} | {verdict} |"));
}

/// `1000000` as `1 000 000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let grouped: Vec<String> = [1, 999, 1_000, 1_000_000].into_iter().map(grouped).collect();
        assert_eq!(grouped, ["1", "999", "1 000", "1 000 000"]);
    }
}
