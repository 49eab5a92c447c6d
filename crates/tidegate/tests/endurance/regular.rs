//! A caller who behaves, while others do not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::gateway::support::Gateway;

/// How long a request of his may take. Far beyond what it takes, for the machine has other work during tests.
pub const FAST: Duration = Duration::from_secs(2);

/// Asks again and again, over new and over kept connections, and must be answered fast each time.
#[derive(Debug)]
pub struct Regular {
    must_stop: Arc<AtomicBool>,
    asking: JoinHandle<(usize, Duration)>,
}

impl Regular {
    /// Begins; he has been answered before others come.
    pub fn begin(gateway: &Gateway) -> Self {
        let must_stop = Arc::new(AtomicBool::new(false));
        let (address, stop) = (gateway.address(), Arc::clone(&must_stop));
        let (answered, first) = mpsc::channel();
        let asking = std::thread::spawn(move || {
            let (mut count, mut slowest) = (0, Duration::ZERO);
            while !stop.load(Ordering::Relaxed) {
                let mut client = crate::gateway::support::Client::connect(address);
                for _ in 0..3 {
                    let begun = Instant::now();
                    let answer = client.get("/regular", &[("x-api-key", "regular")]);
                    assert_eq!(answer.status(), 200, "{answer:?}");
                    count += 1;
                    slowest = slowest.max(begun.elapsed());
                }
                // Only the first time does anybody listen.
                let _ = answered.send(());
                // Somebody who behaves takes a breath, and leaves the processor to the others.
                std::thread::sleep(Duration::from_millis(5));
            }
            (count, slowest)
        });
        first.recv().expect("he was answered");
        Self { must_stop, asking }
    }

    /// Ends it; gives how long the slowest answer took.
    #[track_caller]
    pub fn end(self) -> Duration {
        self.must_stop.store(true, Ordering::Relaxed);
        let (count, slowest) = self.asking.join().expect("he was always answered");
        assert!(count > 0 && slowest < FAST, "{count} answers, the slowest took {slowest:?}");
        slowest
    }
}
