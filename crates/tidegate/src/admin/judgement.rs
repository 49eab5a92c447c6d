//! The one sentence of how it goes.
//!
//! Whoever is woken at night reads one sentence first. The worst that is the case comes first, since it needs hands;
//! refusing is our trade and only worth a look when it is most of what we do.
//!
//! | first that holds | health | begins with |
//! |---|---|---|
//! | it starts, it drains | yellow | `Starting`, `Draining` |
//! | the policy on disk is wrong, or waits for a restart | red | `Red` |
//! | the policy on disk waits to be confirmed, since it loses something | yellow | `Held` |
//! | an upstream fails half of its attempts, of at least 20 | red | `Red` |
//! | callers have all open files that are theirs | yellow | `Crowded` |
//! | requests are shed | yellow | `Shedding` |
//! | a rule has no room for new keys | yellow | `Strained` |
//! | an upstream fails a twentieth of them | yellow | `Strained` |
//! | half of the requests are refused | yellow | `Refusing` |
//! | an operator wants a route's cheaper answer | yellow | `Degraded` |
//! | otherwise | green | `Healthy` |

use tidegate_policy::gate::{OPERATOR, RuleRefusals};
use tidegate_policy::record::time_text;

use super::pulse::{Rates, UpstreamRate};
use super::station::{LoadFailure, OpenFiles, Stage, Unloaded};

/// Below this many attempts a share says nothing.
const ENOUGH: u64 = 20;

/// What is judged.
#[derive(Clone, Debug)]
pub(super) struct Situation<'a> {
    pub(super) stage: Stage,
    pub(super) in_flight: u64,
    pub(super) policy_version: u64,
    pub(super) load_failure: Option<&'a LoadFailure>,
    pub(super) rates: &'a Rates,
    /// Who is shed and why, if anybody is.
    pub(super) shedding: Option<String>,
    /// Which routes give cheaper answers because an operator wants it.
    pub(super) degraded: Option<String>,
    pub(super) open_files: Option<OpenFiles>,
}

/// How it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) health: Health,
    pub(super) sentence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Green,
    Yellow,
    Red,
}

impl Health {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

impl Situation<'_> {
    pub(super) fn judge(&self) -> Judgement {
        let (health, sentence) = self
            .turning()
            .or_else(|| self.wrong_policy())
            .or_else(|| self.failing(50, Health::Red, "Red"))
            .or_else(|| self.short_of_files())
            .or_else(|| self.shedding.clone().map(|sentence| (Health::Yellow, sentence)))
            .or_else(|| self.crowded())
            .or_else(|| self.failing(5, Health::Yellow, "Strained"))
            .unwrap_or_else(|| self.traffic());
        Judgement { health, sentence }
    }

    fn turning(&self) -> Option<(Health, String)> {
        match self.stage {
            Stage::Ready => None,
            Stage::Starting => Some((Health::Yellow, "Starting: not ready yet.".to_owned())),
            Stage::Draining => {
                let requests = if self.in_flight == 1 { "request" } else { "requests" };
                Some((Health::Yellow, format!("Draining: {} {requests} in flight.", self.in_flight)))
            }
        }
    }

    fn wrong_policy(&self) -> Option<(Health, String)> {
        let failure = self.load_failure?;
        let since = time_text(failure.since);
        let (health, word, how) = match failure.how {
            Unloaded::Wrong => (Health::Red, "Red", "is wrong"),
            Unloaded::NeedsRestart => (Health::Red, "Red", "waits for a restart"),
            Unloaded::Held => (Health::Yellow, "Held", "waits to be confirmed"),
        };
        let sentence = format!(
            "{word}: the policy on disk {how} since {since} ({}); version {} stays.",
            failure.summary.trim_end_matches('.'),
            self.policy_version
        );
        Some((health, sentence))
    }

    fn failing(&self, percent: u64, health: Health, word: &str) -> Option<(Health, String)> {
        let is_failing = |rate: &&UpstreamRate| {
            rate.attempts >= ENOUGH && rate.failures.saturating_mul(100) >= rate.attempts * percent
        };
        let worst = self.rates.upstreams.iter().filter(is_failing).max_by_key(|rate| rate.failures)?;
        let share = share(worst.failures, worst.attempts);
        Some((health, format!("{word}: upstream {} fails {share} of its attempts.", worst.upstream)))
    }

    fn short_of_files(&self) -> Option<(Health, String)> {
        let OpenFiles { allowed, for_callers, of_callers } = self.open_files?;
        // Where some have just ended for others, a few are free.
        let allowed = allowed.filter(|_| for_callers.saturating_sub(of_callers) <= for_callers / 16)?;
        let sentence = format!(
            "Crowded: callers have all {for_callers} connections that the limit of open files ({allowed}) leaves them; \
             raise it."
        );
        Some((Health::Yellow, sentence))
    }

    fn crowded(&self) -> Option<(Health, String)> {
        let rule = self.rates.rules.iter().find(|rule| rule.overflowed > 0)?;
        let sentence = format!(
            "Strained: rule {} has no room for new keys, which share one counter; raise its max_keys.",
            rule.rule
        );
        Some((Health::Yellow, sentence))
    }

    fn traffic(&self) -> (Health, String) {
        let (rates, all) = (self.rates, self.rates.admitted + self.rates.refused);
        if let Some(sentence) = self.degraded.clone().filter(|_| rates.refused.saturating_mul(2) < all.max(1))
        {
            return (Health::Yellow, sentence);
        }
        if all == 0 {
            return (Health::Green, "Healthy: no requests in the last seconds.".to_owned());
        }
        let is_refusing = rates.refused.saturating_mul(2) >= all;
        let (health, word) =
            if is_refusing { (Health::Yellow, "Refusing") } else { (Health::Green, "Healthy") };
        let refused = if rates.refused == 0 { "none".to_owned() } else { share(rates.refused, all) };
        let rate = spoken(rates.a_second(all));
        (health, format!("{word}: {rate} requests a second, {refused} refused{}.", by_whom(rates)))
    }
}

fn by_whom(rates: &Rates) -> String {
    let busiest = rates.rules.iter().max_by_key(|rule| rule.refused).filter(|rule| rule.refused > 0);
    let Some(RuleRefusals { rule, refused, .. }) = busiest else { return String::new() };
    // An upstream without room refuses too, and is called so.
    let who = rule.strip_prefix("upstream:");
    if rule == OPERATOR {
        return ", most often since an operator blocked the caller".to_owned();
    }
    let who = who.map_or_else(|| format!("rule {rule}"), |upstream| format!("upstream {upstream}"));
    if *refused >= rates.refused {
        format!(", all by {who}")
    } else if refused.saturating_mul(2) > rates.refused {
        format!(", mostly by {who}")
    } else {
        format!(", most often by {who}")
    }
}

/// `3 %`, and never nothing or everything when it is not.
fn share(part: u64, whole: u64) -> String {
    match part.saturating_mul(100) / whole.max(1) {
        0 => "under 1 %".to_owned(),
        percent if percent >= 100 => "all".to_owned(),
        percent => format!("{percent} %"),
    }
}

/// `1240`, `0.4`.
fn spoken(rate: f64) -> String {
    if rate >= 10.0 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_core::WallTime;

    use super::*;

    fn rates(admitted: u64, refused: &[(&str, u64)]) -> Rates {
        let rule = |(rule, refused): &(&str, u64)| RuleRefusals {
            rule: (*rule).to_owned(),
            refused: *refused,
            shadow_refused: 0,
            overflowed: 0,
        };
        Rates {
            over: Duration::from_secs(10),
            admitted,
            refused: refused.iter().map(|(_, refused)| refused).sum(),
            rules: refused.iter().map(rule).collect(),
            ..Rates::default()
        }
    }

    fn said(rates: &Rates) -> String {
        let judgement = situation(rates).judge();
        format!("{} {}", judgement.health.as_str(), judgement.sentence)
    }

    fn situation(rates: &Rates) -> Situation<'_> {
        Situation {
            stage: Stage::Ready,
            in_flight: 1,
            policy_version: 41,
            load_failure: None,
            rates,
            shedding: None,
            degraded: None,
            open_files: None,
        }
    }

    #[test]
    fn traffic_is_told_in_one_sentence() {
        for (admitted, refused, sentence) in [
            (0, &[][..], "green Healthy: no requests in the last seconds."),
            (4, &[], "green Healthy: 0.4 requests a second, none refused."),
            (
                12_028,
                &[("per_key", 300), ("other", 72)],
                "green Healthy: 1240 requests a second, 3 % refused, mostly by rule per_key.",
            ),
            (999, &[("a", 1)], "green Healthy: 100 requests a second, under 1 % refused, all by rule a."),
            (
                300,
                &[("a", 250), ("b", 240), ("c", 210)],
                "yellow Refusing: 100 requests a second, 70 % refused, most often by rule a.",
            ),
            (0, &[("a", 100)], "yellow Refusing: 10 requests a second, all refused, all by rule a."),
            (
                900,
                &[("upstream:orders", 80), ("a", 20)],
                "green Healthy: 100 requests a second, 10 % refused, mostly by upstream orders.",
            ),
        ] {
            assert_eq!(said(&rates(admitted, refused)), sentence);
        }
    }

    #[test]
    fn the_worst_comes_first() {
        let mut rates = rates(1000, &[]);
        let failing = |failures| UpstreamRate { upstream: "orders".to_owned(), attempts: 100, failures };
        rates.upstreams = vec![failing(7)];
        assert_eq!(said(&rates), "yellow Strained: upstream orders fails 7 % of its attempts.");
        rates.rules =
            vec![RuleRefusals { rule: "per_key".to_owned(), refused: 0, shadow_refused: 0, overflowed: 1 }];
        assert!(said(&rates).starts_with("yellow Strained: rule per_key has no room for new keys"));
        let shedding = Situation { shedding: Some("Shedding: some.".to_owned()), ..situation(&rates) };
        assert_eq!(
            shedding.judge(),
            Judgement { health: Health::Yellow, sentence: "Shedding: some.".to_owned() }
        );
        rates.upstreams = vec![failing(83)];
        assert_eq!(said(&rates), "red Red: upstream orders fails 83 % of its attempts.");
        let failure = LoadFailure {
            since: WallTime::from_unix_seconds(951_782_400),
            how: Unloaded::Wrong,
            summary: "2 errors.".to_owned(),
            findings: None,
        };
        let wrong = Situation { load_failure: Some(&failure), ..situation(&rates) };
        assert_eq!(
            wrong.judge().sentence,
            "Red: the policy on disk is wrong since 2000-02-29T00:00:00Z (2 errors); version 41 stays."
        );
        let draining =
            Situation { stage: Stage::Draining, shedding: Some("Shedding: some.".to_owned()), ..wrong };
        assert_eq!(draining.judge().sentence, "Draining: 1 request in flight.");
    }

    #[test]
    fn a_switched_route_is_told_unless_there_is_worse() {
        let degraded = Some("Degraded: one.".to_owned());
        for (rates, begins) in [
            (rates(0, &[]), "Degraded"),
            (rates(1000, &[("a", 1)]), "Degraded"),
            (rates(1, &[("a", 100)]), "Refusing"),
        ] {
            let judgement = Situation { degraded: degraded.clone(), ..situation(&rates) }.judge();
            assert!(judgement.sentence.starts_with(begins), "{judgement:?}");
            assert_eq!(judgement.health, Health::Yellow);
        }
    }

    #[test]
    fn few_attempts_say_nothing() {
        let mut rates = rates(1000, &[]);
        rates.upstreams =
            vec![UpstreamRate { upstream: "orders".to_owned(), attempts: ENOUGH - 1, failures: ENOUGH - 1 }];
        assert!(said(&rates).starts_with("green"));
    }
}
