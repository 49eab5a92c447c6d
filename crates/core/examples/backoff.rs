//! Which jitter makes the fewest attempts? Many callers want to change the same record, one wins at a time.
//!
//! `cargo run --release --example backoff -p tidegate-core`
//!
//! Each caller reads the record's version, then writes if the version is still the same, and otherwise
//! waits and starts again. The network takes about 10 ms either way. All of it is virtual time, so the
//! table is the same on every machine. The comparison follows Brooker, "Exponential Backoff And Jitter";
//! the back-off is our own code.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

#[path = "backoff/contention.rs"]
mod contention;

use contention::{Waiting, compete};

fn main() {
    let ways = Waiting::ALL;
    println!("Attempts until every caller has written once, and the seconds until the last one has:");
    print!("{:>8}", "callers");
    ways.iter().for_each(|way| print!(" {:>20}", way.name()));
    println!();
    for callers in (10..=150).step_by(20) {
        print!("{callers:>8}");
        for way in ways {
            let result = compete(callers, way);
            print!(" {:>12} {:>6.2}s", result.attempts, result.took.as_secs_f64());
        }
        println!();
    }
}
