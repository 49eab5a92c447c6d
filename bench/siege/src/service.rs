//! The service behind the gateways: answers after a while, takes uploads as they come, and has one answer that is large.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// How long it takes to answer: long enough that half as much again is more than a busy machine adds.
const TAKES: Duration = Duration::from_millis(20);

/// More than gateways take ahead. Not much more, since nginx writes to disk what is not read: 14 GiB at most.
const LARGE: usize = 16 << 20;

/// What waits in each of its sockets. The kernel's memory for sockets is everybody's, the honest caller's too.
const AHEAD: usize = 64 * 1024;

/// Room for threads that do nearly nothing.
const STACK: usize = 64 * 1024;

/// Starts it; it ends with the program.
pub(crate) fn start() -> std::io::Result<SocketAddr> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.set_send_buffer_size(AHEAD)?;
    socket.listen(4096)?;
    let listener = TcpListener::from(socket);
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection that breaks off is the gateway's business.
            thread::Builder::new().stack_size(STACK).spawn(move || serve(&stream).ok()).ok();
        }
    });
    Ok(address)
}

/// An address that drops the packets of those who want to connect, as long as what comes with it lives.
pub(crate) fn deaf() -> std::io::Result<(SocketAddr, Vec<Socket>)> {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    listener.listen(0)?;
    let address = listener.local_addr()?;
    let mut held = vec![listener];
    loop {
        let waiting = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        if waiting.connect_timeout(&address, Duration::from_millis(200)).is_err() {
            let address = address.as_socket().ok_or_else(|| std::io::Error::other("no address of IPv4"))?;
            return Ok((address, held));
        }
        held.push(waiting);
    }
}

fn serve(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let is_large = line.contains(" /large ");
        let (mut length, mut is_chunked) = (0, false);
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let field = line.trim().to_ascii_lowercase();
            match field.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
                Some(("transfer-encoding", _)) => is_chunked = true,
                Some(_) => {}
                None => break,
            }
        }
        if is_chunked {
            // Nobody here sends a chunked body to its end.
            std::io::copy(&mut reader, &mut std::io::sink())?;
            return Ok(());
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        if is_large {
            write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n")?;
            for _ in 0..LARGE / (64 << 10) {
                writer.write_all(&[b'x'; 64 << 10])?;
            }
        } else {
            thread::sleep(TAKES);
            writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")?;
        }
    }
}
