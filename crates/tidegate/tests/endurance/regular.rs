//! A caller who behaves, while others do not.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::gateway::support::Gateway;

/// How long a request of his may take. Far beyond what it takes, for the machine has other work during tests.
pub const FAST: Duration = Duration::from_secs(2);

/// Somebody who behaves takes a breath between requests, and leaves the processor to the others.
const BREATH: Duration = Duration::from_millis(5);

/// Asks again and again, over new and over kept connections, and must be answered fast each time.
#[derive(Debug)]
pub struct Regular {
    /// He goes on while this is there.
    goes_on: Sender<()>,
    asking: JoinHandle<(usize, Duration)>,
}

impl Regular {
    /// Begins; he has been answered before others come.
    pub fn begin(gateway: &Gateway) -> Self {
        let address = gateway.address();
        let (goes_on, until) = mpsc::channel();
        let (answered, first) = mpsc::channel();
        let asking = std::thread::spawn(move || {
            let (mut count, mut slowest) = (0, Duration::ZERO);
            loop {
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
                if until.recv_timeout(BREATH) == Err(RecvTimeoutError::Disconnected) {
                    return (count, slowest);
                }
            }
        });
        first.recv().expect("he was answered");
        Self { goes_on, asking }
    }

    /// Ends it; gives how long the slowest answer took.
    #[track_caller]
    pub fn end(self) -> Duration {
        drop(self.goes_on);
        let (count, slowest) = self.asking.join().expect("he was always answered");
        assert!(count > 0 && slowest < FAST, "{count} answers, the slowest took {slowest:?}");
        slowest
    }
}
