//! What a service manager sees of it.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;

use crate::gateway::support::{Client, PATIENCE, Upstream};
use crate::process::{Folder, Process};

#[test]
fn it_tells_when_it_serves_and_when_it_ends() {
    let policy = "listen = \"127.0.0.1:0\"\nupstream = \"http://127.0.0.1:9\"\n";
    let folder = Folder::with(&[("tidegate.toml", policy)]);
    // The names of such sockets are short; the folder's may not be.
    let path = std::env::temp_dir().join(format!("tidegate-notify-{}", std::process::id()));
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = || {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).expect("it tells something");
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let until = |wanted: &str| {
        let mut all = String::new();
        while !all.contains(wanted) {
            all.push_str(&told());
        }
        all
    };
    let mut process = Process::follow(folder.run(&[]).env("NOTIFY_SOCKET", &path));
    assert_eq!(until("READY=1").lines().next(), Some("READY=1"), "nothing else comes first");
    process.signal(Signal::TERM);
    assert!(!until("STOPPING=1").contains("READY"));
    assert_eq!(process.wait().code(), Some(0));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn it_serves_the_socket_it_is_handed() {
    let upstream = Upstream::ok();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // Somebody is faster than the gateway: the socket keeps the connection until there is one.
    let mut early = Client::connect(address);
    let policy = format!("listen = \"{address}\"\nupstream = \"{}\"\n", upstream.url());
    let folder = Folder::with(&[("tidegate.toml", &policy)]);
    // Standard input is the one descriptor that can be handed over; the shell moves it to where it belongs.
    let mut command = folder.shell("exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"");
    let process = Process::follow(command.stdin(OwnedFd::from(socket)));
    drop(command);
    assert!(process.introduction().ends_with(&format!("serving {address}")));
    assert_eq!(early.get("/", &[]).status(), 200);
    assert_eq!(Client::connect(address).get("/", &[]).status(), 200);
}

#[test]
fn a_socket_that_no_listener_wants_is_told() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let policy = "listen = \"127.0.0.1:0\"\nupstream = \"http://127.0.0.1:9\"\n";
    let folder = Folder::with(&[("tidegate.toml", policy)]);
    let mut command = folder.shell("exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"");
    let process = Process::follow(command.stdin(OwnedFd::from(socket)));
    let wanted =
        format!("tidegate: no listener is on {address}, so the socket that was handed over for it is closed");
    assert!(process.errors.find(|line| line.ends_with(&wanted)).is_some(), "{:#?}", process.errors.so_far());
}
