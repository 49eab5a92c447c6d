//! What is written about requests, and about the process itself.

use super::server::secret;
use crate::document::top::{AccessLogDoc, LogAlwaysWord, LogFormWord, LogLevelWord, PolicyDoc};
use crate::policy::{AccessLog, Log, LogAlways, LogForm, LogFormat, LogLevel, LogTarget, Secret};
use crate::problem::Problems;

pub(super) fn access_log(document: &PolicyDoc) -> Option<AccessLog> {
    let telemetry = document.telemetry.as_ref()?;
    telemetry.value.access_log.as_ref().map(|field| compile(&field.value))
}

/// How the process's own lines are written.
pub(super) fn log(document: &PolicyDoc) -> Log {
    let telemetry = document.telemetry.as_ref();
    let written = telemetry.and_then(|field| field.value.log.as_ref()).map(|field| &field.value);
    let form = written.and_then(|log| log.format.as_ref()).map(|field| field.value);
    let level = written.and_then(|log| log.level.as_ref()).map(|field| field.value);
    Log {
        form: match form {
            None | Some(LogFormWord::Text) => LogForm::Text,
            Some(LogFormWord::Json) => LogForm::Json,
        },
        level: match level {
            Some(LogLevelWord::Error) => LogLevel::Error,
            Some(LogLevelWord::Warn) => LogLevel::Warn,
            None | Some(LogLevelWord::Info) => LogLevel::Info,
            Some(LogLevelWord::Debug) => LogLevel::Debug,
        },
    }
}

/// Where the key of fingerprints is.
pub(super) fn fingerprint_key(document: &PolicyDoc, problems: &mut Problems) -> Option<Secret> {
    let field = document.telemetry.as_ref()?.value.fingerprint_key.as_ref()?;
    secret(field, "telemetry.fingerprint_key", "\"TIDEGATE_FINGERPRINT_KEY\"", problems)
}

fn compile(written: &AccessLogDoc) -> AccessLog {
    let always = written.always.as_ref().map(|list| &list.value);
    let is_always = |word: LogAlwaysWord, default: bool| {
        always.map_or(default, |list| list.iter().any(|field| field.value == word))
    };
    AccessLog {
        to: written.to.as_ref().map_or(LogTarget::Stdout, |field| field.value.clone()),
        format: LogFormat::Json,
        // A hundredth is a million millionths, and the least share that was asked for is not none.
        sample_accepted: written.sample_accepted.as_ref().map_or(1_000_000, |field| {
            u32::try_from(field.value.hundredths.micros().div_ceil(100)).unwrap_or(1_000_000)
        }),
        always: LogAlways {
            refused: is_always(LogAlwaysWord::Refused, true),
            shadow: is_always(LogAlwaysWord::Shadow, true),
            failed: is_always(LogAlwaysWord::Failed, false),
        },
    }
}
