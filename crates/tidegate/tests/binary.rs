//! The real binary, as a user runs it.

use std::io;
use std::process::{Command, Output};

fn tidegate(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(words);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let Output { status, stderr, .. } = tidegate(&["demo", "--quotas"]).stdout(writer).output().unwrap();
    assert_eq!((status.code(), text(&stderr)), (Some(0), String::new()));
}

#[cfg(target_os = "linux")] // only there is a device that is always full
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let Output { status, stderr, .. } = tidegate(&["demo", "--quotas"]).stdout(full).output().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(text(&stderr).starts_with("error: "), "{}", text(&stderr));
}

#[test]
fn a_wrong_command_is_a_usage_error() {
    let Output { status, stdout, stderr } = tidegate(&["dmeo"]).output().unwrap();
    assert_eq!((status.code(), text(&stdout)), (Some(2), String::new()));
    assert!(text(&stderr).contains("demo"), "{}", text(&stderr));
}
