//! Room for open files, made before it is needed.
//!
//! A process begins with a table for 256 open files, and the table doubles when it is full. In a process with threads,
//! whoever opens, connects or accepts then waits until every core has let go of the old one. On a machine with nothing to do
//! that took 7 to 31 ms; in a flood, where connections come by the thousand and cores have no time to let go, all
//! threads of a process stood still for 1.4 s. So whoever expects many connections makes room for them first.

use std::io;
use std::os::fd::{AsFd, RawFd};

use rustix::io::fcntl_dupfd_cloexec;

/// Has the system make the table large enough for so many open files. Where it does not, the table grows when it must.
pub fn make_room(count: usize) {
    let highest = RawFd::try_from(count.saturating_sub(1)).unwrap_or(RawFd::MAX);
    // A file with the highest number needs a table of that size; the table stays when the file is closed.
    drop(fcntl_dupfd_cloexec(io::stderr().as_fd(), highest));
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn room() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").expect("a process");
        let room = status.lines().find_map(|line| line.strip_prefix("FDSize:")).expect("its files");
        room.trim().parse().expect("a number")
    }

    #[test]
    fn room_is_made_and_stays() {
        make_room(900);
        assert!(room() >= 900, "{}", room());
    }

    #[test]
    fn more_than_the_system_allows_changes_nothing() {
        make_room(usize::MAX);
        assert!(room() < 1 << 30);
    }
}
