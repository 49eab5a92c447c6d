//! Every scenario's measures, naive and protected: `cargo run --release -p tidegate-model --example scenarios`.
//! A seed may be given.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use tidegate_model::scenarios::{ALL, GAPS, Variant};

fn main() {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for scenario in ALL {
        println!("\n{}  {}", scenario.id, scenario.what);
        let [naive, protected] = [Variant::Naive, Variant::Protected]
            .map(|variant| scenario.findings(variant, &scenario.run(variant, seed)));
        for ((check, naive), protected) in scenario.checks.iter().zip(naive).zip(protected) {
            let is_gap = GAPS.iter().any(|gap| gap.id == scenario.id && gap.what == check.what);
            let verdict = match (protected.holds(), is_gap) {
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
}
