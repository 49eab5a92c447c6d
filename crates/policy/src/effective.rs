//! A policy with every default filled in, as TOML that can be read again.
//!
//! What was written stands as it was written, and short forms are written out. What was not has its value
//! with the reason as a comment, or, where nothing stands in for it, a comment that says what that means.
//! Reading the result gives the same policy.

mod short;
mod toml;

use std::fmt::Write;

use crate::document::read::Read;
use crate::document::spec::{Absent, Key, Section, Shape, Support};
use crate::document::top::PolicyDoc;
use crate::policy::{
    Concurrency, Limit, LimitAlgorithm, Policy, Rate, Rule, Shape as Counting, Upstream, UpstreamProtocol,
};
use crate::problem::{Problem, Problems};
use crate::text::{self, Node, Source, Value};
use short::written_out;
use toml::{header, inline};
pub(crate) use toml::{key, quoted};

/// Writes it.
///
/// # Errors
/// With everything that is wrong, as [`read`](crate::read) has it.
pub fn effective(policy: Source<'_>, callers: Option<Source<'_>>) -> Result<String, Vec<Problem>> {
    let (compiled, _) = crate::read(policy, callers)?;
    let mut problems = Problems::default();
    let (Some(root), Some(top)) = (text::read(policy, &mut problems), PolicyDoc::SHAPE.section()) else {
        return Err(problems.sorted());
    };
    let root = written_out(root);
    let mut writer = Writer { out: String::new(), root: &root, policy: &compiled };
    let _ =
        writeln!(writer.out, "# {} with every default filled in.", policy.name.replace(['\n', '\r'], " "));
    writer.section(top, Some(&root), &At::Top, &[]);
    if root.get("route").is_none() {
        writer.only_route();
    }
    Ok(writer.out)
}

/// The same for programs: an object of the language's keys and values, numbers as they were written.
///
/// # Errors
/// With everything that is wrong, as [`read`](crate::read) has it.
pub fn effective_json(
    policy: Source<'_>,
    callers: Option<Source<'_>>,
) -> Result<serde_json::Value, Vec<Problem>> {
    let text = effective(policy, callers)?;
    let mut problems = Problems::default();
    let source = Source { name: policy.name, text: text.as_bytes(), format: text::Format::Toml };
    let root = text::read(source, &mut problems);
    root.map(|root| json(&root)).ok_or_else(|| problems.sorted())
}

fn json(node: &Node) -> serde_json::Value {
    use serde_json::Value as Json;
    match &node.value {
        Value::Text(text) => Json::from(text.as_str()),
        Value::Number(number) => serde_json::from_str(number).unwrap_or_else(|_| Json::from(number.as_str())),
        Value::Boolean(value) => Json::from(*value),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Table(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), json(&entry.value))).collect()
        }
        Value::Other(_) => Json::Null,
    }
}

/// What the compiled policy knows of the table that is being written.
enum At<'a> {
    Top,
    Rule(&'a Rule),
    /// Numbers that stand in for the rule's own.
    Numbers(&'a Limit),
    Route(usize),
    Listener(usize),
    Upstream(&'a Upstream),
    /// How many requests an upstream may have in flight.
    Concurrency(&'a Concurrency),
    Other,
}

/// What stands in for a key that was not written.
enum Fill {
    /// What the declaration says.
    Declared,
    /// This value.
    Value(String),
    /// Nothing: the key means nothing here.
    Leave,
}

struct Writer<'a> {
    out: String,
    root: &'a Node,
    policy: &'a Policy,
}

impl Writer<'_> {
    /// Single values first, since in TOML everything after a header belongs to it; then what has headers.
    fn section(&mut self, section: &Section, node: Option<&Node>, at: &At<'_>, path: &[&str]) {
        let built = || section.keys.iter().filter(|key| key.support == Support::Built);
        for key in built() {
            let written = node.and_then(|node| node.get(key.name));
            if key.shape.section().is_none() || is_single(written) {
                self.value(key, written, at);
            } else if written.is_none() && !is_always_shown(key, path) {
                self.nothing(key, at);
            }
        }
        for key in built() {
            let written = node.and_then(|node| node.get(key.name));
            if written.is_some_and(|written| !is_single(Some(written))) || is_always_shown(key, path) {
                self.tables(key, written, at, path);
            }
        }
    }

    fn value(&mut self, key: &Key, written: Option<&Node>, at: &At<'_>) {
        if let Some(written) = written {
            let _ = writeln!(self.out, "{} = {}", key.name, inline(written));
            return;
        }
        let (value, reason) = match (self.fill(key.name, at), key.absent) {
            (Fill::Leave, _) => return,
            (Fill::Value(value), Absent::Follows(reason)) => (value, reason),
            (Fill::Value(value), _) => (value, "as it is compiled"),
            (Fill::Declared, Absent::Default(value, reason)) => (value.to_owned(), reason),
            (
                Fill::Declared,
                Absent::Nothing(_) | Absent::Follows(_) | Absent::Required | Absent::EachDefault,
            ) => {
                return self.nothing(key, at);
            }
        };
        let _ = writeln!(self.out, "{} = {value}  # default: {reason}", key.name);
    }

    fn nothing(&mut self, key: &Key, at: &At<'_>) {
        if let (Absent::Nothing(words) | Absent::Follows(words), Fill::Declared) =
            (key.absent, self.fill(key.name, at))
        {
            let _ = writeln!(self.out, "# {}: not given; {words}", key.name);
        }
    }

    /// What has headers: a table, tables by name, or a list of tables.
    fn tables(&mut self, key: &Key, written: Option<&Node>, at: &At<'_>, path: &[&str]) {
        let Some(section) = key.shape.section() else { return };
        let path: Vec<&str> = path.iter().copied().chain([key.name]).collect();
        match (key.shape, written.map(|written| &written.value)) {
            (Shape::Section(_), _) => {
                let _ = writeln!(self.out, "\n[{}]", header(&path));
                let inner = match (at, key.name) {
                    (At::Rule(rule), "shadow") => rule.shadow.as_ref().map_or(At::Other, At::Numbers),
                    (At::Upstream(upstream), "concurrency") => At::Concurrency(&upstream.concurrency),
                    _ => At::Other,
                };
                self.section(section, written, &inner, &path);
            }
            (_, Some(Value::Table(entries))) => {
                for entry in entries {
                    let path: Vec<&str> = path.iter().copied().chain([entry.key.as_str()]).collect();
                    let _ = writeln!(self.out, "\n[{}]", header(&path));
                    let policy = self.policy;
                    self.section(
                        section,
                        Some(&entry.value),
                        &named(policy, at, key.name, &entry.key),
                        &path,
                    );
                }
            }
            (_, Some(Value::List(items))) => {
                for (index, item) in items.iter().enumerate() {
                    let _ = writeln!(self.out, "\n[[{}]]", header(&path));
                    let inner = match (at, key.name) {
                        (At::Top, "route") => At::Route(index),
                        (At::Top, "listener") => At::Listener(index),
                        _ => At::Other,
                    };
                    self.section(section, Some(item), &inner, &path);
                }
            }
            _ => {}
        }
    }

    /// What stands in for a key, where that follows from others.
    fn fill(&self, key: &str, at: &At<'_>) -> Fill {
        match at {
            At::Rule(rule) => self.fill_rule(key, rule),
            At::Numbers(limit) => match (key, limit) {
                ("burst", Limit::Rate(rate)) => burst(rate).map_or(Fill::Leave, Fill::Value),
                _ => Fill::Leave,
            },
            At::Route(index) => {
                let Some(route) = self.policy.routes.get(*index) else { return Fill::Declared };
                match (key, &route.upstream) {
                    ("name", _) => Fill::Value(quoted(&route.name)),
                    ("upstream", Some(upstream)) => Fill::Value(quoted(upstream)),
                    ("upstream", None) => Fill::Leave,
                    _ => Fill::Declared,
                }
            }
            At::Listener(index) if key == "name" => {
                let listener = self.policy.listeners.get(*index);
                listener.map_or(Fill::Declared, |listener| Fill::Value(quoted(&listener.name)))
            }
            // It stands among the listeners.
            At::Top if key == "listen" && !self.policy.listeners.is_empty() => Fill::Leave,
            At::Upstream(upstream) if key == "protocol" => Fill::Value(quoted(match upstream.protocol {
                UpstreamProtocol::Http1 => "http/1.1",
                UpstreamProtocol::H2 => "h2",
                UpstreamProtocol::Auto => "auto",
            })),
            At::Concurrency(limit) => match (key, limit.algorithm) {
                ("min" | "latency", LimitAlgorithm::Fixed) => Fill::Leave,
                ("min", _) => Fill::Value(limit.min.to_string()),
                _ => Fill::Declared,
            },
            At::Top | At::Listener(_) | At::Upstream(_) | At::Other => Fill::Declared,
        }
    }

    fn fill_rule(&self, key: &str, rule: &Rule) -> Fill {
        let rate = match &rule.limit {
            Limit::Rate(rate) => Some(rate),
            Limit::Concurrency(_) | Limit::Reserve(_) | Limit::Shed(_) => None,
        };
        let (kind, is_keyed) = match &rule.limit {
            Limit::Rate(_) => ("rate", true),
            Limit::Concurrency(_) => ("concurrency", true),
            Limit::Reserve(_) => ("reserve", false),
            Limit::Shed(_) => ("shed", false),
        };
        let only_if = |applies: bool| if applies { Fill::Declared } else { Fill::Leave };
        let counted = rate.map(|rate| &rate.shape);
        match key {
            "kind" => Fill::Value(quoted(kind)),
            "burst" => rate.and_then(|rate| burst(rate)).map_or(Fill::Leave, Fill::Value),
            "key" | "plans" | "per_criticality" | "shadow" => only_if(is_keyed),
            "capacity" | "reserve" => only_if(kind == "reserve"),
            "target" | "order" | "ramp" => only_if(kind == "shed"),
            "max_keys" if !is_keyed => Fill::Leave,
            "max_keys" => {
                let written = self.root.get("caller").and_then(|caller| caller.get("max_keys"));
                Fill::Value(written.map_or_else(|| "100000".to_owned(), inline))
            }
            "quota" | "algorithm" | "cost" => only_if(rate.is_some()),
            "limit" => only_if(kind == "concurrency"),
            "buckets" => only_if(matches!(counted, Some(Counting::SlidingWindow(_)))),
            "nodelay" => only_if(matches!(counted, Some(Counting::LeakyBucket(_)))),
            "delay" => {
                let is_free = self.written(rule, "nodelay");
                only_if(matches!(counted, Some(Counting::LeakyBucket(_))) && !is_free)
            }
            "max_wait" => only_if(matches!(counted, Some(Counting::Smooth(_) | Counting::WarmUp(_)))),
            "warm_up" | "cold_factor" => only_if(matches!(counted, Some(Counting::WarmUp(_)))),
            "timezone" => only_if(matches!(counted, Some(Counting::Calendar(_)))),
            _ => Fill::Declared,
        }
    }

    /// Whether a rule has this key and it is true.
    fn written(&self, rule: &Rule, key: &str) -> bool {
        let node =
            self.root.get("rule").and_then(|rules| rules.get(&rule.name)).and_then(|rule| rule.get(key));
        matches!(node.map(|node| &node.value), Some(Value::Boolean(true)))
    }

    /// The route that stands in where the file has none.
    fn only_route(&mut self) {
        for route in &self.policy.routes {
            let rules = route.rules.iter().map(|rule| quoted(&self.policy.rules[*rule].name));
            let rules = rules.collect::<Vec<_>>().join(", ");
            let _ = writeln!(self.out, "\n[[route]]  # default: without routes, one takes everything");
            let _ = writeln!(self.out, "name = {}\nrules = [{rules}]", quoted(&route.name));
            if let Some(upstream) = &route.upstream {
                let _ = writeln!(self.out, "upstream = {}", quoted(upstream));
            }
            let _ = writeln!(self.out, "cost = 1\nexempt = false\nupgrade = []");
        }
    }
}

fn is_single(written: Option<&Node>) -> bool {
    written.is_some_and(|node| !matches!(node.value, Value::Table(_) | Value::List(_)))
}

/// Tables whose keys have their defaults are shown even when they were not written.
fn is_always_shown(key: &Key, path: &[&str]) -> bool {
    key.absent == Absent::EachDefault || path.is_empty() && matches!(key.shape, Shape::Section(_))
}

fn named<'a>(policy: &'a Policy, at: &At<'a>, group: &str, name: &str) -> At<'a> {
    match (at, group) {
        (At::Top, "rule") => {
            policy.rules.iter().find(|rule| rule.name == name).map_or(At::Other, |rule| At::Rule(rule))
        }
        (At::Top, "upstream") => {
            let upstream = policy.upstreams.iter().find(|upstream| upstream.name == name);
            upstream.map_or(At::Other, |upstream| At::Upstream(upstream))
        }
        (At::Rule(rule), "plans") => rule.plans.get(name).map_or(At::Other, At::Numbers),
        (At::Rule(rule), "per_criticality") => {
            let level = name.parse().ok().and_then(|level| rule.per_criticality.get(&level));
            level.map_or(At::Other, At::Numbers)
        }
        _ => At::Other,
    }
}

/// The burst of an algorithm that has one, as it would be written.
fn burst(rate: &Rate) -> Option<String> {
    match rate.shape {
        Counting::TokenBucket(_) | Counting::Smooth(_) => Some(rate.most().to_string()),
        Counting::LeakyBucket(_) => Some(rate.most().minus(tidegate_core::Cost::ONE).to_string()),
        Counting::WarmUp(_)
        | Counting::FixedWindow(_)
        | Counting::Calendar(_)
        | Counting::SlidingWindow(_)
        | Counting::SlidingLog(_) => None,
    }
}
