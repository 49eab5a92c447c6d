//! Numbers and an algorithm make a limit.
//!
//! A rule has one algorithm with its settings and, besides its own numbers, others for plans, for
//! criticalities, for single callers and for the shadow. So the settings are read once and applied to each
//! set of numbers. Numbers that give a quota have its burst by default, not the rule's: a plan of `5/s`
//! beside a rule of `100/s` with burst 200 does not allow 200 at once.

use std::time::Duration;

use tidegate_core::rate::{
    Calendar, ColdFactor, FixedWindow, LeakyBucket, SlidingLog, SlidingWindow, Smooth, TokenBucket,
    UtcOffset, WarmUp,
};
use tidegate_core::{Cost, Invalid, Quota};

use crate::document::read::Field;
use crate::document::rule::{Algorithm, Kind, LimitDoc, RuleDoc};
use crate::policy::{Limit, Rate, Shape};
use crate::problem::{Code, File, Problem, Problems};
use crate::quantity::QuotaText;
use crate::text::Span;

/// See the declaration of `max_wait`.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// See the declaration of `warm_up`.
const WARM_UP: Duration = Duration::from_secs(10);

/// A limit and where its decisive number stands.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) limit: Limit,
    /// The number that bounds what can be taken at once: `burst 5`, `quota 5/min`.
    pub(super) number: String,
    /// Whether that number is the one in the quota, for want of another.
    pub(super) is_default: bool,
    pub(super) span: Span,
    pub(super) path: String,
    pub(super) file: File,
}

/// One set of numbers.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    pub(super) quota: Option<&'a Field<QuotaText>>,
    pub(super) burst: Option<&'a Field<Cost>>,
    pub(super) limit: Option<&'a Field<u64>>,
}

/// How a rule counts, whatever the numbers.
pub(super) struct Settings<'a> {
    written: &'a RuleDoc,
    kind: Kind,
    algorithm: Algorithm,
    cold_factor: ColdFactor,
}

impl<'a> Settings<'a> {
    pub(super) fn new(
        written: &'a RuleDoc,
        kind: Kind,
        what: String,
        path: String,
        problems: &mut Problems,
    ) -> Self {
        let algorithm = written.algorithm.as_ref().map_or(Algorithm::TokenBucket, |field| field.value);
        let cold_factor = written.cold_factor.as_ref().and_then(|field| {
            let factor = field.value.to_string().parse::<ColdFactor>();
            let report = |invalid: Invalid| {
                let problem = Problem::new(Code::BadNumber, invalid.to_string()).at(field.span);
                problems.push(problem.path(format!("{path}.cold_factor")).label("write 3, as most do"));
            };
            factor.map_err(report).ok()
        });
        let settings =
            Self { written, kind, algorithm, cold_factor: cold_factor.unwrap_or(ColdFactor::THREE) };
        settings.refuse_what_does_nothing(&what, &path, problems);
        settings
    }

    /// Whether other numbers can stand in for the rule's own.
    pub(super) fn has_numbers(&self) -> bool {
        match self.kind {
            Kind::Rate | Kind::Concurrency => true,
            Kind::Reserve | Kind::Shed => false,
        }
    }

    /// The rule's limit with other numbers.
    pub(super) fn vary(
        &self,
        numbers: &LimitDoc,
        span: Span,
        what: String,
        path: String,
        problems: &mut Problems,
    ) -> Option<Placed> {
        if !self.has_numbers() {
            let message = format!("{what} does nothing: the rule is the same for everybody");
            problems.push(Problem::new(Code::NotForThis, message).at(span).path(path).label("remove it"));
            return None;
        }
        let own_burst = numbers.burst.as_ref();
        let inherited = if numbers.quota.is_some() { None } else { self.written.burst.as_ref() };
        let varied = Numbers {
            quota: numbers.quota.as_ref().or(self.written.quota.as_ref()),
            burst: own_burst.or(inherited),
            limit: numbers.limit.as_ref().or(self.written.limit.as_ref()),
        };
        self.refuse_other_kind(numbers, &what, &path, problems);
        if own_burst.is_none()
            && numbers.quota.is_none()
            && numbers.limit.is_none()
            && !problems.mentions(&path)
        {
            let message = format!("{what} has no numbers of its own");
            let problem = Problem::new(Code::MissingKey, message).at(span).path(path);
            problems.push(problem.label("add some, or remove it"));
            return None;
        }
        let decisive = own_burst.map(|field| field.span).or(numbers.quota.as_ref().map(|field| field.span));
        let limit = self.limit(varied, span, &what, &path, problems)?;
        Some(Placed { span: decisive.unwrap_or(span), ..limit })
    }

    /// The limit that these numbers make.
    pub(super) fn limit(
        &self,
        numbers: Numbers<'_>,
        span: Span,
        what: &str,
        path: &str,
        problems: &mut Problems,
    ) -> Option<Placed> {
        match self.kind {
            Kind::Concurrency => {
                let field = numbers.limit?;
                let Some(limit) = u32::try_from(field.value).ok().filter(|limit| *limit > 0) else {
                    let message = format!("limit is {}, but must be from 1 to {}", field.value, u32::MAX);
                    let problem = Problem::new(Code::BadNumber, message).at(field.span);
                    problems
                        .push(problem.path(format!("{path}.limit")).label("write a number in that range"));
                    return None;
                };
                let (number, is_default) = (format!("limit {limit}"), false);
                let (limit, path, file) = (Limit::Concurrency(limit), path.to_owned(), File::Policy);
                Some(Placed { limit, number, is_default, span, path, file })
            }
            Kind::Rate => self.rate(numbers, what, path, problems),
            Kind::Reserve | Kind::Shed => None,
        }
    }

    fn rate(&self, numbers: Numbers<'_>, what: &str, path: &str, problems: &mut Problems) -> Option<Placed> {
        let quota = numbers.quota?;
        if let Some((burst, why)) = numbers.burst.zip(self.without_burst()) {
            let problem = Problem::new(Code::BurstOfWindow, why).at(burst.span).path(format!("{path}.burst"));
            problems.push(problem.label("remove it, or use token_bucket"));
            return None;
        }
        if self.has_contradicting_waits(numbers, what, path, problems) {
            return None;
        }
        let (span, number) = match numbers.burst {
            Some(burst) => (burst.span, format!("burst {}", burst.value)),
            None if self.without_burst().is_none() => {
                (quota.span, format!("burst {}", self.default_burst(quota)))
            }
            None => (quota.span, format!("quota {}", quota.value.written)),
        };
        let has_amount = self.without_burst().is_none() && self.algorithm != Algorithm::LeakyBucket;
        let is_default = numbers.burst.is_none() && has_amount;
        match self.shape(&quota.value, numbers.burst.map(|burst| burst.value)) {
            Ok((amounts, shape)) => {
                let rate = Rate { written: quota.value.written.clone(), quota: amounts, shape };
                let (limit, path, file) = (Limit::Rate(Box::new(rate)), path.to_owned(), File::Policy);
                Some(Placed { limit, number, is_default, span, path, file })
            }
            Err(invalid) => {
                let at = match invalid.field {
                    "buckets" => self.written.buckets.as_ref().map(|field| field.span),
                    "warm_up" => self.written.warm_up.as_ref().map(|field| field.span),
                    _ => None,
                };
                let problem = Problem::new(Code::OutOfReach, format!("{what} cannot be kept: {invalid}"));
                problems.push(problem.at(at.unwrap_or(span)).path(path).label("choose another number"));
                None
            }
        }
    }

    fn default_burst(&self, quota: &Field<QuotaText>) -> Cost {
        if self.algorithm == Algorithm::LeakyBucket { Cost::ZERO } else { quota.value.amount }
    }

    /// The quota with what can be taken at once, and the algorithm ready to be enrolled.
    fn shape(&self, written: &QuotaText, burst: Option<Cost>) -> Result<(Quota, Shape), Invalid> {
        let quota = Quota::new(written.amount, written.window.duration)?;
        let with_burst = || quota.with_burst(burst.unwrap_or(written.amount));
        let max_wait = self.written.max_wait.as_ref().map_or(MAX_WAIT, |field| field.value.duration);
        Ok(match self.algorithm {
            Algorithm::TokenBucket => {
                let quota = with_burst()?;
                (quota, Shape::TokenBucket(TokenBucket::new(quota)))
            }
            Algorithm::Smooth => {
                let quota = with_burst()?;
                (quota, Shape::Smooth(Smooth::new(quota, max_wait)?))
            }
            Algorithm::LeakyBucket => {
                let waiting = burst.unwrap_or(Cost::ZERO);
                let bucket = self.leaky(LeakyBucket::new(quota, waiting)?)?;
                (quota.with_burst(waiting.plus(Cost::ONE))?, Shape::LeakyBucket(bucket))
            }
            Algorithm::WarmUp => {
                let warm_up = self.written.warm_up.as_ref().map_or(WARM_UP, |field| field.value.duration);
                (quota, Shape::WarmUp(WarmUp::new(quota, warm_up, self.cold_factor, max_wait)?))
            }
            Algorithm::FixedWindow => match written.window.period {
                Some(period) => {
                    let offset = self.written.timezone.as_ref().map_or(UtcOffset::UTC, |field| field.value);
                    (quota, Shape::Calendar(Calendar::new(written.amount, period, offset)?))
                }
                None => (quota, Shape::FixedWindow(FixedWindow::new(quota)?)),
            },
            Algorithm::SlidingWindow => {
                let buckets = self.written.buckets.as_ref().map_or(1, |field| field.value);
                let buckets = u32::try_from(buckets).unwrap_or(u32::MAX);
                (quota, Shape::SlidingWindow(SlidingWindow::new(quota)?.with_sub_buckets(buckets)?))
            }
            Algorithm::SlidingLog => (quota, Shape::SlidingLog(SlidingLog::new(quota)?)),
        })
    }

    fn leaky(&self, bucket: LeakyBucket) -> Result<LeakyBucket, Invalid> {
        if self.written.nodelay.as_ref().is_some_and(|field| field.value) {
            return Ok(bucket.without_delay());
        }
        self.written.delay.as_ref().map_or(Ok(bucket), |delay| bucket.with_delay_free(delay.value))
    }

    /// Why the algorithm has no burst, if it has none.
    fn without_burst(&self) -> Option<&'static str> {
        match self.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Smooth => None,
            Algorithm::FixedWindow => {
                Some("a fixed window has no burst: its whole quota can be taken at once already")
            }
            Algorithm::SlidingWindow => {
                Some("a sliding window has no burst: its whole quota can be taken at once already")
            }
            Algorithm::SlidingLog => {
                Some("a sliding log has no burst: its whole quota can be taken at once already")
            }
            Algorithm::WarmUp => Some("warm-up has no burst: what is stored while idle comes from `warm_up`"),
        }
    }

    fn refuse_other_kind(&self, numbers: &LimitDoc, what: &str, path: &str, problems: &mut Problems) {
        let (quota, burst) = (span(&numbers.quota), span(&numbers.burst));
        let limit = span(&numbers.limit);
        let (others, owner) = match self.kind {
            Kind::Rate => ([("limit", limit), ("limit", None)], "concurrency"),
            Kind::Concurrency => ([("quota", quota), ("burst", burst)], "rate"),
            Kind::Reserve | Kind::Shed => return,
        };
        for (key, at) in others.into_iter().filter_map(|(key, at)| at.map(|at| (key, at))) {
            problems.push(not_for_this(key, &format!("{owner} rules"), what, path, at));
        }
    }

    fn refuse_what_does_nothing(&self, what: &str, path: &str, problems: &mut Problems) {
        use Algorithm::{FixedWindow, LeakyBucket, SlidingWindow, Smooth, WarmUp};
        let written = self.written;
        let both = &[Kind::Rate, Kind::Concurrency][..];
        for (key, at, owners, words) in [
            ("quota", span(&written.quota), &[Kind::Rate][..], "rate rules"),
            ("burst", span(&written.burst), &[Kind::Rate], "rate rules"),
            ("algorithm", span(&written.algorithm), &[Kind::Rate], "rate rules"),
            ("cost", span(&written.cost), &[Kind::Rate], "rate rules"),
            ("limit", span(&written.limit), &[Kind::Concurrency], "concurrency rules"),
            ("key", span(&written.key), both, "rate and concurrency rules"),
            ("plans", span(&written.plans), both, "rate and concurrency rules"),
            ("per_criticality", span(&written.per_criticality), both, "rate and concurrency rules"),
            ("shadow", span(&written.shadow), both, "rate and concurrency rules"),
            ("max_keys", span(&written.max_keys), both, "rate and concurrency rules"),
            ("capacity", span(&written.capacity), &[Kind::Reserve], "reserve rules"),
            ("reserve", span(&written.reserve), &[Kind::Reserve], "reserve rules"),
            ("target", span(&written.target), &[Kind::Shed], "shed rules"),
            ("order", span(&written.order), &[Kind::Shed], "shed rules"),
            ("ramp", span(&written.ramp), &[Kind::Shed], "shed rules"),
        ] {
            if !owners.contains(&self.kind) {
                self.refuse_key((key, at), words, what, path, problems);
            }
        }
        let is_calendar = written.quota.as_ref().is_none_or(|quota| quota.value.window.period.is_some());
        for (key, at, owners, words) in [
            ("buckets", span(&written.buckets), &[SlidingWindow][..], "`sliding_window`"),
            ("delay", span(&written.delay), &[LeakyBucket], "`leaky_bucket`"),
            ("nodelay", span(&written.nodelay), &[LeakyBucket], "`leaky_bucket`"),
            ("max_wait", span(&written.max_wait), &[Smooth, WarmUp], "`smooth` and `warm_up`"),
            ("warm_up", span(&written.warm_up), &[WarmUp], "`warm_up`"),
            ("cold_factor", span(&written.cold_factor), &[WarmUp], "`warm_up`"),
            (
                "timezone",
                span(&written.timezone),
                &[FixedWindow],
                "`fixed_window` with a quota by day or month",
            ),
        ] {
            let applies = self.kind == Kind::Rate
                && owners.contains(&self.algorithm)
                && (key != "timezone" || is_calendar);
            if !applies {
                self.refuse_key((key, at), words, what, path, problems);
            }
        }
    }

    fn refuse_key(
        &self,
        (key, at): (&str, Option<Span>),
        owner: &str,
        what: &str,
        path: &str,
        problems: &mut Problems,
    ) {
        if let Some(at) = at {
            problems.push(not_for_this(key, owner, what, path, at));
        }
    }

    fn has_contradicting_waits(
        &self,
        numbers: Numbers<'_>,
        what: &str,
        path: &str,
        problems: &mut Problems,
    ) -> bool {
        let Some(delay) = self.written.delay.as_ref().filter(|_| self.algorithm == Algorithm::LeakyBucket)
        else {
            return false;
        };
        let waiting = numbers.burst.map_or(Cost::ZERO, |burst| burst.value);
        let (message, label) = if self.written.nodelay.as_ref().is_some_and(|field| field.value) {
            ("`delay` and `nodelay` contradict each other".to_owned(), "remove one of them")
        } else if delay.value > waiting {
            (
                format!("delay {} is above burst {waiting} of {what}", delay.value),
                "lower it, or raise `burst`",
            )
        } else {
            return false;
        };
        let problem = Problem::new(Code::DelayAndBurst, message).at(delay.span);
        problems.push(problem.path(format!("{path}.delay")).label(label));
        true
    }
}

fn span<T>(field: &Option<Field<T>>) -> Option<Span> {
    field.as_ref().map(|field| field.key_span)
}

pub(super) fn not_for_this(key: &str, owner: &str, what: &str, path: &str, at: Span) -> Problem {
    let message = format!("`{key}` belongs to {owner} and does nothing in {what}");
    Problem::new(Code::NotForThis, message).at(at).path(format!("{path}.{key}")).label("remove it")
}
