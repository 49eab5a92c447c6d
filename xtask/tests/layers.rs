//! Dependencies point down only. This reads what cargo resolved, so that no manifest can break the
//! rule unnoticed, neither directly nor through somebody else's crate.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

/// What one crate of the workspace may build on.
struct Layer {
    name: &'static str,
    /// Crates of this workspace it may name, in any kind of dependency.
    may_use: &'static [&'static str],
    /// Crates from outside that must not come into its build, however far down.
    must_not_reach: &'static [&'static str],
}

/// Every crate of the workspace has its row, and every row its crate.
const LAYERS: &[Layer] = &[
    Layer { name: "tidegate-core", may_use: &[], must_not_reach: IMPURE },
    Layer { name: "tidegate-scenario", may_use: &["tidegate-core"], must_not_reach: DRIVING },
    Layer {
        name: "tidegate-model",
        may_use: &["tidegate-core", "tidegate-scenario"],
        must_not_reach: DRIVING,
    },
    Layer { name: "tidegate-load", may_use: &["tidegate-scenario"], must_not_reach: &["tonic", "rand"] },
    Layer { name: "tidegate-policy", may_use: &["tidegate-core"], must_not_reach: DRIVING },
    Layer {
        name: "tidegate-tower",
        may_use: &["tidegate-core", "tidegate-policy"],
        must_not_reach: &["hyper", "tonic", "h2"],
    },
    Layer {
        name: "tidegate-proxy",
        may_use: &["tidegate-core", "tidegate-policy", "tidegate-tower"],
        must_not_reach: &["tonic", "axum", "clap"],
    },
    Layer {
        name: "tidegate",
        may_use: &[
            "tidegate-core",
            "tidegate-load",
            "tidegate-policy",
            "tidegate-proxy",
            "tidegate-scenario",
            "tidegate-tower",
        ],
        must_not_reach: &[],
    },
    Layer { name: "xtask", may_use: &[], must_not_reach: &[] },
];

/// What brings a clock, chance, sockets, an executor or a wire format with it.
#[rustfmt::skip]
const IMPURE: &[&str] = &[
    "tokio", "tokio-util", "async-std", "smol", "futures", "futures-util", "mio", "socket2", "tower",
    "http", "http-body", "hyper", "h2", "tonic", "prost",
    "serde", "serde_core", "serde_json", "toml",
    "rand", "rand_core", "fastrand", "getrandom", "ahash",
    "chrono", "time", "jiff", "quanta", "tracing", "log",
];

/// What brings a clock, chance, sockets or an executor with it; wire formats are what a policy is read from.
const DRIVING: &[&str] = &[
    "tokio",
    "tokio-util",
    "async-std",
    "smol",
    "futures",
    "futures-util",
    "mio",
    "socket2",
    "tower",
    "hyper",
    "h2",
    "tonic",
    "rand",
    "fastrand",
    "getrandom",
    "chrono",
    "time",
    "jiff",
    "quanta",
    "tracing",
];

/// All that the core itself is built on beside the standard library: a hasher, and a prefetch (ADR 0010).
const CORE_MAY_USE: [&str; 2] = ["foldhash", "prefetch-index"];

/// The flag under which loom replaces the atomics; loom is a test tool and brings what it needs.
const ONLY_FOR_LOOM: &str = "cfg(loom)";

struct Edge<'a> {
    to: &'a str,
    /// Whether it is part of what users build: neither a dev-dependency nor there for loom only.
    is_shipped: bool,
}

/// Everything in `metadata` that breaks the table.
fn problems(metadata: &Value) -> Vec<String> {
    let names: BTreeMap<&str, &str> =
        list(&metadata["packages"]).map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let edges: BTreeMap<&str, Vec<Edge<'_>>> = list(&metadata["resolve"]["nodes"])
        .map(|node| (text(&node["id"]), list(&node["deps"]).map(edge).collect()))
        .collect();
    let members: BTreeMap<&str, &str> =
        list(&metadata["workspace_members"]).map(|id| (names[text(id)], text(id))).collect();

    let mut problems = Vec::new();
    for layer in LAYERS.iter().filter(|layer| !members.contains_key(layer.name)) {
        problems.push(format!("{} has a row in the table but is not in the workspace", layer.name));
    }
    for (name, id) in &members {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == *name) else {
            problems.push(format!("{name} has no row in the table: say what it may use"));
            continue;
        };
        for used in edges[id].iter().map(|edge| names[edge.to]) {
            if members.contains_key(used) && !layer.may_use.contains(&used) {
                problems.push(format!("{name} must not use {used}"));
            }
        }
        for used in edges[id].iter().filter(|edge| edge.is_shipped).map(|edge| names[edge.to]) {
            if *name == "tidegate-core" && !members.contains_key(used) && !CORE_MAY_USE.contains(&used) {
                problems
                    .push(format!("{name} must not name {used}: it may use {}", CORE_MAY_USE.join(" and ")));
            }
        }
        for reached in reach(id, &edges).into_iter().map(|id| names[id]) {
            if layer.must_not_reach.contains(&reached) {
                problems.push(format!("{name} must not reach {reached}"));
            }
        }
    }
    problems
}

/// Every package that is built into `from` when users build it.
fn reach<'a>(from: &'a str, edges: &BTreeMap<&str, Vec<Edge<'a>>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        for edge in edges[id].iter().filter(|edge| edge.is_shipped) {
            if reached.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
    reached
}

fn edge(dependency: &Value) -> Edge<'_> {
    let is_shipped =
        list(&dependency["dep_kinds"]).any(|kind| kind["kind"] != "dev" && kind["target"] != ONLY_FOR_LOOM);
    Edge { to: text(&dependency["pkg"]), is_shipped }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("cargo writes a list here").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("cargo writes a text here")
}

#[test]
fn dependencies_point_down_only() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(problems(&metadata), [""; 0]);
}

/// A made-up workspace with the members of the table, and `edges` as (from, to, kind, target).
fn made_up(more: &[&str], edges: &[(&str, &str, Option<&str>, Option<&str>)]) -> Value {
    let rows = LAYERS.iter().map(|layer| layer.name);
    let members: Vec<&str> = rows.chain(more.iter().copied()).collect();
    let mut all: BTreeSet<&str> = members.iter().copied().collect();
    all.extend(edges.iter().flat_map(|(from, to, ..)| [*from, *to]));
    let nodes = all.iter().map(|name| {
        let deps = edges.iter().filter(|(from, ..)| from == name).map(
            |(_, to, kind, target)| json!({ "pkg": to, "dep_kinds": [{ "kind": kind, "target": target }] }),
        );
        json!({ "id": name, "deps": deps.collect::<Vec<_>>() })
    });
    json!({
        "workspace_members": members,
        "resolve": { "nodes": nodes.collect::<Vec<_>>() },
        "packages": all.iter().map(|name| json!({ "id": name, "name": name })).collect::<Vec<_>>(),
    })
}

#[test]
fn a_core_that_names_tokio_is_reported() {
    let metadata = made_up(&[], &[("tidegate-core", "tokio", None, None)]);
    let named = "tidegate-core must not name tokio: it may use foldhash and prefetch-index";
    assert_eq!(problems(&metadata), [named, "tidegate-core must not reach tokio"]);
}

#[test]
fn a_core_that_names_a_third_crate_is_reported_however_harmless() {
    let metadata = made_up(
        &[],
        &[
            ("tidegate-core", "foldhash", None, None),
            ("tidegate-core", "prefetch-index", None, None),
            ("tidegate-core", "smallvec", None, None),
            ("tidegate-policy", "smallvec", None, None),
        ],
    );
    let named = "tidegate-core must not name smallvec: it may use foldhash and prefetch-index";
    assert_eq!(problems(&metadata), [named]);
}

#[test]
fn a_core_that_reaches_tokio_through_others_is_reported() {
    let metadata = made_up(
        &[],
        &[
            ("tidegate-core", "foldhash", None, None),
            ("foldhash", "useful", None, Some("cfg(unix)")),
            ("useful", "tokio", Some("build"), None),
        ],
    );
    assert_eq!(problems(&metadata), ["tidegate-core must not reach tokio"]);
}

#[test]
fn a_core_that_uses_a_crate_above_it_is_reported_even_for_tests() {
    let metadata = made_up(&[], &[("tidegate-core", "tidegate", Some("dev"), None)]);
    assert_eq!(problems(&metadata), ["tidegate-core must not use tidegate"]);
}

#[test]
fn a_crate_without_a_row_and_a_row_without_a_crate_are_reported() {
    let mut metadata = made_up(&["tidegate-new"], &[]);
    assert_eq!(problems(&metadata), ["tidegate-new has no row in the table: say what it may use"]);
    metadata["workspace_members"] =
        json!(LAYERS.iter().map(|layer| layer.name).filter(|name| *name != "xtask").collect::<Vec<_>>());
    assert_eq!(problems(&metadata), ["xtask has a row in the table but is not in the workspace"]);
}

#[test]
fn what_is_for_tests_only_is_free() {
    let metadata = made_up(
        &[],
        &[
            ("tidegate-core", "proptest", Some("dev"), None),
            ("proptest", "rand", None, None),
            ("tidegate-core", "loom", None, Some(ONLY_FOR_LOOM)),
            ("loom", "tracing", None, None),
            ("tidegate", "tokio", None, None),
            ("tidegate", "tidegate-core", None, None),
        ],
    );
    assert_eq!(problems(&metadata), [""; 0]);
}
