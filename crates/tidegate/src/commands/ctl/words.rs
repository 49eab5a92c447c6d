//! The command line of `ctl`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, value_parser};
use tidegate_policy::quantity::{Length, QuotaText};

use super::{Ask, Caller, Ctl, Override};
use crate::cli::{flag, imagined, option};

/// Everything `ctl` understands.
#[must_use]
pub fn command() -> Command {
    Command::new("ctl")
        .about("Ask a running gateway, and tell it: the admin API from a shell")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            option("admin", "ADDRESS", "Where the admin API listens; without it $TIDEGATE_ADMIN, if set")
                .display_order(100)
                .default_value("127.0.0.1:9900")
                .global(true),
        )
        .arg(
            option(
                "token-file",
                "FILE",
                "The file with the token; without it $TIDEGATE_TOKEN is used, if set",
            )
            .display_order(101)
            .value_parser(value_parser!(PathBuf))
            .global(true),
        )
        .arg(flag("json", "Print the answer as it came").display_order(102).global(true))
        .subcommands(looking())
        .subcommands(changing())
        .after_help(
            "Example:\n  tidegate ctl status\n  tidegate ctl mode per_key shadow --for 10min\n  \
             tidegate ctl explain 'POST /v1/charges x-api-key:acct_1'",
        )
}

fn looking() -> Vec<Command> {
    vec![
        named("status", "tidegate ctl status").about("How it goes, in one sentence and some numbers"),
        named("rules", "tidegate ctl rules").about("The rules with their modes and counts"),
        named("callers", "tidegate ctl callers --sort cost -n 5")
            .about("The heaviest callers")
            .arg(
                option("sort", "BY", "By what")
                    .value_parser(["refused", "cost", "shadow"])
                    .default_value("refused"),
            )
            .arg(count("20", 32)),
        named("overrides", "tidegate ctl overrides").about("Callers with a limit of their own for a time"),
        named("changes", "tidegate ctl changes -n 50")
            .about("What operators changed, the newest first")
            .arg(count("20", 1024)),
        named("decisions", "tidegate ctl decisions --refused -n 50")
            .about("The last decisions")
            .arg(flag("refused", "Only refused ones"))
            .arg(count("20", 1280)),
        named("decision", "tidegate ctl decision 00c0ffee00c0ffee")
            .about("One of the last decisions")
            .arg(word("ID", "Its number, also as urn:tidegate:decision:NUMBER")),
        named("explain", "tidegate ctl explain 'POST /v1/charges x-api-key:acct_1'")
            .about("What would happen to a request now, rule by rule, and why")
            .arg(word("REQUEST", "Method, path and header fields: 'POST /v1/charges x-api-key:acct_1'"))
            .args(imagined()),
        named("upstreams", "tidegate ctl upstreams").about("How the upstreams are, and what their limits do"),
        named("capacity", "tidegate ctl capacity --json")
            .about("How much capacity is wanted: what an autoscaler reads"),
        named("signals", "tidegate ctl signals").about("The signals with their readings and targets"),
        named("routes", "tidegate ctl routes").about("The routes with their cheaper answers"),
    ]
}

fn changing() -> Vec<Command> {
    let file = || Arg::new("FILE").required(true).value_parser(value_parser!(PathBuf)).help("The policy");
    vec![
        named("mode", "tidegate ctl mode per_key shadow --for 10min")
            .about("Switch a rule, for a time or for good")
            .arg(word("RULE", "The rule"))
            .arg(
                Arg::new("MODE")
                    .required(true)
                    .value_parser(["enforce", "shadow", "disabled", "policy"])
                    .help("The mode; `policy` for what the policy says"),
            )
            .arg(for_how_long()),
        named("degrade", "tidegate ctl degrade catalogue on --for 10min")
            .about("Give a route's cheaper answer, for a time or for good")
            .arg(word("ROUTE", "The route"))
            .arg(
                Arg::new("SWITCH")
                    .required(true)
                    .value_parser(["on", "auto"])
                    .help("`on`, or `auto` for what the policy says"),
            )
            .arg(for_how_long()),
        named("signal", "tidegate ctl signal db_load 0.7")
            .about("Tell the reading of a signal that comes from here")
            .arg(word("NAME", "The signal, which has `from = \"api\"` in the policy"))
            .arg(
                Arg::new("VALUE")
                    .required(true)
                    .allow_negative_numbers(true)
                    .value_parser(ValueParser::new(reading))
                    .help("Its reading, a number: 0.7"),
            ),
        named("override", "tidegate ctl override acct_1 per_key --quota 50/s --burst 100 --for 1h")
            .about("Give a caller a limit of its own by a rule, for a time")
            .arg(word("CALLER", "Its identity"))
            .arg(word("RULE", "The rule"))
            .args(naming())
            .arg(option("quota", "QUOTA", "So much in a time: 50/s").value_parser(ValueParser::new(quota)))
            .arg(option("burst", "COST", "So much at once"))
            .arg(
                option("limit", "COUNT", "So many in flight, by a rule of kind concurrency")
                    .value_parser(value_parser!(u32).range(1..))
                    .conflicts_with_all(["quota", "burst"]),
            )
            .arg(for_how_long().default_value("1h")),
        named("override-clear", "tidegate ctl override-clear acct_1 per_key")
            .about("End a caller's own limit by a rule, or all of them")
            .arg(word("CALLER", "Its identity"))
            .arg(Arg::new("RULE").help("The rule; all without it"))
            .arg(fingerprint()),
        named("block", "tidegate ctl block acct_1 --for 1h")
            .about("Keep a caller out, for a time or until it is let in again")
            .arg(word("CALLER", "Its identity"))
            .arg(Arg::new("RULE").help("Only on the routes of this rule; without it on all but exempt ones"))
            .args(naming())
            .arg(for_how_long()),
        named("unblock", "tidegate ctl unblock acct_1")
            .about("Let a caller in again")
            .arg(word("CALLER", "Its identity"))
            .arg(Arg::new("RULE").help("The rule; all without it"))
            .arg(fingerprint()),
        named("counter", "tidegate ctl counter per_key acct_1")
            .about("What a key has used by a rule")
            .arg(word("RULE", "The rule"))
            .arg(word("KEY", "The key; parts with `|` between; `-` for requests without one"))
            .arg(fingerprint())
            .arg(flag("reset", "Forget it")),
        named("policy", "tidegate ctl policy check tidegate.toml")
            .about("The policy: read it, replace it, check another")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(
                named("get", "tidegate ctl policy get > tidegate.toml")
                    .about("Print the text that is decided with"),
            )
            .subcommand(
                named("put", "tidegate ctl policy put tidegate.toml")
                    .about("Take this policy, until the file changes")
                    .arg(file()),
            )
            .subcommand(
                named("confirm", "tidegate ctl policy confirm")
                    .about("Take the file that is held because of the rules, routes or listeners it loses"),
            )
            .subcommand(
                named("check", "tidegate ctl policy check tidegate.toml")
                    .about("Say what is wrong with a policy")
                    .arg(file()),
            ),
        named("drain", "tidegate ctl drain").about("Be not ready, finish what is in flight, end"),
    ]
}

/// A command with an example of it.
fn named(name: &'static str, example: &'static str) -> Command {
    Command::new(name).after_help(format!("Example:\n  {example}"))
}

fn word(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).required(true).help(help)
}

fn count(usual: &'static str, most: i64) -> Arg {
    Arg::new("count")
        .short('n')
        .value_name("COUNT")
        .default_value(usual)
        .value_parser(value_parser!(u32).range(1..=most))
        .help("How many")
}

fn fingerprint() -> Arg {
    flag("fingerprint", "It is named by its fingerprint, as lists show it")
}

fn naming() -> [Arg; 2] {
    [fingerprint(), flag("new", "It may be one that was never seen")]
}

fn for_how_long() -> Arg {
    let time = option("for", "TIME", "For how long: 10min").value_parser(ValueParser::new(length));
    // As the API calls it.
    time.visible_alias("ttl")
}

fn length(text: &str) -> Result<String, String> {
    Length::read(text)
        .map(|length| length.written)
        .map_err(|problem| format!("{}; {}", problem.message, problem.help))
}

fn quota(text: &str) -> Result<String, String> {
    QuotaText::read(text)
        .map(|quota| quota.written)
        .map_err(|problem| format!("{}; {}", problem.message, problem.help))
}

fn reading(text: &str) -> Result<String, String> {
    let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.map(|number| number.to_string()).ok_or_else(|| "must be a number such as 0.7".to_owned())
}

/// What was asked for; none when nothing was.
#[must_use]
pub fn read(given: &ArgMatches) -> Option<Ctl> {
    let (name, asked) = given.subcommand()?;
    Some(Ctl {
        admin: admin(asked),
        token_file: asked.get_one::<PathBuf>("token-file").cloned(),
        is_json: asked.get_flag("json"),
        ask: ask(name, asked)?,
    })
}

/// As given, or as the environment says, or the usual one.
fn admin(given: &ArgMatches) -> String {
    let is_given = given.value_source("admin") == Some(ValueSource::CommandLine);
    let usual = std::env::var("TIDEGATE_ADMIN").ok().filter(|_| !is_given);
    usual.unwrap_or_else(|| text(given, "admin"))
}

fn ask(name: &str, given: &ArgMatches) -> Option<Ask> {
    Some(match name {
        "status" => Ask::Status,
        "rules" => Ask::Rules,
        "callers" => Ask::Callers { sort: text(given, "sort"), count: number(given, "count") },
        "overrides" => Ask::Overrides,
        "decisions" => {
            Ask::Decisions { is_refused: given.get_flag("refused"), count: number(given, "count") }
        }
        "decision" => Ask::Decision(text(given, "ID")),
        "explain" => Ask::Explain {
            request: text(given, "REQUEST"),
            headers: given.get_many::<String>("header").unwrap_or_default().cloned().collect(),
            client: given.get_one::<IpAddr>("from").copied(),
        },
        "upstreams" => Ask::Upstreams,
        "capacity" => Ask::Capacity,
        "signals" => Ask::Signals,
        "signal" => Ask::Signal { name: text(given, "NAME"), value: text(given, "VALUE") },
        "routes" => Ask::Routes,
        "degrade" => Ask::Degrade {
            route: text(given, "ROUTE"),
            switch: text(given, "SWITCH"),
            ttl: optional(given, "for"),
        },
        "mode" => Ask::Mode {
            rule: text(given, "RULE"),
            mode: Some(text(given, "MODE")).filter(|mode| mode != "policy"),
            ttl: optional(given, "for"),
        },
        "override" => Ask::Override(Override {
            caller: caller(given, "CALLER"),
            rule: text(given, "RULE"),
            quota: optional(given, "quota"),
            burst: optional(given, "burst"),
            limit: given.get_one::<u32>("limit").copied(),
            ttl: text(given, "for"),
        }),
        "override-clear" => {
            Ask::OverrideClear { caller: caller(given, "CALLER"), rule: optional(given, "RULE") }
        }
        "block" => Ask::Block {
            caller: caller(given, "CALLER"),
            rule: optional(given, "RULE"),
            ttl: optional(given, "for"),
        },
        "unblock" => Ask::Unblock { caller: caller(given, "CALLER"), rule: optional(given, "RULE") },
        "changes" => Ask::Changes { count: number(given, "count") },
        "counter" => Ask::Counter {
            rule: text(given, "RULE"),
            key: caller(given, "KEY"),
            is_reset: given.get_flag("reset"),
        },
        "policy" => policy(given)?,
        "drain" => Ask::Drain,
        _ => return None,
    })
}

fn policy(given: &ArgMatches) -> Option<Ask> {
    let (name, asked) = given.subcommand()?;
    let file = || asked.get_one::<PathBuf>("FILE").cloned();
    match name {
        "get" => Some(Ask::PolicyGet),
        "put" => file().map(Ask::PolicyPut),
        "confirm" => Some(Ask::PolicyConfirm),
        "check" => file().map(Ask::PolicyCheck),
        _ => None,
    }
}

fn caller(given: &ArgMatches, name: &str) -> Caller {
    let is_new = given.try_get_one::<bool>("new").ok().flatten().copied().unwrap_or_default();
    Caller { written: text(given, name), is_fingerprint: given.get_flag("fingerprint"), is_new }
}

fn text(given: &ArgMatches, name: &str) -> String {
    optional(given, name).unwrap_or_default()
}

fn optional(given: &ArgMatches, name: &str) -> Option<String> {
    given.get_one::<String>(name).cloned()
}

fn number(given: &ArgMatches, name: &str) -> u32 {
    given.get_one::<u32>(name).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(words: &str) -> Result<Ctl, clap::Error> {
        let matches = command().try_get_matches_from(words.split_whitespace())?;
        Ok(read(&matches).expect("clap asks for a command"))
    }

    #[test]
    fn options_may_stand_before_and_behind_the_command() {
        command().debug_assert();
        let before = read_from("ctl --admin a:1 --json policy get").unwrap();
        let behind = read_from("ctl policy get --json --admin a:1").unwrap();
        assert_eq!(before, behind);
        assert_eq!((before.admin.as_str(), before.is_json), ("a:1", true));
        assert_eq!(read_from("ctl status").unwrap().admin, "127.0.0.1:9900");
    }

    #[test]
    fn every_command_has_an_example_that_is_understood() {
        fn all(command: &Command) -> Vec<&Command> {
            command.get_subcommands().flat_map(|sub| [vec![sub], all(sub)].concat()).collect()
        }
        let ctl = command();
        for sub in all(&ctl) {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            let example =
                help.strip_prefix("Example:\n  tidegate ").unwrap_or_else(|| panic!("{}", sub.get_name()));
            // As a shell would read it, as far as these need it.
            let (words, quoted) = example.split_once(" '").unwrap_or((example, ""));
            let words = words.split(" >").next().unwrap_or_default();
            let quoted = Some(quoted.trim_end_matches('\'')).filter(|quoted| !quoted.is_empty());
            let words: Vec<&str> = words.split_whitespace().chain(quoted).collect();
            assert!(words.contains(&sub.get_name()), "{example}");
            let read = command().try_get_matches_from(&words);
            assert!(read.is_ok(), "{example}: {read:?}");
        }
    }

    #[test]
    fn how_long_has_two_names() {
        for words in ["mode r shadow", "degrade r on", "override a r"] {
            let named = |name| read_from(&format!("ctl {words} {name} 10min")).unwrap();
            assert_eq!(named("--for"), named("--ttl"));
        }
    }

    #[test]
    fn a_switch_goes_back_to_the_policy() {
        let Ask::Mode { mode, ttl, .. } = read_from("ctl mode r policy").unwrap().ask else { panic!() };
        assert_eq!((mode, ttl), (None, None));
    }

    #[test]
    fn a_reading_is_a_number() {
        for (given, read) in [("0.70", "0.7"), ("-3", "-3"), ("1e3", "1000")] {
            let asked = read_from(&format!("ctl signal db_load {given}")).unwrap().ask;
            assert_eq!(asked, Ask::Signal { name: "db_load".to_owned(), value: read.to_owned() });
        }
        for odd in ["70%", "NaN", "inf", "much"] {
            let problem = read_from(&format!("ctl signal db_load {odd}")).unwrap_err().to_string();
            assert!(problem.contains("must be a number such as 0.7"), "{problem}");
        }
    }

    #[test]
    fn quantities_are_read_before_anything_is_sent() {
        let problem = read_from("ctl mode r shadow --for 10").unwrap_err().to_string();
        assert!(problem.contains("`10` has no unit"), "{problem}");
        let problem = read_from("ctl override a r --quota 10").unwrap_err().to_string();
        assert!(problem.contains("`10` has no unit"), "{problem}");
        assert!(read_from("ctl override a r --quota 10/s --limit 3").is_err());
    }
}
