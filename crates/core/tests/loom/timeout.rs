//! A time-out that is read while others teach it.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use tidegate_core::Ratio;
use tidegate_core::timeout::{Sample, SharedTimeout, TimeoutRule, TimeoutTerms};

use super::{at, explore};

const CEILING: Duration = Duration::from_secs(2);

#[test]
fn what_is_read_is_what_was_learnt_last() {
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
        let record = |timeout: &SharedTimeout, now, took| {
            timeout.record(at(now), Sample::Succeeded(Duration::from_millis(took)));
        };
        (0..2).for_each(|_| record(&timeout, 100, 20));
        // The first to record after an interval makes a time-out of what was seen until then: of 20 ms after the first,
        // and of 200 ms after the second, if all of it was seen by then.
        let other = {
            let timeout = timeout.clone();
            thread::spawn(move || (0..3).for_each(|_| record(&timeout, 1_001, 200)))
        };
        record(&timeout, 2_002, 20);
        assert!(timeout.timeout() < CEILING);
        other.join().unwrap();
        let read = timeout.timeout();
        // Nothing is learnt within an interval, so that this only shows what the last one to learn knew.
        record(&timeout, 1_500, 20);
        assert_eq!(timeout.timeout(), read);
    });
}
