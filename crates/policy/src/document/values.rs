//! Texts that mean something by themselves: checked where they are read, so that a problem points at them.

mod address;
mod overload;

use std::net::SocketAddr;

use tidegate_core::rate::UtcOffset;
use tidegate_core::{Cost, Criticality};

use super::read::{Place, Read, not_supported, text};
use super::spec::{Form, Shape, Support};
use crate::path::{Canonical, canonical};
use crate::policy::{
    CriticalitySource, Endpoint, KeySource, LogTarget, Network, PathPattern, Settle, SignalFrom,
};
use crate::problem::{Code, Problems, nearest};
use crate::quantity::{Length, Percent, QuotaText, Size, Unreadable, shown};
use crate::text::{Node, Value};
use address::{address, endpoint, is_host, network};
pub(crate) use overload::Target;
use overload::signal_from;

/// Implements reading by a function from the text to the value, or what is wrong with it.
macro_rules! textual {
    ($($type:ty, $what:literal, $pattern:expr, $example:literal, $read:expr;)+) => {$(
        impl Read for $type {
            const SHAPE: &'static Shape =
                &Shape::Text(&Form { what: $what, pattern: $pattern, example: $example });

            fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
                // A bare number that would not do in quotes either is told so at once.
                if let Value::Number(number) = &node.value
                    && let Err(problem) = $read(number)
                {
                    return report(Err(problem), node, place, problems);
                }
                let written = text(node, $what, place, problems)?;
                report($read(written), node, place, problems)
            }
        }
    )+};
}

/// Implements reading of quantities, for which a bare number is a quantity without its unit.
macro_rules! quantities {
    ($($type:ty, $what:literal, $pattern:literal, $example:literal;)+) => {$(
        impl Read for $type {
            const SHAPE: &'static Shape =
                &Shape::Text(&Form { what: $what, pattern: Some($pattern), example: $example });

            fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
                let written = match &node.value {
                    Value::Number(number) => number,
                    _ => text(node, $what, place, problems)?,
                };
                report(Self::read(written), node, place, problems)
            }
        }
    )+};
}

fn report<T>(read: Result<T, Unreadable>, node: &Node, place: &Place, problems: &mut Problems) -> Option<T> {
    let problem = match read {
        Ok(value) => return Some(value),
        Err(problem) => problem,
    };
    if problem.code != Code::NotSupported {
        problems.push(place.value(problem.code, &problem.message, node.span).label(problem.help));
    } else if problems.unsupported == 0 {
        problems.push(not_supported(place, &problem.message, node.span));
    }
    None
}

fn refused<T>(code: Code, written: &str, message: &str, help: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable { code, message: format!("`{}` {message}", shown(written)), help: help.into() })
}

quantities! {
    QuotaText, "a quota", r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*/\s*[0-9_.]*\s*[a-zµμ]+\s*$", "10/s";
    Length, "a length of time", r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*[a-zµμ]+\s*$", "250ms";
    Size, "a size", r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*[kKMGT]?i?B\s*$", "64KiB";
    Percent, "a percentage", r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$", "20%";
}

/// A method, as it comes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Method(pub(crate) String);

/// A host in lower case, without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host(pub(crate) String);

/// What callers are recognised by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallerSource(pub(crate) KeySource);

const SOURCE: &str = r"^(caller|client-ip|path|route|global|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$";

textual! {
    String, "a text", None, "text", any;
    SocketAddr, "an address and port", Some(r"^.+:[0-9]+$"), "0.0.0.0:8080", address;
    Endpoint, "a URL", Some("^https?://[^/]+/?$"), "http://127.0.0.1:3000", endpoint;
    Network, "an IP address or a network", Some("^[0-9A-Fa-f.:]+(/[0-9]+)?$"), "10.0.0.0/8", network;
    LogTarget, "`stdout`, `stderr` or a file", Some("."), "stdout", log_target;
    PathPattern, "a pattern for paths", Some("^/"), "/v1/**", path;
    KeySource, "a source of keys", Some(SOURCE), "header:x-api-key", key_source;
    CallerSource, "a source of callers", Some("^(client-ip|header:.+)$"), "header:x-api-key", caller_source;
    CriticalitySource, "a source of criticality", Some("^(header|baggage):.+$"), "header:x-criticality", criticality_source;
    Settle, "where the true cost comes from", Some("^(response_header:.+|bytes:(request|response)|orca:.+)$"), "bytes:response", settle;
    Abandoned, "`estimate` or a cost", Some(r"^(estimate|max:[0-9_]+(\.[0-9_]+)?)$"), "max:2.5", abandoned;
    SignalFrom, "where readings come from", Some("^(api|response_header:.+)$"), "response_header:x-db-load", signal_from;
    Method, "a method", Some("^[A-Z][A-Z-]*$"), "POST", method;
    Host, "a host", None, "api.example.com", host;
    UtcOffset, "a time zone", Some(r"^(UTC|[+-][0-9]{2}:[0-9]{2})$"), "+02:00", timezone;
}

impl Read for Criticality {
    const SHAPE: &'static Shape = &Shape::Choice(&[
        ("critical_plus", Support::Built),
        ("critical", Support::Built),
        ("sheddable_plus", Support::Built),
        ("sheddable", Support::Built),
    ]);

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        super::read::choice(node, Self::SHAPE, place, problems)?.parse().ok()
    }
}

fn any(written: &str) -> Result<String, Unreadable> {
    Ok(written.to_owned())
}

fn log_target(written: &str) -> Result<LogTarget, Unreadable> {
    match written {
        "stdout" => Ok(LogTarget::Stdout),
        "stderr" => Ok(LogTarget::Stderr),
        "" => refused(Code::BadName, written, "names no file", "write \"stdout\", \"stderr\" or a file"),
        file => Ok(LogTarget::File(file.to_owned())),
    }
}

fn path(written: &str) -> Result<PathPattern, Unreadable> {
    let Canonical { path, unclear } = canonical(written);
    if written.starts_with('/') && unclear.is_some() {
        let help = "services read it in two ways, so requests with such a path are refused; write another";
        return refused(Code::BadPath, written, "is unclear", help);
    }
    if written.starts_with('/') && path != written {
        let help = format!("requests are compared in one spelling: write \"{path}\"");
        return refused(Code::BadPath, written, "is not how paths are compared", help);
    }
    PathPattern::new(written)
        .or_else(|reason| refused(Code::BadPath, written, "is not a pattern for paths", reason))
}

const WORDS: [(&str, KeySource); 5] = [
    ("caller", KeySource::Caller),
    ("client-ip", KeySource::ClientIp),
    ("path", KeySource::Path),
    ("route", KeySource::Route),
    ("global", KeySource::Global),
];

/// What others call the address of a caller.
const ELSEWHERE: [&str; 7] =
    ["ip", "address", "client_address", "remote_addr", "remote_ip", "source_ip", "binary_remote_addr"];

fn key_source(written: &str) -> Result<KeySource, Unreadable> {
    if let Some(name) = written.strip_prefix("header:") {
        return header(name, written).map(KeySource::Header);
    }
    if let Some((_, source)) = WORDS.iter().find(|(word, _)| *word == written) {
        return Ok(source.clone());
    }
    if let Some(variable) = written.strip_prefix('$') {
        let help = match of_nginx(&variable.to_lowercase()) {
            Some(meant) => format!("write \"{meant}\" instead of nginx's variable"),
            None => "variables of nginx are not known; write \"client-ip\", \"header:NAME\" or \"path\""
                .to_owned(),
        };
        return refused(Code::BadSource, written, "is not something a key can be made of", help);
    }
    let elsewhere = ELSEWHERE.contains(&written.to_lowercase().replace('-', "_").as_str());
    let near = || nearest(written, WORDS.iter().map(|(word, _)| *word));
    let help = match elsewhere.then_some("client-ip").or_else(near) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None if is_token(written) => format!("write \"header:{written}\" for a header field"),
        None => {
            "write \"caller\", \"client-ip\", \"header:NAME\", \"path\", \"route\" or \"global\"".to_owned()
        }
    };
    refused(Code::BadSource, written, "is not something a key can be made of", help)
}

/// What a variable of nginx is here.
fn of_nginx(variable: &str) -> Option<String> {
    Some(match variable {
        "binary_remote_addr" | "remote_addr" | "realip_remote_addr" | "proxy_add_x_forwarded_for" => {
            "client-ip".to_owned()
        }
        "uri" | "request_uri" | "document_uri" => "path".to_owned(),
        "host" | "http_host" | "server_name" => "header:host".to_owned(),
        _ => format!("header:{}", variable.strip_prefix("http_")?.replace('_', "-")),
    })
}

fn caller_source(written: &str) -> Result<CallerSource, Unreadable> {
    match key_source(written) {
        Ok(source @ (KeySource::Header(_) | KeySource::ClientIp)) => Ok(CallerSource(source)),
        Ok(KeySource::Caller | KeySource::Path | KeySource::Route | KeySource::Global) => refused(
            Code::BadSource,
            written,
            "does not tell who is calling",
            "write \"header:NAME\" or \"client-ip\"",
        ),
        Err(problem) => Err(problem),
    }
}

fn criticality_source(written: &str) -> Result<CriticalitySource, Unreadable> {
    match written.split_once(':') {
        Some(("header", name)) => header(name, written).map(CriticalitySource::Header),
        Some(("baggage", name)) if is_token(name) => Ok(CriticalitySource::Baggage(name.to_owned())),
        _ => refused(
            Code::BadSource,
            written,
            "is not something criticality is read from",
            "write \"header:x-criticality\" or \"baggage:criticality\"",
        ),
    }
}

fn settle(written: &str) -> Result<Settle, Unreadable> {
    match written.split_once(':') {
        Some(("response_header", name)) => header(name, written).map(Settle::ResponseHeader),
        Some(("bytes", "response")) => Ok(Settle::ResponseBytes),
        Some(("bytes", "request")) => Ok(Settle::RequestBytes),
        Some(("orca", _)) => Err(Unreadable {
            code: Code::NotSupported,
            message: format!("settle `{}`", shown(written)),
            help: String::new(),
        }),
        _ => refused(
            Code::BadSource,
            written,
            "is not where a true cost comes from",
            "write \"response_header:NAME\", \"bytes:response\" or \"bytes:request\"",
        ),
    }
}

/// What stays charged when a true cost is never heard of; none is the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abandoned(pub(crate) Option<Cost>);

fn abandoned(written: &str) -> Result<Abandoned, Unreadable> {
    let cost = |text: &str| text.replace('_', "").parse().ok();
    match written.split_once(':') {
        None if written == "estimate" => Ok(Abandoned(None)),
        Some(("max", text)) if cost(text).is_some() => Ok(Abandoned(cost(text))),
        _ => refused(
            Code::UnknownChoice,
            written,
            "is not what stays charged",
            "write \"estimate\", or \"max:\" and a cost: \"max:2.5\"",
        ),
    }
}

/// A header field's name, in lower case.
fn header(name: &str, written: &str) -> Result<String, Unreadable> {
    if is_token(name) {
        return Ok(name.to_ascii_lowercase());
    }
    let help = "write letters, digits and hyphens: \"header:x-api-key\"";
    refused(Code::BadField, written, "does not name a header field", help)
}

pub(crate) fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

pub(crate) fn method(written: &str) -> Result<Method, Unreadable> {
    if is_token(written) && !written.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Ok(Method(written.to_owned()));
    }
    let help = match is_token(written) {
        true => format!("methods are compared as they are written: \"{}\"", written.to_uppercase()),
        false => "write a method such as \"POST\"".to_owned(),
    };
    refused(Code::BadField, written, "is not a method", help)
}

fn host(written: &str) -> Result<Host, Unreadable> {
    let bare = written.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(written);
    // As requests are compared: an address in brackets and in its shortest form, a name without the resolvers' dot.
    if let Ok(address) = bare.parse::<std::net::Ipv6Addr>() {
        return Ok(Host(format!("[{address}]")));
    }
    let name = bare.strip_suffix('.').unwrap_or(bare);
    if is_host(name) && bare == written && name.split('.').all(|label| !label.is_empty()) {
        return Ok(Host(name.to_ascii_lowercase()));
    }
    refused(
        Code::BadField,
        written,
        "is not a host",
        "write a name without scheme, port or star: \"api.example.com\"",
    )
}

fn timezone(written: &str) -> Result<UtcOffset, Unreadable> {
    if written == "UTC" {
        return Ok(UtcOffset::UTC);
    }
    let parsed = || {
        let (sign, rest) = match written.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, written.strip_prefix('+')?),
        };
        let (hours, minutes) = rest.split_once(':')?;
        let is_two = |text: &&str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = |text: &str| Some(text).filter(is_two)?.parse::<i16>().ok();
        let minutes = number(minutes).filter(|minutes| (0..60).contains(minutes))?;
        UtcOffset::minutes(sign * (number(hours)?.checked_mul(60)? + minutes)).ok()
    };
    let help =
        "write \"UTC\" or an offset from it such as \"+02:00\"; zones with names change theirs twice a year";
    parsed().map_or_else(|| refused(Code::BadTimezone, written, "is not a time zone", help), Ok)
}
