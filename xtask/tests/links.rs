//! Every relative link in the project's Markdown leads to a file that exists, and to a heading in it
//! where it names one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The targets of the links in `markdown` that stay inside the repository.
fn relative_links(markdown: &str) -> Vec<&str> {
    prose(markdown)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split([')', ' ']).next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// The lines outside fenced blocks of code.
fn prose(markdown: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    markdown.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors the headings of `markdown` get where it is rendered.
fn anchors(markdown: &str) -> Vec<String> {
    let headings = prose(markdown).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let kept = line.trim_start_matches('#').trim().chars();
            let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
        })
        .collect()
}

/// Why `target`, written in `file`, leads nowhere; nothing when it leads somewhere.
fn problem(file: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let goal = if path.is_empty() { file.to_owned() } else { file.parent()?.join(path) };
    if !goal.exists() {
        return Some(format!("{}: {target} does not exist", file.display()));
    }
    if anchor.is_empty() {
        return None;
    }
    let headings = anchors(&fs::read_to_string(&goal).unwrap_or_default());
    let is_there = headings.iter().any(|heading| heading == anchor);
    (!is_there).then(|| format!("{}: {target} names no heading", file.display()))
}

/// Every Markdown file of the repository, without what was built or hidden.
fn markdown_files(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            markdown_files(&path, files)?;
        } else if name.ends_with(".md") {
            files.push(path);
        }
    }
    Ok(())
}

#[test]
fn every_relative_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    markdown_files(root, &mut files).unwrap();
    let mut problems = Vec::new();
    let mut links = 0;
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let targets = relative_links(&text);
        links += targets.len();
        problems.extend(targets.iter().filter_map(|target| problem(file, target)));
    }
    assert_eq!(problems, [""; 0]);
    assert!(links >= 20, "only {links} links found in {} files: is the search still right?", files.len());
}

#[test]
fn links_are_found_in_prose_and_not_in_code() {
    let text =
        "See [a](a.md) and ![b](img/b.svg \"title\").\n```\n[no](no.md)\n```\n[web](https://x.y) [c](#top)\n";
    assert_eq!(relative_links(text), ["a.md", "img/b.svg", "#top"]);
}

#[test]
fn a_link_to_nothing_is_reported() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(problem(&here, "src/main.rs").is_none());
    assert!(problem(&here, "src/none.rs").unwrap().ends_with("src/none.rs does not exist"));
    assert!(problem(&here, "src/main.rs#none").unwrap().ends_with("src/main.rs#none names no heading"));
}

#[test]
fn anchors_follow_the_headings() {
    assert_eq!(
        anchors("# Life of a request\n\n## What `core` must not do\n"),
        ["life-of-a-request", "what-core-must-not-do"]
    );
}
