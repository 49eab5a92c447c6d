//! How fast the generator itself is: rising rates against a server that does nothing.
//!
//! ```sh
//! cargo build --release -p tidegate-load --example speed
//! taskset -c 0 target/release/examples/speed serve 127.0.0.1:9000 &
//! taskset -c 1 target/release/examples/speed send 127.0.0.1:9000
//! ```

use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_load::{Draw, Exponent, Keys, Pacing, Place, Plan, Rate, Schedule, Target};

const RATES: &str = "1000 10000 20000 30000 40000 60000";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address] => serve(address.parse()?),
        ["send", address] => send(address.parse()?, RATES),
        ["send", address, rates] => send(address.parse()?, rates),
        _ => Err("write `serve ADDRESS`, `send ADDRESS` or `send ADDRESS 'RATE RATE'`".into()),
    }
}

fn serve(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(async { drop(connection.await) });
        }
    })
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello"))))
}

fn send(address: SocketAddr, rates: &str) -> Result<(), Box<dyn Error>> {
    let mut page = std::io::stdout().lock();
    for rate in rates.split(' ') {
        let pace = Rate::per_second(rate.parse()?).ok_or("no such rate")?;
        let schedule = Schedule::new(Pacing::Poisson).steady(pace, Duration::from_secs(5));
        let mut plan = Plan::new(Target::at(address), schedule);
        plan.classes[0].keys = Some(Keys {
            place: Place::Header(HeaderName::from_static("x-api-key")),
            format: "key-%".to_owned(),
            draw: Draw::Zipf { keys: 10_000, exponent: Exponent::new(1.1).ok_or("no such exponent")? },
        });
        let report = plan.start()?.wait();
        let (latency, late) = (report.total.latency, report.late);
        writeln!(
            page,
            "{rate:>6}/s asked, {:>8.0}/s answered, {} unsent, p50 {:?}, p99 {:?}, max {:?}; late p50 {:?}, p99 {:?}",
            report.total.goodput,
            report.total.unsent,
            latency.map(|found| found.p50).unwrap_or_default(),
            latency.map(|found| found.p99).unwrap_or_default(),
            latency.map(|found| found.max).unwrap_or_default(),
            late.map(|found| found.p50).unwrap_or_default(),
            late.map(|found| found.p99).unwrap_or_default(),
        )?;
    }
    Ok(())
}
