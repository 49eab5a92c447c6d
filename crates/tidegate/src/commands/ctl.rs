//! `tidegate ctl`: the admin API from a shell.
//!
//! Each command is one request and one way to show its answer: `ctl/words.rs` has the command line, `ctl/client.rs`
//! speaks HTTP, `ctl/show.rs` writes for people. With `--json` the answer is written as it came.

mod client;
mod show;
pub mod words;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tidegate_policy::Format;

use self::client::{Answer, Client, Question};
use super::imagined::Imagined;
use super::{Ended, Failure};
use crate::admin::Token;

/// What `ctl` was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ctl {
    /// Where the admin API listens.
    pub admin: String,
    /// Where the token is; else in `$TIDEGATE_TOKEN`, if there is one.
    pub token_file: Option<PathBuf>,
    /// Whether to write the answer as it came.
    pub is_json: bool,
    /// What is asked.
    pub ask: Ask,
}

/// One thing to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// How it goes.
    Status,
    /// The rules.
    Rules,
    /// Switch a rule.
    Mode {
        /// The rule.
        rule: String,
        /// The mode; none for what the policy says.
        mode: Option<String>,
        /// For how long.
        ttl: Option<String>,
    },
    /// The heaviest callers.
    Callers {
        /// By what.
        sort: String,
        /// How many.
        count: u32,
    },
    /// Callers with a limit of their own.
    Overrides,
    /// Give a caller a limit of its own.
    Override(Override),
    /// Keep a caller out.
    Block {
        /// The caller.
        caller: Caller,
        /// The rule on whose routes; none for all.
        rule: Option<String>,
        /// For how long; none for until it is ended.
        ttl: Option<String>,
    },
    /// Let a caller in again.
    Unblock {
        /// The caller.
        caller: Caller,
        /// The rule; none for all.
        rule: Option<String>,
    },
    /// What operators changed.
    Changes {
        /// How many.
        count: u32,
    },
    /// End that.
    OverrideClear {
        /// The caller.
        caller: Caller,
        /// The rule; none for all.
        rule: Option<String>,
    },
    /// What a key has used.
    Counter {
        /// The rule.
        rule: String,
        /// The key, or its fingerprint.
        key: Caller,
        /// Whether to forget it.
        is_reset: bool,
    },
    /// The last decisions.
    Decisions {
        /// Whether only refused ones.
        is_refused: bool,
        /// How many.
        count: u32,
    },
    /// One decision.
    Decision(String),
    /// What would happen to a request.
    Explain {
        /// The request, as it was written.
        request: String,
        /// More header fields.
        headers: Vec<String>,
        /// The address that connects.
        client: Option<std::net::IpAddr>,
    },
    /// How the upstreams are.
    Upstreams,
    /// How much capacity is wanted.
    Capacity,
    /// The signals.
    Signals,
    /// Tell a signal's reading.
    Signal {
        /// The signal.
        name: String,
        /// Its reading, a number.
        value: String,
    },
    /// The routes.
    Routes,
    /// Switch a route's cheaper answer.
    Degrade {
        /// The route.
        route: String,
        /// `on`, or `auto` for what the policy says.
        switch: String,
        /// For how long.
        ttl: Option<String>,
    },
    /// The policy's text.
    PolicyGet,
    /// Take a policy.
    PolicyPut(PathBuf),
    /// Take the policy that is held because of what it loses.
    PolicyConfirm,
    /// Look at a policy.
    PolicyCheck(PathBuf),
    /// Drain and end.
    Drain,
}

/// A caller, or a key, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The words.
    pub written: String,
    /// Whether it is a fingerprint.
    pub is_fingerprint: bool,
    /// Whether it may be one that was never seen.
    pub is_new: bool,
}

impl Caller {
    /// A path that ends with it, and what is asked about it.
    fn path(&self, before: &str, more: &[String]) -> String {
        let by = self.is_fingerprint.then(|| "by=fingerprint".to_owned());
        let new = self.is_new.then(|| "new=1".to_owned());
        let asked: Vec<String> = by.into_iter().chain(new).chain(more.iter().cloned()).collect();
        let mark = if asked.is_empty() { "" } else { "?" };
        format!("{before}/{}{mark}{}", encoded(&self.written), asked.join("&"))
    }
}

/// A limit of its own for a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The caller.
    pub caller: Caller,
    /// The rule.
    pub rule: String,
    /// So much in a time.
    pub quota: Option<String>,
    /// So much at once.
    pub burst: Option<String>,
    /// So many in flight.
    pub limit: Option<u32>,
    /// For how long.
    pub ttl: String,
}

/// Asks, and writes the answer.
///
/// # Errors
/// When the gateway cannot be reached or says no, a file cannot be read, or the answer cannot be written.
pub fn write(ctl: &Ctl, page: &mut dyn Write, errors: &mut dyn Write) -> Result<Ended, crate::Problem> {
    let question = question(&ctl.ask)?;
    let client = Client::new(&ctl.admin, token(ctl.token_file.as_deref())?)?;
    let answer = client.ask(&question)?;
    if answer.status == 422 {
        return wrong(ctl, &answer, page, errors);
    }
    if !(200..300).contains(&answer.status) {
        return Err(Failure::new(answer.complaint()).into());
    }
    if ctl.is_json || ctl.ask == Ask::PolicyGet {
        page.write_all(&answer.body)?;
    } else {
        let value = answer.json()?;
        page.write_all(show::answer(&ctl.ask, &value).as_bytes())?;
    }
    let is_wrong = matches!(ctl.ask, Ask::PolicyCheck(_)) && answer.json()?["ok"] == false;
    Ok(if is_wrong { Ended::BadPolicy } else { Ended::Done })
}

/// A policy that was not taken: says everything that is wrong with it, if that is why.
fn wrong(
    ctl: &Ctl,
    answer: &Answer,
    page: &mut dyn Write,
    errors: &mut dyn Write,
) -> Result<Ended, crate::Problem> {
    if ctl.is_json {
        page.write_all(&answer.body)?;
    } else {
        let text = answer.json()?;
        errors.write_all(show::lines(&text["text"]).as_bytes())?;
        writeln!(errors, "{}", answer.complaint())?;
    }
    Ok(Ended::BadPolicy)
}

fn token(file: Option<&Path>) -> Result<Option<Token>, crate::Problem> {
    const VARIABLE: &str = "TIDEGATE_TOKEN";
    Ok(match file {
        Some(path) => Some(Token::from_file(path)?),
        None if std::env::var_os(VARIABLE).is_some() => Some(Token::from_env(VARIABLE)?),
        None => None,
    })
}

fn question(ask: &Ask) -> Result<Question, Failure> {
    let get = |path: String| Question { method: "GET", path: format!("/api/v1/{path}"), body: None };
    let send = |method, path: String, value: &Value| Question {
        method,
        path: format!("/api/v1/{path}"),
        body: Some(("application/json", value.to_string().into_bytes())),
    };
    Ok(match ask {
        Ask::Status => get("status".to_owned()),
        Ask::Rules => get("rules".to_owned()),
        Ask::Mode { rule, mode, ttl } => {
            let mut switch = Map::from_iter([("mode".to_owned(), json!(mode))]);
            switch.extend(ttl.as_ref().map(|ttl| ("ttl".to_owned(), json!(ttl))));
            send("PATCH", format!("rules/{}", encoded(rule)), &Value::Object(switch))
        }
        Ask::Callers { sort, count } => get(format!("callers?sort={sort}&n={count}")),
        Ask::Overrides => get("overrides".to_owned()),
        Ask::Override(order) => send("PUT", order.caller.path("overrides", &[]), &order_json(order)?),
        Ask::OverrideClear { caller, rule } => {
            Question { method: "DELETE", ..get(caller.path("overrides", &only(rule.as_deref()))) }
        }
        Ask::Block { caller, rule, ttl } => {
            let mut order = Map::from_iter([("block".to_owned(), json!(true))]);
            order.extend(rule.as_ref().map(|rule| ("rule".to_owned(), json!(rule))));
            order.extend(ttl.as_ref().map(|ttl| ("ttl".to_owned(), json!(ttl))));
            send("PUT", caller.path("overrides", &[]), &Value::Object(order))
        }
        Ask::Unblock { caller, rule } => {
            let mut asked = only(rule.as_deref());
            asked.push("block=1".to_owned());
            Question { method: "DELETE", ..get(caller.path("overrides", &asked)) }
        }
        Ask::Changes { count } => get(format!("changes?n={count}")),
        Ask::Counter { rule, key, is_reset } => {
            let method = if *is_reset { "DELETE" } else { "GET" };
            Question { method, ..get(key.path(&format!("counters/{}", encoded(rule)), &[])) }
        }
        Ask::Decisions { is_refused, count } => {
            get(format!("decisions?refused={}&n={count}", u8::from(*is_refused)))
        }
        Ask::Decision(id) => get(format!("decisions/{}", encoded(id))),
        Ask::Explain { request, headers, client } => {
            let request = Imagined::read(request, headers, *client).map_err(Failure::new)?;
            send("POST", "explain".to_owned(), &request.to_json())
        }
        Ask::Upstreams => get("upstreams".to_owned()),
        Ask::Capacity => get("capacity".to_owned()),
        Ask::Signals => get("signals".to_owned()),
        Ask::Signal { name, value } => {
            let value: Value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            send("PUT", format!("signals/{}", encoded(name)), &json!({ "value": value }))
        }
        Ask::Routes => get("routes".to_owned()),
        Ask::Degrade { route, switch, ttl } => {
            let mut switch = Map::from_iter([("degrade".to_owned(), json!(switch))]);
            switch.extend(ttl.as_ref().map(|ttl| ("ttl".to_owned(), json!(ttl))));
            send("PATCH", format!("routes/{}", encoded(route)), &Value::Object(switch))
        }
        Ask::PolicyGet => get("policy".to_owned()),
        Ask::PolicyPut(file) => {
            Question { body: Some(policy(file)?), method: "PUT", ..get("policy".to_owned()) }
        }
        Ask::PolicyConfirm => Question { method: "POST", ..get("policy/confirm".to_owned()) },
        Ask::PolicyCheck(file) => {
            Question { body: Some(policy(file)?), method: "POST", ..get("policy/check".to_owned()) }
        }
        Ask::Drain => Question { method: "POST", ..get("drain".to_owned()) },
    })
}

/// Only what is of this rule.
fn only(rule: Option<&str>) -> Vec<String> {
    rule.map(|rule| format!("rule={}", encoded(rule))).into_iter().collect()
}

fn order_json(order: &Override) -> Result<Value, Failure> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    put("rule", Some(json!(order.rule)));
    put("quota", order.quota.as_ref().map(|quota| json!(quota)));
    let burst = order.burst.as_deref().map(|burst| {
        let number: Result<Value, _> = serde_json::from_str(burst);
        let number = number.ok().filter(Value::is_number);
        number.ok_or_else(|| Failure::new(format!("burst is `{burst}`, but must be a number")))
    });
    put("burst", burst.transpose()?);
    put("limit", order.limit.map(Value::from));
    put("ttl", Some(json!(order.ttl)));
    Ok(Value::Object(fields))
}

fn policy(file: &Path) -> Result<(&'static str, Vec<u8>), Failure> {
    let text = fs::read(file)
        .map_err(|problem| Failure::new(format!("{} cannot be read: {problem}", file.display())))?;
    let media_type = match Format::of(&file.to_string_lossy()) {
        Format::Toml => "application/toml",
        Format::Yaml => "application/yaml",
    };
    Ok((media_type, text))
}

/// What may stand as one part of a path.
fn encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let written = text
        .bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    written.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_a_path() {
        assert_eq!(encoded("acct_1"), "acct_1");
        assert_eq!(encoded("a/b|c é"), "a%2Fb%7Cc%20%C3%A9");
    }

    #[test]
    fn a_burst_that_is_no_number_is_refused() {
        let order = Override {
            caller: Caller { written: "a".to_owned(), is_fingerprint: false, is_new: false },
            rule: "r".to_owned(),
            quota: None,
            burst: Some("many".to_owned()),
            limit: None,
            ttl: "1h".to_owned(),
        };
        assert_eq!(order_json(&order).unwrap_err().to_string(), "burst is `many`, but must be a number");
    }
}
