//! How `bench` is asked on the command line.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use http::{HeaderName, HeaderValue, Method};
use tidegate_load::keys::MAX_KEYS;
use tidegate_load::plan::{MAX_CONNECTIONS, MAX_TIMEOUT, MAX_WAITING};
use tidegate_load::{Exponent, Pacing, Place, Rate, Reach};
use tidegate_policy::quantity::Length;

use super::Bench;
use crate::cli::{flag, option};

/// A day: whoever wants to send for longer runs it again.
const MAX_LENGTH: Duration = Duration::from_secs(86_400);

/// What the command understands.
#[must_use]
pub fn command() -> Command {
    let what = [
        option("method", "METHOD", "The method [default: GET, or POST with a body]").value_parser(method),
        option("header", "FIELD", "A header field, 'name: value'; may be repeated")
            .short('H')
            .action(ArgAction::Append)
            .value_parser(field),
        option("body", "TEXT", "The body"),
        option("key", "KEY", "A field that differs, 'x-api-key: key-%', or 'key-%' for {key} in the URL")
            .value_parser(key),
        option("keys", "COUNT", "How many different keys there are")
            .requires("key")
            .value_parser(value_parser!(u64).range(1..=MAX_KEYS)),
        option("zipf", "EXPONENT", "Few keys come often, most rarely; 1.1 is common [default: all equally]")
            .requires("keys")
            .value_parser(exponent),
    ];
    let when = [
        option("rate", "RATE", "Requests a second").required(true).value_parser(rate),
        option("for", "TIME", "For how long").default_value("10s").value_parser(length),
        flag("poisson", "Space requests as independent callers do, not evenly"),
        option("timeout", "TIME", "How long an answer may take, and how long a request may wait to be sent")
            .default_value("2s")
            .value_parser(timeout),
    ];
    let how = [
        option("connections", "COUNT", "How many connections may be open")
            .default_value("50")
            .value_parser(|text: &str| count(text, MAX_CONNECTIONS)),
        option("waiting", "COUNT", "How many requests may wait for a connection; the others are unsent")
            .default_value("100000")
            .value_parser(|text: &str| count(text, MAX_WAITING)),
        flag("h2", "Speak HTTP/2, with prior knowledge"),
        option("seed", "NUMBER", "The same seed gives the same gaps and keys")
            .default_value("0")
            .value_parser(value_parser!(u64)),
        flag("anywhere", "Allow another machine as target; be sure that its owner knows"),
        flag("json", "Answer in JSON"),
    ];
    Command::new("bench")
        .about("Send requests on schedule to a server, and say how it answered")
        .arg(Arg::new("URL").required(true).help("Where to: http://127.0.0.1:8080/path"))
        .args(when)
        .args(what)
        .args(how)
        .after_help(
            "Requests follow the schedule whatever the server does, and latency counts from the moment a request \
             was\nmeant to be sent: a server that stalls shows it. 2xx are admitted, 429 and 503 refused.\n\n\
             Example:\n  tidegate bench http://127.0.0.1:8080/ --rate 1000 --for 10s\n  \
             tidegate bench http://127.0.0.1:8080/ --rate 500 --key 'x-api-key: key-%' --keys 10000 --zipf 1.1",
        )
}

/// What was asked; none when a word is missing that [`command`] requires.
#[must_use]
pub fn read(given: &ArgMatches) -> Option<Bench> {
    Some(Bench {
        url: one(given, "URL")?,
        reach: if given.get_flag("anywhere") { Reach::Anywhere } else { Reach::Loopback },
        rate: one(given, "rate")?,
        length: one(given, "for")?,
        pacing: if given.get_flag("poisson") { Pacing::Poisson } else { Pacing::Even },
        connections: one(given, "connections")?,
        waiting: one(given, "waiting")?,
        timeout: one(given, "timeout")?,
        is_h2: given.get_flag("h2"),
        method: one(given, "method"),
        headers: given.get_many("header").unwrap_or_default().cloned().collect(),
        body: one(given, "body").unwrap_or_default(),
        key: one(given, "key"),
        keys: one(given, "keys"),
        zipf: one(given, "zipf"),
        seed: one(given, "seed")?,
        is_json: given.get_flag("json"),
    })
}

fn one<T: Clone + Send + Sync + 'static>(given: &ArgMatches, name: &str) -> Option<T> {
    given.get_one::<T>(name).cloned()
}

fn rate(text: &str) -> Result<Rate, String> {
    let number = text.replace('_', "").parse().ok().filter(|number| *number > 0.0).and_then(Rate::per_second);
    number.ok_or_else(|| format!("a rate is a number above 0, up to {} a second", Rate::MAX.get()))
}

fn exponent(text: &str) -> Result<Exponent, String> {
    let number = text.parse().ok().and_then(Exponent::new);
    number.ok_or_else(|| format!("an exponent is a number from 0 to {}", Exponent::MAX.get()))
}

fn count(text: &str, most: usize) -> Result<usize, String> {
    let number = text.replace('_', "").parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("it is a whole number from 1 to {most}"))
}

fn length(text: &str) -> Result<Duration, String> {
    within(text, MAX_LENGTH, "a day")
}

fn timeout(text: &str) -> Result<Duration, String> {
    within(text, MAX_TIMEOUT, "an hour")
}

fn within(text: &str, most: Duration, called: &str) -> Result<Duration, String> {
    let length = Length::read(text).map_err(|problem| format!("{}; {}", problem.message, problem.help))?;
    if !(Duration::from_millis(1)..=most).contains(&length.duration) {
        return Err(format!("it must be between 1ms and {called}"));
    }
    Ok(length.duration)
}

fn method(text: &str) -> Result<Method, String> {
    text.parse().map_err(|_| "it is not a method such as GET or POST".to_owned())
}

fn field(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = split(text)?;
    let value = HeaderValue::from_str(value).map_err(|_| format!("a header field cannot hold `{value}`"))?;
    Ok((name, value))
}

fn key(text: &str) -> Result<(Place, String), String> {
    if !text.contains(':') {
        return Ok((Place::Path, text.to_owned()));
    }
    let (name, format) = split(text)?;
    Ok((Place::Header(name), format.to_owned()))
}

fn split(text: &str) -> Result<(HeaderName, &str), String> {
    let (name, value) = text.split_once(':').ok_or("it is not 'name: value'")?;
    let name = name.trim().parse().map_err(|_| format!("`{name}` is not the name of a header field"))?;
    Ok((name, value.trim()))
}
