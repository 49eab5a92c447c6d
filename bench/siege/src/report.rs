//! The tables, in Markdown.

use tidegate_bench_lab::table::{circumstances, line};

use crate::attack::Attack;
use crate::honest::RATE;
use crate::plan::{Measured, Siege};

/// Everything a run found out, as `RESULTS.md` keeps it.
pub(crate) fn render(measured: &Measured) -> String {
    let mut text = String::new();
    circumstances(&mut text, &measured.versions, "the sieges", measured.others);
    line(&mut text, "### The honest caller\n");
    line(
        &mut text,
        &format!(
            "{RATE} requests a second for {} s beside each attack, from another address; answered within 5 s, and the p99 from when a request was due. Memory is the gateway's at the end, while the attack goes on.\n",
            measured.length.as_secs()
        ),
    );
    line(&mut text, "| attack | tidegate | p99 | memory | nginx | p99 | memory |");
    line(&mut text, "|---|---:|---:|---:|---:|---:|---:|");
    for attack in Attack::ALL {
        let cells: String = ["tidegate", "nginx"].map(|name| cells(measured.of(attack, name))).concat();
        line(&mut text, &format!("| {} |{cells}", attack.title()));
    }
    line(&mut text, "\n### Bars\n");
    line(&mut text, "| promise of tidegate | bar | measured | verdict |");
    line(&mut text, "|---|---:|---:|---|");
    for bar in measured.bars() {
        line(&mut text, &bar.row());
    }
    text
}

fn cells(siege: Option<&Siege>) -> String {
    let Some(siege) = siege else { return " – | – | – |".to_owned() };
    let (share, p99) = (siege.outcome.share() * 100.0, siege.outcome.percentile(99));
    let p99 = if p99.is_finite() { format!("{p99:.0} ms") } else { "never".to_owned() };
    format!(" {share:.1} % | {p99} | {} MiB |", siege.resident >> 20)
}
