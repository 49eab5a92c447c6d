//! What `tidegate demo` shows, over real sockets, in a shorter time.

use std::time::Duration;

#[test]
fn a_drowning_service_is_saved_and_the_refusal_is_explained() {
    let mut page = Vec::new();
    tidegate::demo::gateway::write(&mut page, Duration::from_secs(2)).expect("loopback and memory are there");
    let page = String::from_utf8(page).expect("the page is text");
    let polite: Vec<&str> = page.lines().filter(|line| line.trim_start().starts_with("polite  ")).collect();
    let [_, drowned, saved] = polite.as_slice() else {
        panic!("three lines about the polite callers:\n{page}")
    };
    let share = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap();
    assert!(share(drowned) < share(saved), "{page}");
    assert!(share(saved) >= 80.0, "{page}");
    for told in
        ["HTTP/1.1 429 Too Many Requests", "\"violated-policies\": [", "would be refused by rule `per_key`"]
    {
        assert!(page.contains(told), "{told} in\n{page}");
    }
}
