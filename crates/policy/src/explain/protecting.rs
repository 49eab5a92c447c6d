//! What rules say that protect the service itself.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use tidegate_core::shed::Cohort;
use tidegate_core::{Criticality, Ratio, Usage};

use super::RuleKind;
use super::text::Time;
use crate::gate::{SignalReading, hardest};
use crate::policy::SignalUnit;

impl RuleKind {
    /// `12 of 400 in flight, 320 open to sheddable.` and `sheddable: 25 % of callers are refused since cpu is at 92 %,
    /// target 85 %; this caller is in cohort 17 of 128.`
    pub(super) fn write(&self, f: &mut Formatter<'_>, usage: &Usage) -> fmt::Result {
        match self {
            Self::Rate | Self::Concurrency => Ok(()),
            Self::Reserve { criticality, open, kept_for } => {
                let (used, capacity) = (usage.used.whole(), usage.limit.whole());
                write!(f, "{used} of {capacity} in flight, ")?;
                if criticality < kept_for {
                    write!(f, "{open} open to {criticality}.")
                } else {
                    write!(f, "{open} open to anybody; {criticality} is counted and not refused.")
                }
            }
            Self::Shed { criticality, refused, cohort, signals, .. } => {
                write_shedding(f, (*criticality, *refused, *cohort), signals)
            }
        }
    }

    /// What would have let it pass.
    pub(super) fn advice(&self, usage: &Usage) -> Option<String> {
        match self {
            Self::Rate | Self::Concurrency => None,
            Self::Reserve { criticality, kept_for, .. } if criticality >= kept_for => None,
            Self::Reserve { open, kept_for, .. } => {
                let ended = match usage.used.whole().saturating_sub(u64::from(*open)) {
                    0 => "one of them has ended".to_owned(),
                    more => format!("{} of them have ended", more + 1),
                };
                Some(format!("It passes when {ended}, or as {kept_for}."))
            }
            Self::Shed { passes_as, .. } => {
                let otherwise = passes_as.map_or_else(String::new, |level| format!("as {level}, or "));
                Some(format!(
                    "It passes {otherwise}when the signals have been below their targets for a while."
                ))
            }
        }
    }
}

fn write_shedding(
    f: &mut Formatter<'_>,
    (criticality, refused, cohort): (Criticality, Ratio, Cohort),
    signals: &[SignalReading],
) -> fmt::Result {
    let pressing = hardest(signals);
    let reading = pressing.map(|signal| Reading(signal).to_string());
    if refused == Ratio::ZERO {
        return match reading {
            Some(reading) => write!(f, "{criticality}: nobody is refused, and {reading}."),
            None => write!(f, "{criticality}: nobody is refused."),
        };
    }
    match refused {
        Ratio::ONE => write!(f, "{criticality}: all callers are refused")?,
        share => write!(f, "{criticality}: {} of callers are refused", Percent(share.value()))?,
    }
    let is_above = pressing.is_some_and(|signal| signal.value.is_some_and(|value| value > signal.target));
    match reading {
        Some(reading) if is_above => write!(f, " since {reading}")?,
        Some(reading) => write!(f, " while the ramp goes back: {reading}")?,
        None => write!(f, " while the ramp goes back")?,
    }
    write!(f, "; this caller is in cohort {} of {}.", cohort.number(), Cohort::COUNT)
}

/// `cpu is at 92 %, target 85 %`
struct Reading<'a>(&'a SignalReading);

impl Display for Reading<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let SignalReading { signal, value, target } = self.0;
        let amount = |number| Amount(signal.unit(), number);
        match value {
            Some(value) => write!(f, "{signal} is at {}, target {}", amount(*value), amount(*target)),
            None => write!(f, "{signal} is not known, target {}", amount(*target)),
        }
    }
}

/// A signal's reading in its unit.
struct Amount(SignalUnit, f64);

impl Display for Amount {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            SignalUnit::Share => Percent(self.1).fmt(f),
            SignalUnit::Time => match Duration::try_from_secs_f64(self.1) {
                Ok(time) => Time(time).fmt(f),
                Err(_) => write!(f, "{} s", self.1),
            },
            SignalUnit::Number => write!(f, "{}", Short(self.1)),
        }
    }
}

pub(super) struct Percent(pub(super) f64);

impl Display for Percent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", Short(self.0 * 100.0))
    }
}

/// A number with one decimal at most.
struct Short(f64);

impl Display for Short {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let written = format!("{:.1}", self.0);
        f.write_str(written.strip_suffix(".0").unwrap_or(&written))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::shed::Epoch;
    use tidegate_core::{Cost, Usage};

    use super::*;
    use crate::policy::SignalName;

    struct Said(RuleKind, u32, u32);

    impl Display for Said {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            let (used, limit) = (Cost::of(self.1), Cost::of(self.2));
            let usage = Usage { limit, used, remaining: limit.minus(used), reset: Duration::ZERO };
            self.0.write(f, &usage)?;
            write!(f, " {}", self.0.advice(&usage).unwrap_or_default())
        }
    }

    #[test]
    fn a_reserve_says_what_is_open_to_whom() {
        let reserve =
            |criticality| RuleKind::Reserve { criticality, open: 320, kept_for: Criticality::Critical };
        let said = |criticality, used| Said(reserve(criticality), used, 400).to_string();
        assert_eq!(
            said(Criticality::Sheddable, 320),
            "320 of 400 in flight, 320 open to sheddable. It passes when one of them has ended, or as critical."
        );
        assert_eq!(
            said(Criticality::SheddablePlus, 402),
            "402 of 400 in flight, 320 open to sheddable_plus. It passes when 83 of them have ended, or as critical."
        );
        assert_eq!(
            said(Criticality::Critical, 402),
            "402 of 400 in flight, 320 open to anybody; critical is counted and not refused. "
        );
    }

    #[test]
    fn a_shed_rule_says_who_is_refused_and_which_signal_presses() {
        let shed = |refused, value| RuleKind::Shed {
            criticality: Criticality::Sheddable,
            refused: Ratio::new(refused).unwrap(),
            cohort: Cohort::of(b"ann", Epoch(497_222)),
            passes_as: Some(Criticality::SheddablePlus),
            signals: vec![
                SignalReading { signal: SignalName::Cpu, value, target: 0.85 },
                SignalReading { signal: SignalName::QueueDelay, value: Some(0.0015), target: 0.005 },
            ],
        };
        let said = |refused, value| Said(shed(refused, value), 0, 0).to_string();
        let advice =
            "It passes as sheddable_plus, or when the signals have been below their targets for a while.";
        let cohort = "this caller is in cohort 101 of 128.";
        assert_eq!(
            said(0.25, Some(0.92)),
            format!(
                "sheddable: 25 % of callers are refused since cpu is at 92 %, target 85 %; {cohort} {advice}"
            )
        );
        assert_eq!(
            said(1.0, Some(0.125)),
            format!(
                "sheddable: all callers are refused while the ramp goes back: queue_delay is at 1.5 ms, target 5 ms; {cohort} {advice}"
            )
        );
        assert!(
            said(0.0, Some(0.6))
                .starts_with("sheddable: nobody is refused, and cpu is at 60 %, target 85 %.")
        );
    }
}
