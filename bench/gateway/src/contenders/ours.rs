//! Tidegate.

use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_bench_lab::programs::Between;

use crate::case::TABLE;
use crate::contender::{Contender, Setup};
use crate::footprint::CONNECTIONS;

pub(crate) const NAME: &str = "tidegate";

pub(crate) struct Ours {
    program: PathBuf,
}

impl Ours {
    pub(crate) fn new(program: &Path) -> Self {
        Self { program: program.to_owned() }
    }
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--version");
        command
    }

    fn configuration(&self, setup: &Setup<'_>) -> (&'static str, String) {
        let Setup { between: Between { listen, upstream }, quota, .. } = setup;
        let rule = quota.map_or(String::new(), |quota| {
            format!(
                "[rule.per_key]\n\
                 key = \"header:x-api-key\"\n\
                 quota = \"{}/s\"\n\
                 burst = {}\n\
                 max_keys = {TABLE}\n",
                quota.per_second, quota.burst
            )
        });
        // All connections of the measurement come from one address, so the bound for one is raised.
        let policy = format!(
            "upstream = \"http://{upstream}\"\n\
             \n\
             [server]\n\
             workers = 1\n\
             \n\
             [[listener]]\n\
             bind = \"{listen}\"\n\
             max_connections_per_address = {}\n\
             \n\
             {rule}",
            2 * CONNECTIONS
        );
        ("tidegate.toml", policy)
    }

    fn command(&self, file: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["run", "-c"]).arg(file);
        command
    }
}
