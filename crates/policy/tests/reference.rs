//! The generated reference is what is committed.

use std::fs;
use std::path::Path;

use tidegate_policy::{reference, schema};

fn compare(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/reference/{name} is not what the declarations say: run\n    BLESS=1 cargo test -p tidegate-policy --test reference\nand commit it"
    );
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
    compare("tidegate.schema.json", &format!("{:#}\n", schema()));
}
