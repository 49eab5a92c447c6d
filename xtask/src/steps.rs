//! What `cargo xtask test` checks, in order: the quick checks first, the slow ones last.

use std::process::Command;

use crate::cli::Suite;
use crate::project::Project;
use crate::tools::{self, Trouble};

/// One check: a name for the summary and the commands that must all succeed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Makes ready what the commands need and returns them.
    pub(crate) prepare: fn(&Project) -> Result<Vec<Command>, Trouble>,
}

/// Every step of `cargo xtask test`.
pub(crate) fn all() -> Vec<Step> {
    vec![
        Step { name: "fmt", what: "formatting of all workspaces", prepare: fmt },
        Step { name: "clippy", what: "lints of both workspaces, warnings are errors", prepare: clippy },
        Step { name: "test", what: "tests and doc-tests, layers and links included", prepare: test },
        Step { name: "release", what: "the core's tests again, optimised as users run it", prepare: release },
        Step {
            name: "scenarios",
            what: "five kinds of overload over real sockets, optimised as users run it",
            prepare: scenarios,
        },
        Step { name: "docs", what: "documentation without warnings", prepare: docs },
        Step {
            name: "loom",
            what: "interleavings of the lock-free structures, with at most two forced switches",
            prepare: loom,
        },
        Step { name: "fuzz", what: "what a fuzzer makes up, for some seconds a target", prepare: fuzz },
        Step { name: "deny", what: "licences, bans and sources of dependencies", prepare: deny },
        Step { name: "instructions", what: "instruction counts under valgrind", prepare: instructions },
        comparison(Suite::CoreQuick),
    ]
}

/// The comparison with other libraries.
pub(crate) fn comparison(suite: Suite) -> Step {
    match suite {
        Suite::Core => Step {
            name: "comparison",
            what: "comparison with other libraries",
            prepare: |project| Ok(vec![bench_run(project, &["core"])]),
        },
        Suite::CoreQuick => Step {
            name: "comparison",
            what: "comparison with other libraries, a smoke run",
            prepare: |project| Ok(vec![bench_run(project, &["core", "--quick"])]),
        },
    }
}

fn fmt(project: &Project) -> Result<Vec<Command>, Trouble> {
    Ok(vec![
        project.cargo("fmt --all --check"),
        project.cargo("fmt --all --check --manifest-path bench/Cargo.toml"),
        project.cargo("fmt --all --check --manifest-path fuzz/Cargo.toml"),
    ])
}

fn clippy(project: &Project) -> Result<Vec<Command>, Trouble> {
    Ok(vec![
        project.cargo("clippy --workspace --all-targets -- -D warnings"),
        project.cargo("clippy --workspace --all-targets --manifest-path bench/Cargo.toml -- -D warnings"),
    ])
}

fn test(project: &Project) -> Result<Vec<Command>, Trouble> {
    tools::need_promtool(project)?;
    Ok(vec![project.cargo("test --workspace")])
}

fn release(project: &Project) -> Result<Vec<Command>, Trouble> {
    let mut test = project.cargo("test -p tidegate-core --release");
    // What is optimised across crates is the program; here it would only be waited for.
    test.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    Ok(vec![test])
}

fn scenarios(project: &Project) -> Result<Vec<Command>, Trouble> {
    Ok(vec![optimised(project, "scenarios", "short::")])
}

/// The tests in this module of one of the program's test files, all of them without a name; optimised as users run it.
pub(crate) fn optimised(project: &Project, file: &str, module: &str) -> Command {
    let mut test = project.cargo(&format!("test -p tidegate --release --test {file} -- {module}"));
    test.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    test
}

fn docs(project: &Project) -> Result<Vec<Command>, Trouble> {
    let mut doc = project.cargo("doc --workspace --no-deps");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    Ok(vec![doc])
}

fn loom(project: &Project) -> Result<Vec<Command>, Trouble> {
    let mut loom = project.cargo("test -p tidegate-core --test loom --release");
    loom.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    // A directory of its own: other flags in the shared one would rebuild everything, there and back.
    loom.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", project.built("loom"));
    Ok(vec![loom])
}

/// What tells the fuzzer which branches an input took: flags of the compiler's back end, which need no nightly.
const COVERAGE: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The targets in `fuzz/targets`.
const FUZZED: [&str; 11] = [
    "policy_toml",
    "policy_yaml",
    "callers_table",
    "sent_policy",
    "matchers",
    "client_address",
    "proxy_protocol",
    "framing",
    "hop_by_hop",
    "heads",
    "heads_h2",
];

/// How long all of them run together.
const FUZZ_SECONDS: usize = 28;

fn fuzz(project: &Project) -> Result<Vec<Command>, Trouble> {
    tools::need_cpp_compiler(project)?;
    let host = tools::host(project)?;
    let built = project.built("fuzz");
    let mut build = project.cargo("build --release --locked --manifest-path fuzz/Cargo.toml --target");
    // Only what is built for a named target gets the flags; build scripts must do without.
    build.arg(&host).env("RUSTFLAGS", COVERAGE).env("CARGO_TARGET_DIR", &built);
    let mut commands = vec![build];
    for target in FUZZED {
        let corpus = built.join("corpus").join(target);
        tools::need_directory(&corpus)?;
        let mut run = project.command(built.join(&host).join("release").join(target));
        run.arg(corpus).arg(project.path("fuzz/seeds").join(target));
        run.arg(format!("-max_total_time={}", FUZZ_SECONDS / FUZZED.len()));
        run.args(["-max_len=4096", "-timeout=5", "-verbosity=0"]);
        run.arg(format!("-artifact_prefix={}/", built.display()));
        commands.push(run);
    }
    Ok(commands)
}

fn deny(project: &Project) -> Result<Vec<Command>, Trouble> {
    tools::need_cargo_deny(project)?;
    // Advisories are left out: they need a clone of a database that is not reachable from everywhere.
    Ok(vec![project.cargo("deny check licenses bans sources")])
}

fn instructions(project: &Project) -> Result<Vec<Command>, Trouble> {
    tools::need_valgrind(project)?;
    tools::need_gungraun_runner(project)?;
    Ok(vec![project.cargo("bench --manifest-path bench/Cargo.toml -p tidegate-bench-instructions")])
}

fn bench_run(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.command(project.path("bench/run"));
    command.args(arguments);
    command
}
