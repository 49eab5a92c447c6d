//! The real binary, from its start to its end.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

pub use rustix::process::Signal;
use rustix::process::{Pid, WaitOptions, kill_process, waitpid};

use super::client::Client;
use super::lines::Lines;
use super::message::Message;
use super::upstream::Upstream;

/// A gateway that serves. It is killed when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    process: Process,
    addresses: Vec<SocketAddr>,
    folder: Folder,
}

impl Gateway {
    /// With a policy, which listens on port 0.
    pub fn start(policy: &str) -> Self {
        Self::start_with(policy, &[])
    }

    /// With `listen`, `upstream` and the rest of the policy.
    pub fn before(upstream: &Upstream, rest: &str) -> Self {
        Self::start(&format!("listen = \"127.0.0.1:0\"\nupstream = \"{}\"\n{rest}", upstream.url()))
    }

    /// With a policy and other files beside it.
    pub fn start_with(policy: &str, files: &[(&str, &str)]) -> Self {
        Self::launch(Folder::with(policy, files), &["-c", POLICY], &[])
    }

    /// With a policy, and variables in its environment.
    pub fn start_among(variables: &[(&str, &str)], policy: &str) -> Self {
        Self::launch(Folder::with(policy, &[]), &["-c", POLICY], variables)
    }

    /// With a policy, behind a command of the shell that limits it.
    #[allow(dead_code, reason = "some tests need no limit")]
    pub fn start_limited(limit: &str, policy: &str) -> Self {
        let folder = Folder::with(policy, &[]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_tidegate")]);
        Self::launch_by(folder, command, &["-c", POLICY], &[])
    }

    /// With flags instead of a file.
    pub fn start_by_flags(flags: &[&str]) -> Self {
        Self::launch(Folder::with("", &[]), flags, &[])
    }

    fn launch(folder: Folder, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::launch_by(folder, Command::new(env!("CARGO_BIN_EXE_tidegate")), flags, variables)
    }

    fn launch_by(folder: Folder, command: Command, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let process = Process::run_by(command, &folder, flags, variables);
        let ready = process.errors.find(|line| line.contains(" tidegate: ") && line.contains("serving "));
        let ready = ready.unwrap_or_else(|| panic!("not ready: {:#?}", process.errors.so_far()));
        let (_, addresses) = ready.rsplit_once("serving ").unwrap();
        let addresses = addresses.split(", ").map(|address| address.parse().unwrap()).collect();
        Self { process, addresses, folder }
    }

    /// Where its first listener listens.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Where its listeners listen, in the order of the policy.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where its policy lies.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// What it says on its standard error.
    pub const fn errors(&self) -> &Lines {
        &self.process.errors
    }

    /// What it prints on its standard output.
    pub const fn output(&self) -> &Lines {
        &self.process.output
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// A new connection from another address of this machine.
    pub fn connect_from(&self, from: Ipv4Addr) -> Client {
        Client::connect_from(from, self.address())
    }

    /// A request without a body over a connection of its own.
    pub fn get(&self, target: &str, fields: &[(&str, &str)]) -> Message {
        self.connect().get(target, fields)
    }

    /// The statuses of some equal requests, one after another over one connection.
    pub fn statuses(&self, count: usize, target: &str, fields: &[(&str, &str)]) -> Vec<u16> {
        let mut client = self.connect();
        (0..count).map(|_| client.get(target, fields).status()).collect()
    }

    /// Writes another policy over the one it began with.
    pub fn rewrite(&self, policy: &str) {
        fs::write(self.folder.0.join(POLICY), policy).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.process_id(), signal).unwrap();
    }

    /// Does something while the gateway stands still, all of its threads.
    pub fn while_stopped(&self, something: impl FnOnce()) {
        self.signal(Signal::STOP);
        // A signal is only sent by then, and a worker may still be at work. The last thread to stop is reported.
        let (_, status) =
            waitpid(Some(self.process_id()), WaitOptions::UNTRACED).unwrap().expect("it is waited for");
        assert!(status.stopped(), "{status:?}");
        something();
        self.signal(Signal::CONT);
    }

    fn process_id(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap()
    }

    /// Waits for its end, which something must have caused.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait()
    }
}

/// Runs the binary with a policy it must refuse; gives its exit code and everything it said.
pub fn refused_to_start(policy: &str, files: &[(&str, &str)]) -> (i32, String) {
    let folder = Folder::with(policy, files);
    let mut process = Process::run(&folder, &["-c", POLICY], &[]);
    let code = process.wait().code().expect("it ends by itself");
    (code, process.errors.all().join("\n"))
}

/// The name a policy has in its folder.
const POLICY: &str = "tidegate.toml";

/// A run of the binary.
#[derive(Debug)]
struct Process {
    child: Child,
    errors: Lines,
    output: Lines,
}

impl Process {
    fn run(folder: &Folder, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::run_by(Command::new(env!("CARGO_BIN_EXE_tidegate")), folder, flags, variables)
    }

    fn run_by(mut command: Command, folder: &Folder, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        command.arg("run").args(flags).current_dir(&folder.0).envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let errors = Lines::follow(child.stderr.take().unwrap());
        let output = Lines::follow(child.stdout.take().unwrap());
        Self { child, errors, output }
    }

    fn wait(&mut self) -> ExitStatus {
        // Both pipes end with the process; one that goes on fails the test after a while.
        self.errors.all();
        self.output.all();
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

/// A folder of one gateway, removed with it.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn with(policy: &str, files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gateway-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [(POLICY, policy)].iter().chain(files) {
            fs::write(folder.join(name), text).unwrap();
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
    }
}
