use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// How many connections wait in the system until they are accepted.
const BACKLOG: i32 = 4096;

/// A socket for each worker on the same address.
///
/// Sockets that share a port are happy to share it with another process of the same user, and then each gets half
/// of the connections: the old process and the new one, say. So the port is first asked for alone.
pub(crate) fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    let alone = open(address, false)?;
    // With port 0 the system chooses; everybody must get the same.
    let address = alone.local_addr()?;
    drop(alone);
    (0..count).map(|_| open(address, true)).collect()
}

/// Whether an address could be listened on; nobody is accepted.
///
/// # Errors
/// When not, as the system says it.
pub fn can_bind(address: SocketAddr) -> io::Result<()> {
    bound(address, false).map(drop)
}

fn open(address: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    let socket = bound(address, is_shared)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn bound(address: SocketAddr, is_shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // `[::]` serves IPv4 too, as with other servers.
        socket.set_only_v6(false)?;
    }
    // Connections of a process that has ended do not keep the port; a process that listens does.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(is_shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_a_port_and_strangers_do_not() {
        let sockets = bind(([127, 0, 0, 1], 0).into(), 3).unwrap();
        let address = sockets[0].local_addr().unwrap();
        assert!(sockets.iter().all(|socket| socket.local_addr().unwrap() == address));
        assert_eq!(bind(address, 1).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(can_bind(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(sockets);
        can_bind(address).unwrap();
    }
}
