//! A service of known capacity to try things on.
//!
//! ```sh
//! cargo run --release -p tidegate-load --example service -- 127.0.0.1:3000 4 10 20
//! ```
//!
//! listens there with 4 workers of 10 ms each, which is 400 requests a second, and a queue of 20; without the last
//! number the queue has no bound. It ends with its standard input (Ctrl-D).

use std::error::Error;
use std::io;
use std::time::Duration;

use tidegate_load::service::{Queue, Service, Spec, Work};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (address, workers, millis, queue) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [address, workers, millis] => (address, workers, millis, Queue::Unbounded),
        [address, workers, millis, queue] => (address, workers, millis, Queue::Bounded(queue.parse()?)),
        _ => {
            return Err(
                "write ADDRESS WORKERS MILLISECONDS, and a bound for the queue if it shall have one".into()
            );
        }
    };
    let work = Work::Fixed(Duration::from_millis(millis.parse()?));
    let service =
        Service::start(&Spec { bind: address.parse()?, queue, ..Spec::new(workers.parse()?, work) })?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    eprintln!("{:?}", service.served());
    Ok(())
}
