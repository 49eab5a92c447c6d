//! Retries against published numbers, and against services that refuse.
//!
//! | line of the data file | means |
//! |---|---|
//! | `backoff 2 8 waits 2 4 8` | base and cap in seconds, and the waits without jitter |
//! | `naive layers 3 attempts 4 total 64` | so many attempts at the bottom when every layer makes all it can |
//! | `budget layers 3 percent 10 total 1.331` | at most so many per request when every layer has a budget |
//! | `tokens 10 100 start 10000 on` | a fresh counter: most tokens, thousandths per success, what is left, retries |
//! | `failures 4 6000 on` | that many failures, or successes, later |
//! | `pushback 100 wait 100` | what the server said, and what follows |
//! | `histogram 0.1 1000 100 10 total 1110 retries 99 again` | attempts of each number, and the advice |

#[path = "support/random.rs"]
mod random;

use std::time::Duration;

use random::Dice;
use tidegate_core::retry::{
    Advice, AttemptHistogram, Attempts, Backoff, BudgetRule, BudgetTerms, Delays, Failure, HistogramRule,
    HistogramTerms, Jitter, RetryBudget, RetryRule, RetryTerms, RetryTokens, Seen, TokenRule,
};
use tidegate_core::{Moment, Ratio, Roll, Verdict};

const START: Moment = Moment::from_nanos(1_790_000_000_000_000_000);

#[test]
fn published_cases_hold() {
    let mut tokens = RetryTokens::new(TokenRule::new(1).unwrap());
    for (number, line) in include_str!("data/retry.txt").lines().enumerate() {
        let words: Vec<_> = line.split_whitespace().collect();
        let line = format!("line {}: {line}", number + 1);
        match &words[..] {
            [] => {}
            [comment, ..] if comment.starts_with('#') => {}
            ["backoff", base, cap, "waits", waits @ ..] => check_backoff([base, cap], waits, &line),
            ["naive", "layers", layers, "attempts", attempts, "total", total] => {
                assert_eq!(naive(count(layers), count(attempts)), count(total), "{line}");
            }
            ["budget", "layers", layers, "percent", percent, "total", total] => {
                check_budget(count(layers), count(percent), total.parse().unwrap(), &line);
            }
            ["tokens", most, ratio, "start", left, on] => {
                let rule = TokenRule::new(count(most)).unwrap().with_thousandths_per_success(count(ratio));
                tokens = RetryTokens::new(rule.unwrap());
                check_tokens(&tokens, left, on, &line);
            }
            ["failures", failures, left, on] => {
                (0..count(failures)).for_each(|_| tokens.failed());
                check_tokens(&tokens, left, on, &line);
            }
            ["successes", successes, left, on] => {
                (0..count(successes)).for_each(|_| tokens.succeeded());
                check_tokens(&tokens, left, on, &line);
            }
            ["pushback", said, follows @ ..] => check_pushback(said, follows, &line),
            ["histogram", _, first, second, third, "total", total, "retries", share, advice] => {
                let numbers = [first, second, third].map(|word| count(word));
                check_histogram(numbers, [count(total), count(share)], advice, &line);
            }
            _ => panic!("{line}: unknown words"),
        }
    }
}

fn count(word: &str) -> u32 {
    word.parse().expect("a whole number")
}

fn roll(value: f64) -> Roll {
    Roll::new(value).expect("from 0 to 1")
}

fn check_backoff([base, cap]: [&&str; 2], waits: &[&str], line: &str) {
    let seconds = |word: &str| Duration::from_secs(count(word).into());
    let backoff = Backoff::new(seconds(base)).and_then(|backoff| backoff.with_cap(seconds(cap)));
    let backoff = backoff.expect("a base and a cap").with_jitter(Jitter::None);
    let (mut plain, mut full) = (Delays::new(), Delays::new());
    for wait in waits {
        assert_eq!(plain.next(&backoff, roll(0.5)), seconds(wait), "{line}");
        let drawn = full.next(&backoff.with_jitter(Jitter::Full), roll(0.25));
        assert_eq!(drawn, seconds(wait) / 4, "{line}");
    }
}

/// Attempts at the bottom, if each of so many layers makes all its attempts.
fn naive(layers: u32, attempts: u32) -> u32 {
    let terms = RetryTerms { attempts, ..RetryTerms::default() };
    let rule = RetryRule::new(terms).expect("some attempts");
    if layers == 0 {
        return 1;
    }
    let (mut request, mut total) = (Attempts::begin(START), 0);
    loop {
        total += naive(layers - 1, attempts);
        let failure = Failure::Transient(Advice::None);
        if !rule.next(&mut request, START, failure, roll(0.0)).is_admit() {
            return total;
        }
    }
}

fn check_budget(layers: u32, percent: u32, total: f64, line: &str) {
    let ratio = Ratio::new(f64::from(percent) / 100.0).expect("a percentage");
    let terms = BudgetTerms { ratio, reserve_per_second: 0, ..BudgetTerms::default() };
    let rule = BudgetRule::new(terms).expect("a budget");
    let budgets: Vec<_> = (0..layers).map(|_| RetryBudget::new(rule, START)).collect();
    let requests = 100_000;
    let sent: u32 = (0..requests).map(|number| budgeted(&budgets, at(number))).sum();
    let amplified = f64::from(sent) / f64::from(requests);
    assert!(amplified <= total && amplified > total * 0.98, "{line}: {amplified}");
}

fn at(number: u32) -> Moment {
    START.plus(Duration::from_millis(1) * number)
}

/// Attempts at the bottom for one request, if each layer retries what its budget allows.
fn budgeted(budgets: &[RetryBudget], now: Moment) -> u32 {
    let Some((budget, below)) = budgets.split_first() else { return 1 };
    budget.request(now);
    let mut attempts = Attempts::begin(now);
    let mut total = budgeted(below, now);
    let failure = Failure::Transient(Advice::None);
    while RetryRule::default().next(&mut attempts, now, failure, roll(0.0)).is_admit()
        && budget.take(now).is_admit()
    {
        total += budgeted(below, now);
    }
    total
}

fn check_tokens(tokens: &RetryTokens, left: &str, on: &str, line: &str) {
    assert_eq!(tokens.thousandths(), u64::from(count(left)), "{line}");
    assert_eq!(tokens.may_retry(), on == "on", "{line}");
}

fn check_pushback(said: &str, follows: &[&str], line: &str) {
    let failure = Failure::Transient(Advice::pushback(said.parse().ok()));
    let verdict = RetryRule::default().next(&mut Attempts::begin(START), START, failure, roll(0.7));
    match follows {
        ["wait", millis] => {
            assert_eq!(verdict, Verdict::Admit(Duration::from_millis(count(millis).into())), "{line}");
        }
        _ => assert!(!verdict.is_admit(), "{line}"),
    }
}

fn check_histogram(numbers: [u32; 3], [total, share]: [u32; 2], advice: &str, line: &str) {
    let threshold = Ratio::new(0.1).expect("a ratio");
    let rule = HistogramRule::new(HistogramTerms { threshold, window: 1_000 }).expect("a window");
    let histogram = AttemptHistogram::new(rule);
    // Evenly mixed, and retries before the first attempt that ends the window.
    for step in 0..1_000 {
        for (number, all) in numbers.into_iter().enumerate().rev() {
            let due = all * (step + 1) / 1_000 - all * step / 1_000;
            (0..due).for_each(|_| histogram.record(u32::try_from(number).unwrap_or(0)));
        }
    }
    let sum: u32 = numbers.iter().sum();
    assert_eq!((sum, (sum - 1_000) * 1_000 / sum), (total, share), "{line}");
    let [first, second, later] = numbers.map(u64::from);
    assert_eq!(rule.forbids(Seen { first, second, later }), advice == "never", "{line}");
    assert_eq!(histogram.is_holding(), advice == "never", "{line}");
    if !histogram.is_holding() {
        assert_eq!(histogram.seen(), Seen { first, second, later }, "{line}");
    }
}

#[test]
fn a_thousand_callers_told_the_same_second_come_back_spread_over_one() {
    let rule = RetryRule::default();
    let mut arrivals = [0_u32; 10];
    for caller in 0..1_000 {
        let failure = Failure::Transient(Advice::After(Duration::from_secs(1)));
        let roll = roll(f64::from(caller * 617 % 1_000) / 1_000.0);
        let wait = rule.next(&mut Attempts::begin(START), START, failure, roll).admitted().unwrap();
        let tenth = usize::try_from((wait - Duration::from_secs(1)).as_millis() / 100).unwrap();
        arrivals[tenth] += 1;
    }
    assert_eq!(arrivals.iter().sum::<u32>(), 1_000);
    assert!(arrivals.iter().all(|&count| count <= 200), "at most twice the mean: {arrivals:?}");
}

#[derive(Debug, Default)]
struct Partial {
    requests: u32,
    attempts: u32,
    failed: u32,
    refusals: u32,
    dont_retry: u32,
}

/// Ten servers, of which the first `refusing` refuse everything. Callers retry on a server drawn anew.
fn partial_overload(refusing: u32, budget: Option<&RetryBudget>) -> Partial {
    let servers: Vec<_> = (0..10).map(|_| AttemptHistogram::new(HistogramRule::default())).collect();
    let (mut dice, mut sum) = (Dice(5), Partial::default());
    for number in 0..100_000 {
        let now = at(number);
        if let Some(budget) = budget {
            budget.request(now);
        }
        sum.requests += 1;
        let mut attempts = Attempts::begin(now);
        loop {
            let drawn = dice.number() * 10.0;
            let server = (0..10_u32).rfind(|&server| f64::from(server) <= drawn).unwrap_or(0);
            let histogram = &servers[usize::try_from(server).unwrap_or(0)];
            histogram.record(attempts.number());
            sum.attempts += 1;
            if server >= refusing {
                break;
            }
            let advice = histogram.refuse();
            sum.refusals += 1;
            sum.dont_retry += u32::from(advice == Advice::Never);
            let next = RetryRule::default().next(&mut attempts, now, Failure::Transient(advice), roll(0.0));
            if !next.is_admit() || budget.is_some_and(|budget| !budget.take(now).is_admit()) {
                sum.failed += 1;
                break;
            }
        }
    }
    sum
}

/// Scenario D6.
#[test]
fn few_overloaded_servers_are_retried_around_and_many_are_not_retried() {
    let few = partial_overload(1, None);
    let failed = f64::from(few.failed) / f64::from(few.requests);
    assert!(failed < 0.003, "about a thousandth fails after three attempts: {failed}");
    assert!(f64::from(few.attempts) < 1.12 * f64::from(few.requests), "{few:?}");
    for refusing in [5, 9] {
        let many = partial_overload(refusing, None);
        let share = f64::from(many.dont_retry) / f64::from(many.refusals);
        assert!(share >= 0.9, "{refusing} of 10 refuse, {share} of the refusals say not to retry");
    }
}

#[test]
fn a_budget_bounds_the_attempts_however_many_servers_refuse() {
    for refusing in [1, 5, 9, 10] {
        let budget = RetryBudget::new(BudgetRule::default(), START);
        let sum = partial_overload(refusing, Some(&budget));
        // The reserve is one a second, for 100 seconds.
        assert!(f64::from(sum.attempts) <= 1.1 * f64::from(sum.requests) + 110.0, "{sum:?}");
    }
}

#[test]
fn the_advice_not_to_retry_ends_when_a_window_shows_that_nobody_has_to() {
    let histogram = AttemptHistogram::new(HistogramRule::default());
    for _ in 0..50 {
        histogram.record(1);
        histogram.record(0);
    }
    let (mut never, mut firsts) = (0, 0);
    while histogram.is_holding() {
        never += u32::from(histogram.refuse() == Advice::Never);
        histogram.record(0); // obeyed, and those that may retry find a place
        firsts += 1;
    }
    assert_eq!((firsts, never), (1_000, 938)); // 15 of 16
    assert_eq!(histogram.refuse(), Advice::None);
    assert_eq!(histogram.seen(), Seen::default()); // it was seen while others held back
}

/// Half of the servers refuse, and one of them has come to believe by chance that all is well.
#[test]
fn the_advice_not_to_retry_stays_while_what_comes_back_from_one_in_sixteen_is_a_half() {
    let histogram = AttemptHistogram::new(HistogramRule::default());
    (0..50).for_each(|_| [1, 0].into_iter().for_each(|number| histogram.record(number)));
    for first in 0..100_000 {
        if first % 32 == 0 {
            histogram.record(1);
        }
        histogram.record(0);
        assert!(histogram.is_holding());
    }
}
