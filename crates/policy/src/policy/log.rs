/// How the process's own lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The form of a line.
    pub form: LogForm,
    /// From which level on lines are written.
    pub level: LogLevel,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogForm {
    /// Time, level and a sentence, for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogForm {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    /// As it is written in policies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// How much a line matters: the first most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something was asked for and is not the case.
    Error,
    /// It works, and an operator should look.
    Warn,
    /// The state has changed.
    #[default]
    Info,
    /// For those who look for a cause.
    Debug,
}

impl LogLevel {
    /// All of them, the one that matters most first.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Info, Self::Debug];

    /// As it is written in policies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}
