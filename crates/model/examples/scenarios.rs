//! Every scenario's measures, naive and protected: `cargo run --release -p tidegate-model --example scenarios`.
//! A seed may be given. With two, every seed from one to the other is run protected, and what came out is shown from the
//! least to the most: `-- 1 8`. With a name after them, only scenarios whose names begin so: `-- 1 8 O2`.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::ops::RangeInclusive;

use tidegate_model::scenarios::{GAPS, Scenario, Variant, all};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let last: Option<u64> = arguments.next().and_then(|seed| seed.parse().ok());
    let name = arguments.next().unwrap_or_default();
    for scenario in all().iter().filter(|scenario| scenario.id.starts_with(&name)) {
        println!("\n{}  {}", scenario.id, scenario.what);
        match last {
            None => both_variants(scenario, first),
            Some(last) => many_seeds(scenario, first..=last),
        }
    }
}

fn both_variants(scenario: &Scenario, seed: u64) {
    let [naive, protected] = [Variant::Naive, Variant::Protected]
        .map(|variant| scenario.findings(variant, &scenario.run(variant, seed)));
    for ((check, naive), protected) in scenario.checks.iter().zip(naive).zip(protected) {
        let verdict = match (protected.holds(), is_gap(scenario, &check.what)) {
            (true, _) => "",
            (false, true) => "  a known gap",
            (false, false) => "  DOES NOT PASS",
        };
        let bound = check.pass.to_string();
        println!(
            "  naive {:>10.4}  protected {:>10.4}  {bound:<9} {}{verdict}",
            naive.value, protected.value, check.what
        );
    }
}

fn many_seeds(scenario: &Scenario, seeds: RangeInclusive<u64>) {
    let runs: Vec<_> = (seeds.map(|seed| scenario.run(Variant::Protected, seed)))
        .map(|record| scenario.findings(Variant::Protected, &record))
        .collect();
    for (number, check) in scenario.checks.iter().enumerate() {
        let values = || runs.iter().map(|findings| findings[number].value);
        let (least, most) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let failed = runs.iter().filter(|findings| !findings[number].holds()).count();
        let verdict = match (failed, is_gap(scenario, &check.what)) {
            (0, _) => String::new(),
            (failed, true) => format!("  a known gap with {failed} of {} seeds", runs.len()),
            (failed, false) => format!("  DOES NOT PASS with {failed} of {} seeds", runs.len()),
        };
        let bound = check.pass.to_string();
        println!("  from {least:>10.4}  to {most:>10.4}  {bound:<9} {}{verdict}", &check.what);
    }
}

fn is_gap(scenario: &Scenario, what: &str) -> bool {
    GAPS.iter().any(|gap| gap.id == scenario.id && gap.what == what)
}
