//! Callers that have left before anybody looked at them.
//!
//! Connections stand in line in the system until a worker accepts them, the oldest first. A worker that was kept from its
//! work for half a second, in a flood of ten thousand a second, finds five thousand of them, and their callers have
//! waited for 200 ms and are gone. To read each request, decide about it and write an answer takes 40 us, 200 ms in all:
//! by then those who came meanwhile have waited too long as well. So the answers go to nobody, although all are given.
//!
//! A look at the connection tells whether its caller has closed it, and takes less than a microsecond. Those who have
//! left are let go at once, and the line is as short as it should be before the next of its callers gives up.
//!
//! Who closes only its own direction and goes on listening is taken for gone too, as it is everywhere else in the gateway.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether the other side has closed the connection.
pub(crate) fn has_left(connection: &impl AsFd) -> bool {
    let mut looked = [PollFd::new(connection, PollFlags::RDHUP)];
    poll(&mut looked, Some(&Timespec::default())).is_ok_and(|changed| changed > 0)
}
