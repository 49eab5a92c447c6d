/// The log of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where it is written.
    pub to: LogTarget,
    /// How a record is written.
    pub format: LogFormat,
    /// The share of admitted requests that is written, in millionths: up to 1 000 000.
    pub sample_accepted: u32,
    /// What is written whatever the share is.
    pub always: LogAlways,
}

/// Where a log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
    /// This file, as it was written: meant from where the policy lies.
    File(String),
}

/// How a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
}

/// What is always written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogAlways {
    /// Requests that were refused.
    pub refused: bool,
    /// Requests that a shadow rule or value would have refused.
    pub shadow: bool,
    /// Requests that the service failed to answer.
    pub failed: bool,
}
