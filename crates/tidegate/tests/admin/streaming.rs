//! The stream of frames.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use tidegate::admin::Station;

use crate::http::{connect, connect_from, get};
use crate::published::assert_is;
use crate::station::Running;

/// Somebody who listens.
pub(crate) struct Frames(BufReader<TcpStream>);

impl Frames {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::over(connect(address), address)
    }

    fn over(mut stream: TcpStream, address: SocketAddr) -> Self {
        write!(stream, "GET /api/v1/stream HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    /// The next frame; none when the stream has ended.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
            if line == "0\r\n" {
                return None;
            }
        }
    }
}

#[test]
fn frames_come_at_once_and_then_every_second_until_it_drains() {
    let running = Running::start();
    let mut frames = Frames::open(running.address());
    let first = frames.next().unwrap();
    assert_is("Status", &first);
    assert_is("Status", &frames.next().unwrap());
    running.station.drain();
    let rest: Vec<Value> = std::iter::from_fn(|| frames.next()).collect();
    assert_eq!(rest.last().unwrap()["stage"], "draining");
    let answer = get(running.address(), "/api/v1/stream");
    assert_eq!((answer.status, answer.detail().as_str()), (503, "it drains, and has no more to tell"));
}

#[test]
fn no_more_than_32_listen_and_whoever_leaves_makes_room() {
    let running = Running::start();
    let mut listening: Vec<Frames> = (0..24).map(|_| Frames::open(running.address())).collect();
    for frames in &mut listening {
        assert!(frames.next().is_some());
    }
    let answer = get(running.address(), "/api/v1/stream");
    assert_eq!((answer.status, answer.detail().as_str()), (503, "24 listen already from this address"));
    let from = |_| Frames::over(connect_from([127, 0, 0, 2], running.address()), running.address());
    listening.extend((24..32).map(from));
    for frames in &mut listening {
        assert!(frames.next().is_some());
    }
    let answer = get(running.address(), "/api/v1/stream");
    assert_eq!((answer.status, answer.detail().as_str()), (503, "32 listen already"));
    listening.clear();
    // That somebody has left is noticed with the frames that follow.
    let has_room = |_| {
        let mut frames = Frames::open(running.address());
        frames.next().is_some()
    };
    assert!((0..1000).any(has_room));
}

#[test]
fn stopping_ends_what_listens() {
    let running = Running::start();
    let mut frames = Frames::open(running.address());
    assert!(frames.next().is_some());
    let address = running.address();
    running.admin.stop();
    assert!(frames.next().is_none());
    assert!(TcpStream::connect(address).is_err());
}
