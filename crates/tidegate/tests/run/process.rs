//! Runs of the binary that need more than a policy: variables, other ways to be started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::gateway::support::lines::Lines;

pub const BINARY: &str = env!("CARGO_BIN_EXE_tidegate");

/// A folder with files, removed at the end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn with(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("run-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `tidegate run` in this folder, with no other policy in sight.
    pub fn run(&self, words: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.arg("run").args(words);
        self.place(&mut command);
        command
    }

    /// A shell that is to become the binary, called `"$@"`.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", BINARY, "run"]);
        self.place(&mut command);
        command
    }

    fn place(&self, command: &mut Command) {
        command.current_dir(&self.0).env("XDG_CONFIG_HOME", &self.0).env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::null());
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// How a run ended that must end by itself: its exit code and what it said.
pub fn ended(mut command: Command) -> (i32, String) {
    let mut process = Process::follow(command.stderr(Stdio::piped()));
    let code = process.wait().code().expect("it ends by itself");
    (code, process.errors.all().join("\n"))
}

/// A run that is killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pub errors: Lines,
}

impl Process {
    pub fn follow(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
        let errors = Lines::follow(child.stderr.take().unwrap());
        Self { child, errors }
    }

    /// Waits until it serves; gives the line in which it says so.
    pub fn introduction(&self) -> String {
        let line = self.errors.find(|line| line.contains(" in force, "));
        line.unwrap_or_else(|| panic!("not ready: {:#?}", self.errors.so_far()))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.errors.all();
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
