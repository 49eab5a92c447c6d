//! The policies that the pages show are read by whoever writes the next one, so they must be right.

#![expect(clippy::disallowed_methods, reason = "the pages are files")]

use std::fs;
use std::path::Path;

use tidegate_policy::{Source, read};

/// The pages whose policies are whole files.
const PAGES: [&str; 3] =
    ["explanation/criticality.md", "explanation/signals.md", "how-to/read-an-incident.md"];

#[test]
fn policies_on_pages_are_right() {
    for page in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let text = fs::read_to_string(path).unwrap();
        let blocks: Vec<&str> =
            text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!blocks.is_empty(), "{page} shows no policy");
        for block in blocks {
            let source = Source::named("tidegate.toml", block.as_bytes());
            if let Err(problems) = read(source, None) {
                panic!("{page}: {problems:?}");
            }
        }
    }
}
