//! Before anything is measured: does the contender do what its case says?

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use tidegate_bench_lab::http::{Answer, Connection};

use crate::case::Case;
use crate::upstream;
use crate::wrk::Counts;

/// Requests of one key that show whether it is limited: more than any contender lets pass at once in the
/// case that refuses.
const REQUESTS: usize = 10;

/// Asks the contender at `address` a few times, and compares the answers with the case.
///
/// # Errors
///
/// What it did instead.
pub(crate) fn answers(name: &str, case: Case, address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let mut connection = Connection::open(address)?;
    let first = [0; REQUESTS].map(|_| connection.get("first")).into_iter().collect::<io::Result<Vec<_>>>()?;
    let problem = match case {
        Case::Plain | Case::PerKey if !first.iter().all(is_forwarded) => "did not forward everything",
        Case::Plain | Case::PerKey => return Ok(()),
        Case::Refusing if !first.first().is_some_and(is_forwarded) => "refused the first request",
        Case::Refusing if first.last().is_none_or(|answer| answer.status != 429) => "refused nothing",
        Case::Refusing if !is_forwarded(&connection.get("second")?) => "let a key pay for another",
        Case::Refusing => return Ok(()),
    };
    Err(format!("{name}, {}: {problem}; its answers were {:?}", case.title(), statuses(&first)).into())
}

/// Compares what the load was answered with the case.
///
/// # Errors
///
/// How often it was answered otherwise.
pub(crate) fn counts(name: &str, case: Case, counts: Counts) -> Result<(), Box<dyn Error>> {
    let Counts { requests, refused, broken, .. } = counts;
    let is_right = match case {
        Case::Plain | Case::PerKey => refused == 0,
        // A hundredth may pass: the quota itself, and no more.
        Case::Refusing => refused >= requests - requests / 100,
    };
    if is_right && broken == 0 && requests > 0 {
        return Ok(());
    }
    let title = case.title();
    Err(format!("{name}, {title}: of {requests} requests {refused} refused, {broken} broken").into())
}

fn is_forwarded(answer: &Answer) -> bool {
    answer.status == 200 && answer.body == upstream::BODY.as_bytes()
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn check(case: Case, refused: u64, broken: u64) -> bool {
        let seen = Counts { requests: 1_000, duration: Duration::from_secs(1), refused, broken };
        counts("peer", case, seen).is_ok()
    }

    #[test]
    fn a_forwarding_case_refuses_nobody() {
        assert!(check(Case::Plain, 0, 0) && check(Case::PerKey, 0, 0));
        assert!(!check(Case::PerKey, 1, 0) && !check(Case::Plain, 0, 1));
    }

    #[test]
    fn the_refusing_case_lets_a_hundredth_pass_at_most() {
        assert!(check(Case::Refusing, 990, 0));
        assert!(!check(Case::Refusing, 989, 0));
    }
}
