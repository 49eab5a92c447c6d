//! The tables, in Markdown.

use tidegate_bench_lab::table::{circumstances, line};

use crate::case::Case;
use crate::contenders::{ENVOY, NGINX, OURS};
use crate::footprint::CONNECTIONS;
use crate::latency::{self, DIRECT};
use crate::plan::Measured;
use crate::rounds::Turn;

/// Everything a run found out, as `RESULTS.md` keeps it.
pub(crate) fn render(measured: &Measured) -> String {
    let mut text = String::new();
    circumstances(&mut text, &measured.versions, "the rounds", measured.others);
    for case in Case::ALL {
        full_load(&mut text, measured, case);
    }
    moderate(&mut text, measured);
    footprints(&mut text, measured);
    bars(&mut text, measured);
    text
}

fn full_load(text: &mut String, measured: &Measured, case: Case) {
    line(text, &format!("### {}\n", case.title()));
    if case == Case::Plain {
        line(
            text,
            &format!(
                "Processor time of all processes of a gateway for one request, in microseconds, and how many times a peer's of the same round; median of {} interleaved rounds, and the quartiles.\n",
                measured.counts.0
            ),
        );
    }
    line(text, "| gateway | µs a request | times nginx | times Envoy | requests a second | of its core |");
    line(text, "|---|---:|---:|---:|---:|---:|");
    for &name in &measured.contenders {
        let figure = |value: fn(&Turn) -> f64| measured.rounds.figure(case, name, value);
        let times = |base| {
            if base == name {
                return String::new();
            }
            measured.rounds.ratio((case, name), (case, base)).spanned(2, "")
        };
        let (micros, rate) =
            (figure(|turn| turn.micros).spanned(1, ""), figure(|turn| turn.requests_per_second));
        let (nginx, envoy, busy) = (times(NGINX), times(ENVOY), figure(|turn| turn.busy).median * 100.0);
        line(text, &format!("| {name} | {micros} | {nginx} | {envoy} | {:.0} | {busy:.0} % |", rate.median));
    }
    line(text, "");
}

fn moderate(text: &mut String, measured: &Measured) {
    line(text, &format!("### Latency at {} requests a second\n", latency::RATE));
    line(
        text,
        &format!(
            "Microseconds from when a request was due to its answer, median of {} rounds; *added* is the p99 beyond the upstream's own of the same round.\n",
            measured.counts.1
        ),
    );
    line(text, &format!("{}\n", measured.patience.told()));
    line(text, "| case | gateway | p50 | p99 | added p99 |");
    line(text, "|---|---|---:|---:|---:|");
    for case in latency::CASES {
        for &name in measured.contenders.iter().chain([&DIRECT]) {
            let (p50, p99) = (measured.latencies.p50(case, name), measured.latencies.p99(case, name));
            let added = if name == DIRECT {
                String::new()
            } else {
                measured.latencies.added(case, name, DIRECT).spanned(0, "")
            };
            let (case, p50, p99) = (case.short(), p50.spanned(0, ""), p99.spanned(0, ""));
            line(text, &format!("| {case} | {name} | {p50} | {p99} | {added} |"));
        }
    }
    line(text, "");
}

fn footprints(text: &mut String, measured: &Measured) {
    line(text, "### Memory and start\n");
    line(text, &format!("Resident memory of all processes; {CONNECTIONS} idle connections.\n"));
    line(
        text,
        "| gateway | idle, plain | loaded, plain | idle, quota per key | loaded, quota per key | an idle connection | start to first answer |",
    );
    line(text, "|---|---:|---:|---:|---:|---:|---:|");
    for footprint in &measured.footprints {
        let name = footprint.name;
        let memory: String = footprint
            .idle
            .iter()
            .map(|&(case, idle)| {
                let loaded = measured.rounds.figure(case, name, |turn| turn.resident).median;
                format!(" {:.1} MiB | {:.1} MiB |", mebibytes(idle as f64), mebibytes(loaded))
            })
            .collect();
        let (connection, start) = (footprint.connection / 1024.0, footprint.start.spanned(1, ""));
        line(text, &format!("| {name} |{memory} {connection:.1} KiB | {start} ms |"));
    }
    line(text, "");
}

fn bars(text: &mut String, measured: &Measured) {
    let bars = measured.bars();
    if bars.is_empty() {
        return;
    }
    line(text, "### Bars\n");
    line(text, &format!("| promise of {OURS} | bar | measured | verdict |"));
    line(text, "|---|---:|---:|---|");
    for bar in bars {
        line(text, &bar.row());
    }
}

fn mebibytes(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}
