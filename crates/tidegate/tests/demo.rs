//! What `tidegate demo` shows, over real sockets, in a shorter time and with a smaller service.

use std::time::Duration;

use tidegate::commands::Ended;
use tidegate::demo::overload::{Show, Style, write};

/// What a build without optimisation can send, answer and refuse beside other tests: 200 requests a second
/// are served, 2000 are sent, twice.
const SHOW: Show = Show {
    workers: 4,
    before: Duration::from_secs(2),
    flood: Duration::from_secs(5),
    after: Duration::from_secs(2),
    forwarding: Duration::from_secs(1),
    style: Style::Lines,
};

#[test]
fn ten_times_too_much_is_borne_and_a_refusal_is_explained() {
    let mut page = Vec::new();
    let ended = write(&mut page, &SHOW);
    let page = String::from_utf8(page).expect("the page is text");
    let ended = ended.unwrap_or_else(|problem| panic!("{problem}\n{page}"));
    assert_eq!(ended, Ended::Done, "{page}");

    let row = |what: &str| -> [f64; 2] {
        let line = page.lines().find(|line| line.trim_start().starts_with(what));
        let line = line.unwrap_or_else(|| panic!("{what} in\n{page}"));
        let cells = &line[what.len() + line.len() - line.trim_start().len()..];
        let numbers = cells.split_whitespace().filter_map(|word| word.parse().ok());
        // A rate may stand before the two columns.
        let numbers: Vec<f64> = numbers.collect();
        numbers[numbers.len() - 2..].try_into().expect("two columns")
    };
    for what in ["answered in time, a second", "served of critical_plus", "served of critical,"] {
        let [without, behind] = row(what);
        assert!(behind > 2.0 * without, "{what} in\n{page}");
    }
    let [_, lowest] = row("served of sheddable,");
    let [_, highest] = row("served of critical_plus");
    assert!(lowest < highest, "{page}");

    for told in
        ["HTTP/1.1 503 Service Unavailable", "\"rule\": \"upstream:default\"", "found out from its answers"]
    {
        assert!(page.contains(told), "{told} in\n{page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let table: Vec<&str> = page.lines().rev().take(24).collect();
    assert!(table[0].trim_start().starts_with("served of all"), "the table is the last thing:\n{page}");
    assert!(table.iter().any(|line| line.ends_with("behind Tidegate")), "all of it:\n{page}");
    let seconds = page.lines().filter(|line| line.contains(" s flood")).count();
    assert!(seconds >= 3, "about a line a second in\n{page}");
}
