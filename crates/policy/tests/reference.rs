//! The generated reference is what is committed.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_policy::{reference, schema};

const STALE: &str = "is not what the declarations say: run
    BLESS=1 cargo test -p tidegate-policy --test reference
and commit it";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference")
}

fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn compare(name: &str, generated: &str) {
    let path = directory().join(name);
    if is_blessed() {
        fs::write(&path, generated).expect("the reference can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "docs/reference/{name} {STALE}");
}

#[test]
fn the_reference_of_keys_is_up_to_date() {
    compare("policy.md", &reference::keys());
}

#[test]
fn the_reference_of_codes_is_up_to_date() {
    compare("errors.md", &reference::codes());
}

#[test]
fn the_schema_is_up_to_date() {
    let path = directory().join("tidegate.schema.json");
    if is_blessed() {
        fs::write(&path, format!("{:#}\n", schema())).unwrap();
    }
    // As values, for the order of an object's fields depends on what else is built.
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let committed: serde_json::Value = serde_json::from_str(&committed).unwrap_or_default();
    assert!(committed == schema(), "docs/reference/tidegate.schema.json {STALE}");
}
