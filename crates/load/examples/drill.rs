//! Plays a scenario over real sockets, without protection or to a gateway that a program of yours starts.
//!
//! ```sh
//! cargo run --release -p tidegate-load --example drill -- scenarios/o1_step.toml
//! cargo run --release -p tidegate-load --example drill -- scenarios/o1_step.toml target/release/tidegate run -c
//! ```
//!
//! The program is given a file with the scenario's policy as its last word, and says `serving ADDRESS` when it is ready.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use tidegate_load::drill::Drill;
use tidegate_scenario::{Scenario, Variant};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (file, gateway) = words.split_first().ok_or("write the name of a scenario")?;
    let drill = Drill::prepare(Scenario::read(file, &fs::read_to_string(file)?)?)?;
    let mut page = std::io::stdout().lock();
    let Some((program, arguments)) = gateway.split_first() else {
        let service = drill.service();
        write!(page, "{}", drill.run(service, None)?.table(Variant::Naive))?;
        return Ok(());
    };
    let policy = std::env::temp_dir().join(format!("drill-{}.toml", std::process::id()));
    fs::write(&policy, drill.policy().ok_or("the scenario has no policy")?)?;
    let mut command = Command::new(program);
    let mut gateway = Running(command.args(arguments).arg(&policy).stderr(Stdio::piped()).spawn()?);
    let said = BufReader::new(gateway.0.stderr.take().ok_or("it says nothing")?);
    let serving = said.lines().map_while(Result::ok).find_map(|line| {
        eprintln!("{line}");
        line.rsplit_once("serving ").map(|(_, address)| address.to_owned())
    });
    fs::remove_file(&policy)?;
    let address = serving.ok_or("it never served")?.parse()?;
    write!(page, "{}", drill.run(address, None)?.table(Variant::Protected))?;
    Ok(())
}

/// Ends with us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
