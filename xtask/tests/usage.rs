//! A command line that is not understood ends with the usage and exit code 2.

use std::process::Command;

#[test]
fn unknown_words_end_with_usage_and_exit_code_2() {
    for words in [&["tets"][..], &["test", "nope"], &["bench", "proxy"], &[]] {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(words).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(complaint.starts_with("error: ") && complaint.contains("usage: cargo xtask"), "{complaint}");
    }
}

#[test]
fn help_is_no_mistake() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("--help").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("usage: cargo xtask"));
}
