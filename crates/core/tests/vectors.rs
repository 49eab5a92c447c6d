//! Published behaviour of well-known limiters, as data: see `data/`, one file per algorithm.
//!
//! Each line is one statement; `#` begins a comment line.
//!
//! ```text
//! rule <algorithm> <settings>     a new limiter with a new key, the clock at 0
//! invalid <settings> field <f>    settings that must be refused because of a field
//! at <time>  |  sleep <time>      set the clock, move it on
//! take <cost> admitted|refused [waits|retry|remaining|left|reset <value>]…
//!                                 left: the whole units of what remains
//! acquire <cost> waits <time>     take, then move the clock on by the wait, as a caller would
//! flood <n> admits <m>            n requests of 1, of which the first m pass
//! usage <used> remaining <left>
//! ```
//!
//! A word nobody knows fails the test, and so does a file of which too little was run: a data file
//! that is silently skipped proves nothing.

use std::str::SplitWhitespace;
use std::time::Duration;

use tidegate_core::rate::{
    Algorithm, ColdFactor, FixedWindow, LeakyBucket, SlidingLog, SlidingWindow, Smooth, TokenBucket, WarmUp,
};
use tidegate_core::{Charge, Cost, Invalid, Moment, Quota, Retry, Usage, Verdict};

#[test]
fn the_token_bucket_answers_as_redis_cell_published() {
    assert_eq!(run(include_str!("data/token_bucket.txt")), Ok(23));
}

#[test]
fn the_smooth_limiter_waits_as_guava_does() {
    assert_eq!(run(include_str!("data/smooth.txt")), Ok(17));
}

#[test]
fn the_warm_up_waits_as_guava_does_to_the_microsecond() {
    assert_eq!(run(include_str!("data/warm_up.txt")), Ok(39));
}

#[test]
fn the_leaky_bucket_waits_as_nginx_does() {
    assert_eq!(run(include_str!("data/leaky_bucket.txt")), Ok(26));
}

#[test]
fn the_sliding_window_weighs_the_previous_one_and_differs_from_the_fixed_one() {
    assert_eq!(run(include_str!("data/sliding_window.txt")), Ok(24));
}

#[test]
fn what_is_misspelt_or_wrong_in_a_data_file_is_reported_with_its_line() {
    let rule = "rule token_bucket quota 1/1s";
    for (text, problem) in [
        ("take 1 admitted", "line 1: no rule yet"),
        ("rule tokenbucket quota 1/1s", "line 1: unknown algorithm `tokenbucket`"),
        ("rule token_bucket quota 1/1s colour red", "line 1: unknown setting `colour`"),
        ("rule token_bucket quota 0/1s", "line 1: amount is 0, but must be more than 0"),
        ("rule token_bucket quota 1/1s buckets 3", "line 1: unused setting"),
        ("invalid token_bucket quota 1/1s field amount", "line 1: accepted"),
        (&format!("{rule}\ngrab 1"), "line 2: unknown statement `grab`"),
        (&format!("{rule}\ntake 1 perhaps"), "line 2: unknown answer `perhaps`"),
        (&format!("{rule}\ntake 1 admitted rest 0"), "line 2: unknown word `rest`"),
        (&format!("{rule}\ntake 1 admitted remaining"), "line 2: a word is missing"),
        (&format!("{rule}\ntake 1 admitted remaining 1"), "line 2: remaining is 0, expected 1"),
        (&format!("{rule}\nsleep 1week"), "line 2: unknown unit in `1week`"),
        (&format!("{rule}\nsleep 1s now"), "line 2: unknown word `now`"),
    ] {
        assert_eq!(run(text), Err(problem.to_owned()), "{text}");
    }
}

/// Runs every line and returns how many answers were compared.
fn run(text: &str) -> Result<usize, String> {
    let mut script = Script { key: None, now: Moment::ORIGIN, compared: 0 };
    for (number, line) in text.lines().enumerate() {
        if !line.starts_with('#') && !line.trim().is_empty() {
            let words = Words(line.split_whitespace());
            script.line(words).map_err(|problem| format!("line {}: {problem}", number + 1))?;
        }
    }
    Ok(script.compared)
}

struct Script {
    key: Option<Box<dyn Key>>,
    now: Moment,
    compared: usize,
}

impl Script {
    fn line(&mut self, mut words: Words<'_>) -> Result<(), String> {
        match words.next()? {
            "rule" => {
                self.key = Some(Settings::read(&mut words)?.key()?);
                self.now = Moment::ORIGIN;
            }
            "invalid" => self.invalid(&mut words)?,
            "at" => self.now = Moment::ORIGIN.plus(words.duration()?),
            "sleep" => self.now = self.now.plus(words.duration()?),
            "take" => self.take(&mut words)?,
            "acquire" => self.acquire(&mut words)?,
            "flood" => self.flood(&mut words)?,
            "usage" => self.usage(&mut words)?,
            other => return Err(format!("unknown statement `{other}`")),
        }
        words.end()
    }

    fn invalid(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let made = Settings::read(words).and_then(|settings| settings.key());
        let Err(problem) = made else {
            return Err("accepted".to_owned());
        };
        let field = words.next()?;
        let refused = problem.split_whitespace().next().unwrap_or_default();
        self.compared += 1;
        same("field", refused, field)
    }

    fn take(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let cost = words.cost()?;
        let now = self.now;
        let verdict = self.key()?.decide(now, cost).map(|charge| charge.wait());
        let is_admit = match words.next()? {
            "admitted" => true,
            "refused" => false,
            other => return Err(format!("unknown answer `{other}`")),
        };
        if verdict.is_admit() != is_admit {
            return Err(format!("answered {verdict:?}"));
        }
        let usage = self.key()?.usage(now);
        self.compared += 1;
        while let Some(word) = words.0.next() {
            match word {
                "waits" => same(word, verdict.admitted(), Some(words.duration()?))?,
                "retry" => same(word, verdict.refusal().map(|refusal| refusal.retry), Some(words.retry()?))?,
                "remaining" => same_cost(word, usage.remaining, words.cost()?)?,
                "left" => same(word, usage.remaining.whole(), words.cost()?.whole())?,
                "reset" => same(word, usage.reset, words.duration()?)?,
                other => return Err(format!("unknown word `{other}`")),
            }
        }
        Ok(())
    }

    fn acquire(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let cost = words.cost()?;
        words.literal("waits")?;
        let now = self.now;
        let verdict = self.key()?.decide(now, cost).map(|charge| charge.wait());
        let wait = verdict.admitted().ok_or(format!("answered {verdict:?}"))?;
        self.now = now.plus(wait);
        self.compared += 1;
        same("wait", wait, words.duration()?)
    }

    fn flood(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let requests = words.cost()?.whole();
        words.literal("admits")?;
        let expected = words.cost()?.whole();
        let now = self.now;
        let key = self.key()?;
        let answers: Vec<bool> = (0..requests).map(|_| key.decide(now, Cost::ONE).is_admit()).collect();
        let admitted = answers.iter().filter(|is_admit| **is_admit).count();
        if answers.iter().skip(admitted).any(|is_admit| *is_admit) {
            return Err("a request passed after one was refused".to_owned());
        }
        self.compared += 1;
        same("admitted", u64::try_from(admitted).ok(), Some(expected))
    }

    fn usage(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let now = self.now;
        let usage = self.key()?.usage(now);
        self.compared += 1;
        same_cost("used", usage.used, words.cost()?)?;
        words.literal("remaining")?;
        same_cost("remaining", usage.remaining, words.cost()?)
    }

    fn key(&mut self) -> Result<&mut Box<dyn Key>, String> {
        self.key.as_mut().ok_or("no rule yet".to_owned())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: T, expected: T) -> Result<(), String> {
    if is == expected { Ok(()) } else { Err(format!("{what} is {is:?}, expected {expected:?}")) }
}

fn same_cost(what: &str, is: Cost, expected: Cost) -> Result<(), String> {
    if is == expected { Ok(()) } else { Err(format!("{what} is {is}, expected {expected}")) }
}

/// One limiter with one key, whatever its algorithm.
trait Key {
    fn decide(&mut self, now: Moment, cost: Cost) -> Verdict<Charge>;
    fn usage(&self, now: Moment) -> Usage;
}

struct Live<A: Algorithm> {
    rule: A,
    state: A::State,
}

impl<A: Algorithm<Time = Moment>> Key for Live<A> {
    fn decide(&mut self, now: Moment, cost: Cost) -> Verdict<Charge> {
        self.rule.decide(&mut self.state, now, cost)
    }

    fn usage(&self, now: Moment) -> Usage {
        self.rule.usage(&self.state, now)
    }
}

fn live<A: Algorithm<Time = Moment> + 'static>(rule: A) -> Box<dyn Key>
where
    A::State: 'static,
{
    let state = rule.fresh(Moment::ORIGIN);
    Box::new(Live { rule, state })
}

/// What a line says about a limiter. Each setting is taken by the algorithm that knows it.
#[derive(Default)]
struct Settings<'a> {
    algorithm: &'a str,
    quota: Option<(Cost, Duration)>,
    burst: Option<Cost>,
    waiting: Option<Cost>,
    delay: Option<Cost>,
    buckets: Option<Cost>,
    warm_up: Option<Duration>,
    cold_factor: Option<&'a str>,
    max_wait: Option<Duration>,
    nodelay: Option<()>,
    drained: Option<()>,
}

impl<'a> Settings<'a> {
    /// Reads up to the end of the line or the word `field`.
    fn read(words: &mut Words<'a>) -> Result<Self, String> {
        let mut settings = Self { algorithm: words.next()?, ..Self::default() };
        while let Some(word) = words.0.next() {
            match word {
                "quota" => settings.quota = Some(words.quota()?),
                "burst" => settings.burst = Some(words.cost()?),
                "waiting" => settings.waiting = Some(words.cost()?),
                "delay" => settings.delay = Some(words.cost()?),
                "buckets" => settings.buckets = Some(words.cost()?),
                "warm_up" => settings.warm_up = Some(words.duration()?),
                "cold_factor" => settings.cold_factor = Some(words.next()?),
                "max_wait" => settings.max_wait = Some(words.duration()?),
                "nodelay" => settings.nodelay = Some(()),
                "drained" => settings.drained = Some(()),
                "field" => break,
                other => return Err(format!("unknown setting `{other}`")),
            }
        }
        Ok(settings)
    }

    fn key(mut self) -> Result<Box<dyn Key>, String> {
        let algorithm = self.algorithm;
        let made = match algorithm {
            "token_bucket" => self.take_quota().map(|quota| live(TokenBucket::new(quota))),
            "fixed_window" => self.take_quota().and_then(FixedWindow::new).map(live),
            "sliding_log" => self.take_quota().and_then(SlidingLog::new).map(live),
            "sliding_window" => self.sliding_window().map(live),
            "leaky_bucket" => self.leaky_bucket().map(live),
            "smooth" => self.smooth(),
            "warm_up" => self.warm_up().map(live),
            other => return Err(format!("unknown algorithm `{other}`")),
        };
        let made = made.map_err(|problem| problem.to_string())?;
        if self.is_used_up() { Ok(made) } else { Err("unused setting".to_owned()) }
    }

    fn is_used_up(&self) -> bool {
        let Self {
            algorithm: _, quota, burst, waiting, delay, buckets, warm_up, cold_factor, max_wait, ..
        } = self;
        let costs = [burst, waiting, delay, buckets];
        let durations = [warm_up, max_wait];
        quota.is_none()
            && cold_factor.is_none()
            && self.nodelay.or(self.drained).is_none()
            && costs.iter().all(|cost| cost.is_none())
            && durations.iter().all(|duration| duration.is_none())
    }

    fn take_quota(&mut self) -> Result<Quota, Invalid> {
        let (amount, window) = self.quota.take().unwrap_or_default();
        let quota = Quota::new(amount, window)?;
        self.burst.take().map_or(Ok(quota), |burst| quota.with_burst(burst))
    }

    fn sliding_window(&mut self) -> Result<SlidingWindow, Invalid> {
        let rule = SlidingWindow::new(self.take_quota()?)?;
        match self.buckets.take() {
            Some(buckets) => rule.with_sub_buckets(u32::try_from(buckets.whole()).unwrap_or(u32::MAX)),
            None => Ok(rule),
        }
    }

    fn leaky_bucket(&mut self) -> Result<LeakyBucket, Invalid> {
        let mut rule = LeakyBucket::new(self.take_quota()?, self.waiting.take().unwrap_or_default())?;
        if let Some(delay) = self.delay.take() {
            rule = rule.with_delay_free(delay)?;
        }
        Ok(if self.nodelay.take().is_some() { rule.without_delay() } else { rule })
    }

    fn smooth(&mut self) -> Result<Box<dyn Key>, Invalid> {
        let rule = Smooth::new(self.take_quota()?, self.max_wait.take().unwrap_or_default())?;
        if self.drained.take().is_none() {
            return Ok(live(rule));
        }
        Ok(Box::new(Live { state: rule.drained(Moment::ORIGIN), rule }))
    }

    fn warm_up(&mut self) -> Result<WarmUp, Invalid> {
        let quota = self.take_quota()?;
        let warm_up = self.warm_up.take().unwrap_or_default();
        let cold_factor: ColdFactor = self.cold_factor.take().unwrap_or_default().parse()?;
        WarmUp::new(quota, warm_up, cold_factor, self.max_wait.take().unwrap_or_default())
    }
}

/// The words of one line, read as what they must be.
struct Words<'a>(SplitWhitespace<'a>);

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        self.0.next().ok_or("a word is missing".to_owned())
    }

    fn literal(&mut self, expected: &str) -> Result<(), String> {
        let word = self.next()?;
        if word == expected { Ok(()) } else { Err(format!("unknown word `{word}`")) }
    }

    fn end(&mut self) -> Result<(), String> {
        self.0.next().map_or(Ok(()), |word| Err(format!("unknown word `{word}`")))
    }

    fn cost(&mut self) -> Result<Cost, String> {
        self.next()?.parse().map_err(|problem: Invalid| problem.to_string())
    }

    fn duration(&mut self) -> Result<Duration, String> {
        duration(self.next()?)
    }

    fn retry(&mut self) -> Result<Retry, String> {
        match self.next()? {
            "never" => Ok(Retry::Never),
            word => duration(word).map(Retry::After),
        }
    }

    /// `100/60s`.
    fn quota(&mut self) -> Result<(Cost, Duration), String> {
        let word = self.next()?;
        let (amount, window) = word.split_once('/').ok_or(format!("no quota: `{word}`"))?;
        let amount = amount.parse().map_err(|problem: Invalid| problem.to_string())?;
        Ok((amount, duration(window)?))
    }
}

/// `1.5s`, `375ms`, `400day`, exactly.
fn duration(word: &str) -> Result<Duration, String> {
    let split = word.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(word.len());
    let (number, unit) = word.split_at(split);
    let nanos: u64 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "day" => 86_400_000_000_000,
        _ => return Err(format!("unknown unit in `{word}`")),
    };
    let number: Cost = number.parse().map_err(|problem: Invalid| problem.to_string())?;
    let nanos = u128::from(number.micros()) * u128::from(nanos) / u128::from(Cost::ONE.micros());
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| format!("too long: `{word}`"))
}
