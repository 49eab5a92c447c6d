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

/// A starting policy with every line used that is commented out.
fn uncommented(starter: &str) -> String {
    let used = starter.lines().map(|line| match line.trim_start().starts_with('#') {
        true => line.replacen("# ", "", 1),
        false => line.to_owned(),
    });
    let is_policy = |line: &String| {
        let line = line.trim_start().trim_start_matches("- ");
        let key = line.split([' ', ':']).next().unwrap_or_default();
        let rest = &line[key.len()..];
        line.is_empty()
            || line.starts_with('[')
            || rest.trim_start().starts_with("= ")
            || rest.starts_with(':')
    };
    used.filter(is_policy).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_starting_policy_is_fine_and_the_same_in_both_spellings() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("init");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    let mut effective = Vec::new();
    for name in ["tidegate.toml", "tidegate.yaml", "tidegate.yml"] {
        let file = folder.join(name);
        let name = file.to_str().unwrap();
        text(&tidegate(&["init", name]));
        let check = tidegate(&["check", name]);
        assert_eq!(text(&check), format!("{name}: fine. 2 rules, 1 route, 1 upstream.\n"));
        assert!(check.stderr.is_empty(), "{check:?}");

        fs::write(&file, uncommented(&fs::read_to_string(&file).unwrap())).unwrap();
        let check = tidegate(&["check", name]);
        assert_eq!(text(&check), format!("{name}: fine. 4 rules, 2 routes, 1 upstream.\n"));
        let whole = text(&tidegate(&["check", "--effective", name]));
        effective.push(whole.replace(name, "it"));
    }
    assert_eq!(effective[0], effective[1]);
    assert_eq!(effective[1], effective[2]);
}

#[test]
fn the_whole_policy_is_there_for_programs_too() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd/check.in/tidegate.toml");
    let answer = text(&tidegate(&["check", "--effective", "--json", file.to_str().unwrap()]));
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let whole = &answer["effective"];
    assert_eq!((&answer["ok"], &whole["server"]["drain"]), (&true.into(), &"25s".into()), "{answer:#}");
    assert_eq!(whole["rule"]["per_key"]["burst"], 20);
    assert_eq!(whole["listener"][0]["bind"], "0.0.0.0:8080");
    let wrong = file.with_file_name("mistyped.toml");
    let answer = tidegate(&["check", "--effective", "--json", wrong.to_str().unwrap()]);
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!((&answer["ok"], answer.get("effective")), (&false.into(), None));
}

#[test]
fn an_existing_file_is_left_alone_and_json_is_not_begun() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("init-not");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tidegate.toml");
    fs::write(&file, "mine").unwrap();
    for (name, why) in [
        ("tidegate.toml", "is there already, and is left as it is"),
        ("tidegate.json", "would be JSON, which has no comments; name it .toml or .yaml"),
    ] {
        let refused = tidegate(&["init", folder.join(name).to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8(refused.stderr).unwrap().contains(why), "{name}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert!(!folder.join("tidegate.json").exists());
}

#[test]
fn what_shells_and_editors_need_is_printed() {
    let schema: serde_json::Value = serde_json::from_str(&text(&tidegate(&["schema"]))).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&tidegate(&["completions", shell])).contains("explain"), "{shell}");
    }
    assert!(text(&tidegate(&["man"])).contains(".TH tidegate 1"));
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    fs::create_dir_all(&folder).unwrap();
    text(&tidegate(&["man", folder.to_str().unwrap()]));
    for page in ["tidegate", "tidegate-run", "tidegate-check", "tidegate-ctl", "tidegate-ctl-policy-confirm"]
    {
        let written = fs::read_to_string(folder.join(page).with_extension("1")).unwrap();
        assert!(written.contains(&format!(".TH {page} 1")), "{page}");
    }
    let nowhere = tidegate(&["man", folder.join("none").to_str().unwrap()]);
    assert_eq!(nowhere.status.code(), Some(1), "{nowhere:?}");
}
