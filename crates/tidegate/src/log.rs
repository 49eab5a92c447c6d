//! The process's own lines, on standard error: what changed, what is wrong, and never anything for each request.
//!
//! ```text
//! log::info("draining");
//! log::warn(&format!("listener `{name}` shows a certificate that ends tomorrow"));
//! Line::new(LogLevel::Info, "rule `per_key` refuses").with("rule", "per_key").with("count", 12).write();
//! log::findings(LogLevel::Error, "Policy not loaded; the running one (version 4) stays.", &findings);
//! ```
//!
//! | form | a line |
//! |---|---|
//! | text | `2026-11-15T23:18:39.250Z info tidegate: draining`, then fields as `name=value` |
//! | JSON | `{"time":"…","level":"info","message":"draining"}`, with the fields as members |
//!
//! The sentence is for people and may change; fields are for programs. What strangers sent may stand in both: hidden
//! characters are written as `\u….`, so that no line can be forged and no terminal be commanded.
//!
//! Form and level come from `[telemetry] log` of the policy in force, and `TIDEGATE_LOG` wins over them. A reader of
//! standard error that went away does not keep the gateway from its work.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tidegate_core::WallTime;
use tidegate_policy::policy::{Log, LogForm, LogLevel};
use tidegate_policy::record::time_text;
use tidegate_policy::{escaped, escaped_json};

use crate::admin::Findings;

/// The variable that wins over the policy.
const VARIABLE: &str = "TIDEGATE_LOG";

/// What the environment asks for, once that was looked at.
static WANTED: OnceLock<Wanted> = OnceLock::new();

/// The form in the upper half, the level in the lower one; changed while others write, which get the one or the other.
static SETTING: AtomicU8 = AtomicU8::new(LogLevel::Info as u8);

/// What the environment asks for; what it does not say, the policy does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    form: Option<LogForm>,
    level: Option<LogLevel>,
}

impl Wanted {
    /// `json`, `warn`, or both with a comma between.
    fn read(written: &str) -> Option<Self> {
        let mut wanted = Self::default();
        for word in written.split(',').map(str::trim) {
            let form = LogForm::ALL.into_iter().find(|form| form.as_str() == word);
            let level = LogLevel::ALL.into_iter().find(|level| level.as_str() == word);
            let is_new = form.is_some() && wanted.form.is_none() || level.is_some() && wanted.level.is_none();
            if !is_new {
                return None;
            }
            wanted = Self { form: form.or(wanted.form), level: level.or(wanted.level) };
        }
        Some(wanted)
    }

    fn over(self, log: Log) -> Log {
        Log { form: self.form.unwrap_or(log.form), level: self.level.unwrap_or(log.level) }
    }
}

/// Looks at the environment; the first thing that a process does that writes a log.
///
/// # Errors
/// When `TIDEGATE_LOG` asks for what there is not; the text says what there is.
pub(crate) fn begin() -> Result<(), String> {
    let Some(written) = std::env::var_os(VARIABLE).filter(|written| !written.is_empty()) else {
        return Ok(());
    };
    let written = written.to_string_lossy();
    let wanted = Wanted::read(&written).ok_or_else(|| {
        format!(
            "{VARIABLE} is `{}`, but must be a level (error, warn, info or debug), a form (text or json), or both with \
             a comma between",
            escaped(&written)
        )
    })?;
    WANTED.get_or_init(|| wanted);
    adopt(Log::default());
    Ok(())
}

/// Writes from now on as a policy says, unless the environment says otherwise.
pub(crate) fn adopt(log: Log) {
    let log = WANTED.get().copied().unwrap_or_default().over(log);
    SETTING.store((log.form as u8) << 4 | log.level as u8, Ordering::Relaxed);
}

fn setting() -> Log {
    let word = SETTING.load(Ordering::Relaxed);
    let form = LogForm::ALL.into_iter().find(|form| *form as u8 == word >> 4);
    let level = LogLevel::ALL.into_iter().find(|level| *level as u8 == word & 0xf);
    Log { form: form.unwrap_or_default(), level: level.unwrap_or_default() }
}

/// The state has changed.
pub(crate) fn info(sentence: &str) {
    Line::new(LogLevel::Info, sentence).write();
}

/// It works, and an operator should look.
pub(crate) fn warn(sentence: &str) {
    Line::new(LogLevel::Warn, sentence).write();
}

/// Something was asked for and is not the case.
pub(crate) fn error(sentence: &str) {
    Line::new(LogLevel::Error, sentence).write();
}

/// A sentence with the problems of a policy: above it as `check` prints them, or as a list.
pub(crate) fn findings(level: LogLevel, sentence: &str, findings: &Findings) {
    let frames = format!("{}{}", findings.text, findings.summary);
    Line::new(level, sentence).above("problems", findings.list.clone(), &frames).write();
}

/// One line to be written.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    level: LogLevel,
    sentence: &'a str,
    /// In the order in which they are written.
    fields: Vec<(String, Value)>,
    /// A field, and the lines that the text form has above in its place.
    frames: Option<(String, String)>,
}

impl<'a> Line<'a> {
    pub(crate) fn new(level: LogLevel, sentence: &'a str) -> Self {
        Self { level, sentence, fields: Vec::new(), frames: None }
    }

    /// Adds a field, whose name is one word in lower case.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a field in whose place the text form has lines of their own form above the sentence.
    pub(crate) fn above(mut self, name: &str, value: impl Into<Value>, lines: &str) -> Self {
        self.frames = Some((name.to_owned(), lines.to_owned()));
        self.with(name, value)
    }

    /// Writes it, if lines of its level are written.
    pub(crate) fn write(self) {
        let setting = setting();
        if self.level > setting.level {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = self.written(setting.form, u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        // At once, so that the lines of several threads do not mix.
        io::stderr().write_all(line.as_bytes()).ok();
    }

    fn written(self, form: LogForm, unix_millis: u64) -> String {
        let second = time_text(WallTime::from_unix_seconds(unix_millis / 1_000));
        let time = format!("{}.{:03}Z", second.trim_end_matches('Z'), unix_millis % 1_000);
        match form {
            LogForm::Text => self.text(&time),
            LogForm::Json => self.json(time),
        }
    }

    fn text(self, time: &str) -> String {
        let (name_above, lines) = self.frames.unwrap_or_default();
        let mut out: String = lines.lines().map(|line| format!("{}\n", escaped(line))).collect();
        let (level, sentence) = (self.level.as_str(), escaped(self.sentence));
        write!(out, "{time} {level} tidegate: {sentence}").unwrap_or_default();
        for (name, value) in self.fields.iter().filter(|(name, _)| **name != name_above) {
            write!(out, " {name}={}", plain(value)).unwrap_or_default();
        }
        out.push('\n');
        out
    }

    fn json(self, time: String) -> String {
        let head = [("time", time), ("level", self.level.as_str().into()), ("message", self.sentence.into())];
        let head = head.map(|(name, value)| (name.to_owned(), Value::from(value)));
        let members = head.into_iter().chain(self.fields);
        let members: Vec<String> =
            members.map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
        escaped_json(format!("{{{}}}\n", members.join(",")))
    }
}

/// A value as it stands behind `name=`: in quotes where its end would not be seen otherwise.
fn plain(value: &Value) -> String {
    let is_word = |text: &&str| {
        !text.is_empty() && !text.contains(|at: char| at.is_whitespace() || matches!(at, '"' | '='))
    };
    match value.as_str().filter(is_word) {
        Some(word) => escaped(word).into_owned(),
        None => escaped_json(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line() -> Line<'static> {
        Line::new(LogLevel::Warn, "rule `per_key` refuses\nforged \u{9b}2J")
            .with("rule", "per_key")
            .with("caller", "a b")
            .with("count", 12)
    }

    #[test]
    fn a_line_is_one_line_in_both_forms() {
        assert_eq!(
            line().written(LogForm::Text, 951_782_400_250),
            "2000-02-29T00:00:00.250Z warn tidegate: rule `per_key` refuses\\u000aforged \\u009b2J rule=per_key \
             caller=\"a b\" count=12\n"
        );
        let json = line().written(LogForm::Json, 951_782_400_250);
        assert!(
            json.ends_with("}\n") && json.matches('\n').count() == 1 && json.contains("\\u009b"),
            "{json}"
        );
        let read: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["time"], "2000-02-29T00:00:00.250Z");
        assert_eq!(read["message"], "rule `per_key` refuses\nforged \u{9b}2J");
        assert_eq!((&read["level"], &read["count"]), (&json!("warn"), &json!(12)));
    }

    #[test]
    fn problems_stand_above_for_people_and_in_a_list_for_programs() {
        let list = json!([{ "code": "TG0102" }]);
        let line = || {
            let line = Line::new(LogLevel::Error, "not loaded");
            line.above("problems", list.clone(), "error: unknown\n --> a:1\n1 error.")
        };
        let text = line().written(LogForm::Text, 0);
        assert_eq!(
            text,
            "error: unknown\n --> a:1\n1 error.\n1970-01-01T00:00:00.000Z error tidegate: not loaded\n"
        );
        let read: Value = serde_json::from_str(&line().written(LogForm::Json, 0)).unwrap();
        assert_eq!(read["problems"][0]["code"], "TG0102");
    }

    #[test]
    fn the_environment_asks_for_a_form_a_level_or_both() {
        let wanted = |form, level| Some(Wanted { form, level });
        assert_eq!(Wanted::read("json"), wanted(Some(LogForm::Json), None));
        assert_eq!(Wanted::read("warn"), wanted(None, Some(LogLevel::Warn)));
        assert_eq!(Wanted::read("text, debug"), wanted(Some(LogForm::Text), Some(LogLevel::Debug)));
        for odd in ["loud", "json,json", "info,warn", "json,", "JSON"] {
            assert_eq!(Wanted::read(odd), None, "{odd}");
        }
        let log = Log { form: LogForm::Json, level: LogLevel::Error };
        assert_eq!(Wanted::default().over(log), log);
    }
}
