//! The commands as users run them: the real binary, its exact output, its exit codes.

use std::fs;
use std::process::{Command, Output};

fn tidegate(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate")).args(words).output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("answers are text")
}

#[test]
fn commands_answer_as_written_in_cases_and_tutorial() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").case("../../docs/tutorial/*.md");
}

#[test]
fn the_starting_policy_is_fine_and_an_existing_file_is_left_alone() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("init");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tidegate.toml");
    let name = file.to_str().unwrap();
    text(&tidegate(&["init", name]));
    let check = tidegate(&["check", name]);
    assert_eq!(text(&check), format!("{name}: fine. 1 rule, 1 route, 1 upstream.\n"));
    assert!(check.stderr.is_empty(), "{check:?}");

    // Every line that is commented out may be used.
    let starter = fs::read_to_string(&file).unwrap();
    let whole: Vec<&str> = starter.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
    let is_policy = |line: &&str| line.is_empty() || line.starts_with('[') || line.contains(" = ");
    let whole: Vec<&str> = whole.into_iter().filter(is_policy).collect();
    fs::write(&file, whole.join("\n")).unwrap();
    assert_eq!(text(&tidegate(&["check", name])), format!("{name}: fine. 3 rules, 2 routes, 1 upstream.\n"));

    let again = tidegate(&["init", name]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8(again.stderr).unwrap().contains("is there already, and is left as it is"));
}

#[test]
fn what_shells_and_editors_need_is_printed() {
    let schema: serde_json::Value = serde_json::from_str(&text(&tidegate(&["schema"]))).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&tidegate(&["completions", shell])).contains("explain"), "{shell}");
    }
    assert!(text(&tidegate(&["man"])).contains(".TH tidegate 1"));
}
