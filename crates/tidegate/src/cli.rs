//! What was asked for on the command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use tidegate_policy::Purpose;

use crate::commands::bench::{self, Bench};
use crate::commands::ctl::{Ctl, words};
use crate::run::{Origin, Run};

/// Where a gateway without a file listens: reachable from this machine alone until somebody says otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// A command line that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Show a service under ten times its load, without and with a gateway.
    Demo(Demo),
    /// Show what quotas do, in virtual time.
    Quotas,
    /// Read a policy and say what is wrong with it.
    Check(Check),
    /// Say what would happen to a request.
    Explain(Explain),
    /// Send requests to a server and say how it answered.
    Bench(Box<Bench>),
    /// Ask a running gateway.
    Ctl(Ctl),
    /// Print the JSON Schema of policy files.
    Schema,
    /// Write a commented policy to start from.
    Init(PathBuf),
    /// Print what a shell needs to complete command lines.
    Completions(Shell),
    /// Serve as a gateway.
    Run(Run),
    /// Print the manual page, or write one for each command into a folder.
    Man(Option<PathBuf>),
}

/// What `demo` was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demo {
    /// Whether to write lines even to a terminal.
    pub is_plain: bool,
}

/// What `check` was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The file, or the first of the usual places.
    pub file: Option<PathBuf>,
    /// Who is to carry it out.
    pub purpose: Purpose,
    /// Whether to print the whole policy with every default.
    pub is_effective: bool,
    /// Whether to answer in JSON.
    pub is_json: bool,
}

/// What `explain` was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explain {
    /// The file, or the first of the usual places.
    pub file: Option<PathBuf>,
    /// The request, as it was written.
    pub request: String,
    /// More header fields, each `name: value`.
    pub headers: Vec<String>,
    /// The address that connects.
    pub client: Option<std::net::IpAddr>,
    /// How many such requests came just before it.
    pub after: u32,
    /// Whether to answer in JSON.
    pub is_json: bool,
}

/// Reads the program's own command line; prints help or what is wrong with it and exits, 2 for a mistake.
#[must_use]
pub fn parse() -> Request {
    parse_from(std::env::args_os()).unwrap_or_else(|problem| problem.exit())
}

fn parse_from<W>(words: impl IntoIterator<Item = W>) -> Result<Request, clap::Error>
where
    W: Into<OsString> + Clone,
{
    let mut command = command();
    let matches = command.try_get_matches_from_mut(words)?;
    match matches.subcommand() {
        Some(("demo", given)) if given.get_flag("quotas") => Ok(Request::Quotas),
        Some(("demo", given)) => Ok(Request::Demo(Demo { is_plain: given.get_flag("plain") })),
        Some(("run", given)) => run(given).map(Request::Run),
        Some(("check", given)) => Ok(Request::Check(Check {
            file: given.get_one::<PathBuf>("FILE").cloned(),
            purpose: purpose(given),
            is_effective: given.get_flag("effective"),
            is_json: given.get_flag("json"),
        })),
        Some(("explain", given)) => Ok(Request::Explain(explain(given))),
        Some(("bench", given)) => bench::words::read(given)
            .map(|asked| Request::Bench(Box::new(asked)))
            .ok_or_else(|| command.error(ErrorKind::MissingRequiredArgument, "a word is missing")),
        Some(("ctl", given)) => words::read(given)
            .map(Request::Ctl)
            .ok_or_else(|| command.error(ErrorKind::MissingSubcommand, "a command is missing")),
        Some(("schema", _)) => Ok(Request::Schema),
        Some(("init", given)) => Ok(Request::Init(path(given, "FILE"))),
        Some(("completions", given)) => Ok(Request::Completions(shell(given))),
        Some(("man", given)) => Ok(Request::Man(given.get_one::<PathBuf>("DIR").cloned())),
        Some(_) | None => Err(command.error(ErrorKind::MissingSubcommand, "a command is missing")),
    }
}

/// By the word after `--for`; clap knows no other.
fn purpose(given: &ArgMatches) -> Purpose {
    match given.get_one::<String>("for").map(String::as_str) {
        Some("library") => Purpose::Library,
        _ => Purpose::Run { admin: None },
    }
}

fn run(given: &ArgMatches) -> Result<Run, clap::Error> {
    let text = |name: &str| given.get_one::<String>(name).map(String::as_str);
    let rules: Vec<&str> = given.get_many::<String>("rule").unwrap_or_default().map(String::as_str).collect();
    let upstream = text("upstream");
    let origin = match given.get_one::<PathBuf>("config") {
        Some(file) => Origin::File(Some(file.clone())),
        None if upstream.is_none() => Origin::File(None),
        None => {
            let listen = text("listen").unwrap_or(DEFAULT_LISTEN);
            let written = tidegate_policy::from_flags(Some(listen), upstream, &rules);
            Origin::Flags(written.map_err(|why| command().error(ErrorKind::ValueValidation, why))?)
        }
    };
    Ok(Run { origin, admin: given.get_one::<SocketAddr>("admin").copied() })
}

fn explain(given: &ArgMatches) -> Explain {
    let headers = given.get_many::<String>("header").unwrap_or_default();
    Explain {
        file: given.get_one::<PathBuf>("config").cloned(),
        request: given.get_one::<String>("REQUEST").cloned().unwrap_or_default(),
        headers: headers.cloned().collect(),
        client: given.get_one::<std::net::IpAddr>("from").copied(),
        after: given.get_one::<u32>("after").copied().unwrap_or_default(),
        is_json: given.get_flag("json"),
    }
}

fn path(given: &ArgMatches, name: &str) -> PathBuf {
    given.get_one::<PathBuf>(name).cloned().unwrap_or_default()
}

fn shell(given: &ArgMatches) -> Shell {
    given.get_one::<Shell>("SHELL").copied().unwrap_or(Shell::Bash)
}

/// Everything the program understands.
#[must_use]
pub fn command() -> Command {
    Command::new("tidegate")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Protects services from the traffic they get and from the services they call")
        .after_help(
            "A policy is looked for in ./tidegate.toml, $XDG_CONFIG_HOME/tidegate/ and /etc/tidegate/.\n\
             Exit codes: 0 done, 1 failed, 2 not understood, 78 the policy is wrong, 130 ended by Ctrl-C.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run_command())
        .subcommand(init_command())
        .subcommand(check_command())
        .subcommand(explain_command())
        .subcommand(words::command())
        .subcommand(bench::words::command())
        .subcommand(
            Command::new("demo")
                .about("Show ten times too much, without and with a gateway: half a minute, over loopback")
                .arg(flag(
                    "plain",
                    "Write lines instead of redrawing them, as without a terminal or with NO_COLOR",
                ))
                .arg(
                    flag("quotas", "Show instead what each kind of quota does: one page, in virtual time")
                        .conflicts_with("plain"),
                )
                .after_help(
                    "Example:\n  tidegate demo\n  tidegate demo --quotas\n\
                     Ends with 1 if the gateway made no clear difference.",
                ),
        )
        .subcommand(
            Command::new("schema").about("Print the JSON Schema of policy files, for editors").after_help(
                "Example:\n  tidegate schema > tidegate.schema.json\n\
                     then begin the policy with `#:schema ./tidegate.schema.json`",
            ),
        )
        .subcommand(
            Command::new("completions")
                .about("Print what a shell needs to complete command lines")
                .arg(Arg::new("SHELL").required(true).value_parser(value_parser!(Shell)))
                .after_help("Example:\n  tidegate completions bash > /etc/bash_completion.d/tidegate"),
        )
        .subcommand(
            Command::new("man")
                .about("Print the manual page, or write one for each command into a folder")
                .arg(Arg::new("DIR").value_parser(value_parser!(PathBuf)).help("The folder"))
                .after_help("Example:\n  tidegate man /usr/local/share/man/man1\n  tidegate man | man -l -"),
        )
}

fn init_command() -> Command {
    Command::new("init")
        .about("Write a commented policy to start from; an existing file is left alone")
        .arg(
            Arg::new("FILE")
                .default_value("tidegate.toml")
                .value_parser(value_parser!(PathBuf))
                .help("Where to write it; a name that ends in .yaml or .yml gets YAML"),
        )
        .after_help("Example:\n  tidegate init && tidegate check")
}

fn run_command() -> Command {
    Command::new("run")
        .about("Serve as a gateway: everything the policy asks for")
        .arg(config())
        .arg(
            option("upstream", "URL", "Without a file: where requests go").conflicts_with("config"),
        )
        .arg(
            option("listen", "ADDRESS", "Without a file: where to listen [default: 127.0.0.1:8080]")
                .requires("upstream"),
        )
        .arg(
            option("rule", "RULE", "Without a file: a rule, 'per_key: 10/s burst 20 by header:x-api-key'")
                .requires("upstream")
                .action(ArgAction::Append),
        )
        .arg(
            option("admin", "ADDRESS", "Where the admin API listens, over what the policy says")
                .value_parser(value_parser!(SocketAddr)),
        )
        .after_help(
            "Example:\n  tidegate run -c tidegate.toml\n  \
             tidegate run --upstream http://127.0.0.1:3000 --rule 'per_key: 10/s burst 20 by header:x-api-key'\n\
             A changed policy is taken by itself, with SIGHUP at once. SIGTERM finishes what is in flight and ends.",
        )
}

fn check_command() -> Command {
    Command::new("check")
        .about("Read a policy and say everything that is wrong with it")
        .arg(Arg::new("FILE").value_parser(value_parser!(PathBuf)).help("The policy"))
        .arg(
            option("for", "WHOM", "Who is to carry it out: `run`, or the library, which has no listener")
                .value_parser(["run", "library"])
                .default_value("run"),
        )
        .arg(flag("effective", "Print the whole policy with every default and its reason"))
        .arg(flag("json", "Answer in JSON"))
        .after_help("Example:\n  tidegate check tidegate.toml\n  tidegate check --effective | less\n\
             What `run` would need is looked at too: certificates, the token, the log, whether it may listen there.")
}

/// What is said of an imagined request beside its line: more fields, and where it comes from.
pub(crate) fn imagined() -> [Arg; 2] {
    let header = option("header", "FIELD", "One more header field, 'name: value'").short('H');
    let from = option(
        "from",
        "ADDRESS",
        "The address that connects: what a trusted proxy says is believed, as by the gateway",
    );
    [header.action(ArgAction::Append), from.value_parser(value_parser!(std::net::IpAddr))]
}

fn explain_command() -> Command {
    Command::new("explain")
        .about("Say what would happen to a request, rule by rule, and why")
        .arg(config())
        .arg(
            Arg::new("REQUEST")
                .required(true)
                .help("Method, path and header fields: 'POST /v1/charges x-api-key:acct_1'"),
        )
        .args(imagined())
        .arg(
            option("after", "COUNT", "How many such requests came in the same instant before it")
                .value_parser(value_parser!(u32).range(..=1_000_000)),
        )
        .arg(flag("json", "Answer in JSON"))
        .after_help("Example:\n  tidegate explain -c tidegate.toml 'POST /v1/charges x-api-key:acct_1'")
}

fn config() -> Arg {
    option("config", "FILE", "The policy").short('c').value_parser(value_parser!(PathBuf))
}

/// `--name VALUE`.
pub(crate) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// `--name`.
pub(crate) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood() {
        let demo = parse_from(["tidegate", "demo", "--plain"]).unwrap();
        assert_eq!(demo, Request::Demo(Demo { is_plain: true }));
        let check = parse_from(["tidegate", "check", "a.toml", "--json"]).unwrap();
        let purpose = Purpose::Run { admin: None };
        let file = Some("a.toml".into());
        let expected = Check { file, purpose, is_effective: false, is_json: true };
        let library = parse_from(["tidegate", "check", "--for", "library"]).unwrap();
        assert!(matches!(library, Request::Check(Check { purpose: Purpose::Library, .. })));
        assert_eq!(check, Request::Check(expected));
        assert_eq!(parse_from(["tidegate", "init"]).unwrap(), Request::Init("tidegate.toml".into()));
    }

    #[test]
    fn a_request_to_explain_comes_with_its_fields() {
        let words = ["tidegate", "explain", "GET /", "-H", "a: b", "--from", "::1", "--after", "3"];
        let Ok(Request::Explain(explain)) = parse_from(words) else { panic!("not understood") };
        assert_eq!(explain.headers, ["a: b"]);
        assert_eq!((explain.client, explain.after), (Some("::1".parse().unwrap()), 3));
    }

    #[test]
    fn a_wrong_word_is_a_usage_error_with_a_suggestion() {
        let problem = parse_from(["tidegate", "dmo"]).unwrap_err();
        assert_eq!(problem.exit_code(), 2);
        assert!(problem.to_string().contains("'demo'"), "{problem}");
    }

    #[test]
    fn every_command_has_an_example() {
        command().debug_assert();
        for command in command().get_subcommands_mut() {
            assert!(command.render_help().to_string().contains("Example:"), "{}", command.get_name());
        }
    }
}
