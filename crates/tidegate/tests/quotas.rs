//! The page that `tidegate demo --quotas` writes.

use std::fs;
use std::path::Path;
use std::thread;

/// What the page must be.
const EXPECTED: &str = include_str!("quotas.txt");

fn page() -> String {
    let mut page = Vec::new();
    tidegate::demo::quotas::write(&mut page).expect("memory can be written");
    String::from_utf8(page).expect("the page is text")
}

#[test]
fn the_page_is_the_same_every_time_and_as_expected() {
    let elsewhere = thread::spawn(page);
    let first = page();
    assert_eq!(first, elsewhere.join().unwrap());
    if first != EXPECTED {
        let actual = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quotas.txt");
        fs::write(&actual, &first).unwrap();
        panic!("the page changed; if that is meant, copy {} over tests/quotas.txt", actual.display());
    }
}

#[test]
fn the_page_fits_a_terminal() {
    let too_long: Vec<&str> = EXPECTED.lines().filter(|line| line.chars().count() > 100).collect();
    assert_eq!(too_long, [""; 0]);
    assert!(EXPECTED.lines().count() <= 70);
}
