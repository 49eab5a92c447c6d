//! A time-out that is read while others teach it.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use tidegate_core::Ratio;
use tidegate_core::timeout::{Sample, SharedTimeout, TimeoutRule, TimeoutTerms};

use super::{at, explore};

const CEILING: Duration = Duration::from_secs(2);

#[test]
fn a_reader_sees_the_time_out_of_before_or_after_and_never_goes_back() {
    explore(|| {
        let terms = TimeoutTerms {
            false_ratio: Ratio::new(0.5).unwrap(),
            floor: Duration::from_millis(10),
            ceiling: CEILING,
            min_samples: 2,
            padding: 2,
            interval: Duration::from_secs(1),
            intervals: 5,
        };
        let timeout = Arc::new(SharedTimeout::new(TimeoutRule::new(terms).unwrap(), at(0)));
        for _ in 0..2 {
            timeout.record(at(100), Sample::Succeeded(Duration::from_millis(20)));
        }
        // The first to record after the interval makes a time-out of what was seen in it.
        let learn = |timeout: &SharedTimeout| {
            timeout.record(at(1_001), Sample::Succeeded(Duration::from_millis(20)));
            let learnt = timeout.timeout();
            assert!(learnt < CEILING);
            learnt
        };
        let other = {
            let timeout = timeout.clone();
            thread::spawn(move || learn(&timeout))
        };
        let first = timeout.timeout();
        let mine = learn(&timeout);
        assert_eq!((mine, timeout.timeout()), (other.join().unwrap(), mine));
        assert!(first == CEILING || first == mine);
    });
}
