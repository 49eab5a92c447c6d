//! What systemd is told and what it hands over. Without systemd all of it does nothing.

use std::net::TcpListener;

use listenfd::ListenFd;
use sd_notify::{NotifyState, notify};

/// The sockets it has bound for us (socket activation).
pub(super) fn sockets() -> Vec<TcpListener> {
    let mut given = ListenFd::from_env();
    (0..given.len()).filter_map(|index| given.take_tcp_listener(index).ok().flatten()).collect()
}

/// We serve.
pub(super) fn ready() {
    notify(&[NotifyState::Ready]).ok();
}

/// We are still there.
pub(super) fn alive() {
    notify(&[NotifyState::Watchdog]).ok();
}

/// We end.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]).ok();
}
