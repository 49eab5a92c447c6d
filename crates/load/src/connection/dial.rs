//! Connections that are there at once, where the server is on this machine.
//!
//! A connection to the same machine is there when the call that asks for it returns, but a runtime hears of that only when it
//! next looks, after all tasks that are ready. When thousands are, that takes a fifth of a second, which is all the
//! patience that callers have: every request is then sent as it is given up, and needs a new connection the next
//! time. Callers have machines of their own and need not wait for each other. So the system is asked directly, and
//! the runtime only waits for what is not there yet.

use std::io;
use std::net::{SocketAddr, TcpStream as Blocking};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use tokio::net::TcpStream;

/// Connects to the first of the addresses that takes it.
pub(super) async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut problem = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match dial_one(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

async fn dial_one(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_tcp_nodelay(&socket, true)?;
    // Callers of many machines have ports enough. Ours come from one, which keeps the port of a connection that is closed
    // in the usual way for a minute: if ten thousand a second give up, three seconds of it take all 28 000.
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    let mut asked = connect(&socket, address);
    if asked == Err(Errno::INPROGRESS) {
        // The answer of this machine lies there when the first call returns; the second one sees it.
        asked = connect(&socket, address);
    }
    let is_there = match asked {
        Ok(()) | Err(Errno::ISCONN) => true,
        Err(Errno::ALREADY) => false,
        Err(error) => return Err(error.into()),
    };
    let stream = TcpStream::from_std(Blocking::from(socket))?;
    if !is_there {
        stream.writable().await?;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test]
    async fn a_connection_on_this_machine_is_there_without_waiting() {
        let (_listener, address) = listener();
        let asked_once = pin!(dial(&[address])).poll(&mut Context::from_waker(Waker::noop()));
        assert!(asked_once.is_ready());
    }

    #[tokio::test]
    async fn the_next_address_is_tried() {
        let (closed, gone) = listener();
        drop(closed);
        let (_listener, address) = listener();
        let stream = dial(&[gone, address]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert_eq!(dial(&[gone]).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(dial(&[]).await.is_err());
    }
}
