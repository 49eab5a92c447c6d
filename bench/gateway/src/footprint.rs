//! What a contender takes before it has done anything: memory, memory for idle connections, time to start.

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;

use tidegate_bench_lab::cores::Cores;
use tidegate_bench_lab::figures::Figure;
use tidegate_bench_lab::http::Connection;

use crate::case::Case;
use crate::contender::Contender;
use crate::rounds::Runner;

/// Callers' connections that are opened, used once and left open.
pub(crate) const CONNECTIONS: usize = 2_000;

/// What one contender takes.
pub(crate) struct Footprint {
    pub(crate) name: &'static str,
    /// Milliseconds from being started to the first answer.
    pub(crate) start: Figure,
    /// Resident bytes after that answer, without and with a quota for each key.
    pub(crate) idle: [(Case, u64); 2],
    /// Further resident bytes for each idle connection.
    pub(crate) connection: f64,
}

impl Footprint {
    /// Starts the contender `starts` times for each of two cases and looks at it.
    pub(crate) fn of(
        contender: &dyn Contender,
        upstream: SocketAddr,
        cores: Cores,
        directory: &Path,
        starts: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let start = |case| Runner::start(contender, case, upstream, cores, directory);
        let mut millis = Vec::new();
        for _ in 0..starts {
            millis.push(start(Case::PerKey)?.1 * 1e3);
        }
        let keyed = start(Case::PerKey)?.0.program.resident()?;
        let (plain, _) = start(Case::Plain)?;
        let idle = plain.program.resident()?;
        let connections = open(plain.address)?;
        let full = plain.program.resident()?;
        drop(connections);
        Ok(Self {
            name: contender.name(),
            start: Figure::of(millis),
            idle: [(Case::Plain, idle), (Case::PerKey, keyed)],
            connection: full.saturating_sub(idle) as f64 / CONNECTIONS as f64,
        })
    }
}

/// Opens the connections, one request on each.
fn open(address: SocketAddr) -> Result<Vec<Connection>, Box<dyn Error>> {
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(address)?;
        let status = connection.get("idle")?.status;
        if status != 200 {
            return Err(format!("connection {} was answered {status}", connections.len() + 1).into());
        }
        connections.push(connection);
    }
    Ok(connections)
}
