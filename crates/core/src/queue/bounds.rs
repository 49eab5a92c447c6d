use std::time::Duration;

use crate::units::{Invalid, Quota};

/// How long, how many and how much may wait: time first, the rest to keep memory finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    max_wait: Duration,
    burst_wait: Duration,
    max_entries: usize,
    max_bytes: u64,
}

/// What linkerd's test needed: a second's work of a service of 10 000 requests a second.
const DEFAULT_ENTRIES: usize = 10_000;

/// A few kilobytes an entry.
const DEFAULT_BYTES: u64 = 64 * 1024 * 1024;

/// The slots are made with the queue, 80 bytes and a payload each.
const MOST_ENTRIES: usize = 1_000_000;

/// Who waits for minutes wants a ticket and not a connection held open.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

impl Bounds {
    /// Nobody waits longer than `max_wait`; at most 10 000 entries and 64 MiB wait at once.
    ///
    /// # Errors
    /// When the time is nothing, or longer than ten minutes.
    pub fn new(max_wait: Duration) -> Result<Self, Invalid> {
        let unchecked =
            Self { max_wait, burst_wait: max_wait, max_entries: DEFAULT_ENTRIES, max_bytes: DEFAULT_BYTES };
        unchecked.with_max_wait(max_wait)
    }

    /// The same with this longest wait, in a burst as at other times.
    ///
    /// # Errors
    /// When the time is nothing, or longer than ten minutes.
    pub fn with_max_wait(self, max_wait: Duration) -> Result<Self, Invalid> {
        if max_wait.is_zero() || max_wait > LONGEST_WAIT {
            return Err(Invalid::new("max_wait", format_args!("{max_wait:?}"), "above 0 and at most 10 min"));
        }
        Ok(Self { max_wait, burst_wait: max_wait, ..self })
    }

    /// The same, with a longer wait for whoever comes to a level that had nobody waiting a `max_wait` ago. A burst can
    /// be served to its end and is then over; a queue that stands makes everybody in it late, however long they wait.
    ///
    /// # Errors
    /// When the time is shorter than `max_wait`, or longer than ten minutes.
    pub fn with_burst_wait(self, burst_wait: Duration) -> Result<Self, Invalid> {
        if burst_wait < self.max_wait || burst_wait > LONGEST_WAIT {
            let given = format_args!("{burst_wait:?}");
            return Err(Invalid::new("burst_wait", given, "at least max_wait and at most 10 min"));
        }
        Ok(Self { burst_wait, ..self })
    }

    /// The same with room for this many entries.
    ///
    /// # Errors
    /// When that is none, or more than a million.
    pub fn with_max_entries(self, max_entries: usize) -> Result<Self, Invalid> {
        if (1..=MOST_ENTRIES).contains(&max_entries) {
            Ok(Self { max_entries, ..self })
        } else {
            Err(Invalid::new("max_entries", max_entries, "from 1 to 1000000"))
        }
    }

    /// The same with room for this many bytes.
    ///
    /// # Errors
    /// When that is none.
    pub fn with_max_bytes(self, max_bytes: u64) -> Result<Self, Invalid> {
        if max_bytes == 0 {
            return Err(Invalid::new("max_bytes", max_bytes, "at least 1"));
        }
        Ok(Self { max_bytes, ..self })
    }

    /// Checks that the count acts after the time when requests are served at this rate: all that can be
    /// served within `max_wait` must fit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::queue::Bounds;
    /// use tidegate_core::{Cost, Quota};
    ///
    /// let served = Quota::per_second(Cost::of(20_000))?;
    /// let half_a_second = Bounds::new(Duration::from_millis(500))?;
    /// assert!(half_a_second.outlasts(served).is_ok());
    /// assert!(half_a_second.with_max_entries(100)?.outlasts(served).is_err());
    /// # Ok::<(), tidegate_core::Invalid>(())
    /// ```
    ///
    /// # Errors
    /// When callers would be refused who could have been served in time.
    pub fn outlasts(&self, served: Quota) -> Result<(), Invalid> {
        let served_in_time =
            u128::from(served.amount().whole()) * self.max_wait.as_nanos() / served.window().as_nanos();
        if served_in_time > self.max_entries as u128 {
            return Err(Invalid::new(
                "max_entries",
                self.max_entries,
                "at least what is served within max_wait, or callers are refused who would be in time",
            ));
        }
        Ok(())
    }

    /// The longest anybody waits where a queue stands.
    #[must_use]
    pub const fn max_wait(&self) -> Duration {
        self.max_wait
    }

    /// The longest anybody waits in a burst.
    #[must_use]
    pub const fn burst_wait(&self) -> Duration {
        self.burst_wait
    }

    /// The most that wait at once.
    #[must_use]
    pub const fn max_entries(&self) -> usize {
        self.max_entries
    }

    /// The most bytes that wait at once.
    #[must_use]
    pub const fn max_bytes(&self) -> u64 {
        self.max_bytes
    }
}
