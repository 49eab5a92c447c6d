//! The criticality of a request, told to whoever serves it.
//!
//! What callers say of themselves is believed from trusted peers only, and nobody further on can tell who said it. So
//! what others said ends here, and where the policy knows about criticality, what it found goes on, as `x-criticality`
//! and in `baggage` (W3C), whose other members pass as they are:
//!
//! | from       | comes                                        | goes on (it was found to be critical) |
//! |------------|----------------------------------------------|----------------------|
//! | a stranger | `x-criticality: critical_plus`               | `x-criticality: critical`, `baggage: criticality=critical` |
//! | a stranger | `baggage: id=7, criticality=critical_plus`   | the same, `baggage: id=7,criticality=critical` |
//! | anybody, where the policy says nothing of it | as above   | nothing of a stranger's; a trusted peer's as it is |

use http::header::Entry;
use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_core::Criticality;
use tidegate_policy::policy::Policy;

const FIELD: HeaderName = HeaderName::from_static("x-criticality");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
const MEMBER: &str = "criticality";

/// The most that `baggage` may hold; what would exceed it is not added.
const MOST_MEMBERS: usize = 64;
const MOST_BYTES: usize = 8_192;

/// Whether a policy says anything about criticality.
pub(crate) fn is_known(policy: &Policy) -> bool {
    !policy.criticality.is_empty()
        || !policy.criticality_from.is_empty()
        || policy.default_criticality != Criticality::default()
}

/// Writes what a request was found to be, or if that is nothing, takes away what a stranger said.
pub(crate) fn tell(
    headers: &mut HeaderMap,
    found: Option<Criticality>,
    (is_trusted, said): (bool, &[String]),
) {
    if found.is_none() && (is_trusted || !headers.keys().any(|name| *name == FIELD || *name == BAGGAGE)) {
        return;
    }
    match found {
        Some(found) => drop(headers.insert(FIELD, value(found))),
        None => drop(headers.remove(FIELD)),
    }
    let not_said = if is_trusted { &[] } else { said };
    match headers.entry(BAGGAGE) {
        Entry::Vacant(none) => {
            if let Some(found) = found {
                none.insert(alone(found));
            }
        }
        Entry::Occupied(mut some) => {
            let others: Vec<&[u8]> =
                some.iter().flat_map(|line| members(line.as_bytes(), not_said)).collect();
            match joined(&others, found) {
                Some(baggage) => drop(some.insert(baggage)),
                None => drop(some.remove_entry_mult()),
            }
        }
    }
}

/// The members of a line of baggage that are not about criticality, nor among others.
fn members<'a>(line: &'a [u8], others: &'a [String]) -> impl Iterator<Item = &'a [u8]> {
    line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| {
        let name = member.split(|byte| matches!(byte, b'=' | b';')).next().unwrap_or_default().trim_ascii();
        let is_other = others.iter().any(|other| other.as_bytes() == name);
        !member.is_empty() && name != MEMBER.as_bytes() && !is_other
    })
}

/// One line of all members and what was found, if it has room for that.
fn joined(others: &[&[u8]], found: Option<Criticality>) -> Option<HeaderValue> {
    let mut line = others.join(&b","[..]);
    if let Some(found) = found {
        let own = format!("{MEMBER}={}", found.as_str());
        if others.len() < MOST_MEMBERS && line.len() + 1 + own.len() <= MOST_BYTES {
            if !line.is_empty() {
                line.push(b',');
            }
            line.extend_from_slice(own.as_bytes());
        }
    }
    if line.is_empty() { None } else { HeaderValue::try_from(line).ok() }
}

fn value(found: Criticality) -> HeaderValue {
    HeaderValue::from_static(found.as_str())
}

fn alone(found: Criticality) -> HeaderValue {
    HeaderValue::from_static(match found {
        Criticality::Sheddable => "criticality=sheddable",
        Criticality::SheddablePlus => "criticality=sheddable_plus",
        Criticality::Critical => "criticality=critical",
        Criticality::CriticalPlus => "criticality=critical_plus",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(fields: &[(HeaderName, &str)], found: Option<Criticality>, is_trusted: bool) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        tell(&mut headers, found, (is_trusted, &["weight".to_owned()]));
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn what_was_found_goes_on_and_other_members_pass() {
        let critical = Some(Criticality::Critical);
        assert_eq!(
            told(&[(FIELD, "critical_plus"), (FIELD, "odd")], critical, false),
            ["x-criticality: critical", "baggage: criticality=critical"]
        );
        let baggage = [(BAGGAGE, "id=7;p, criticality = sheddable;q"), (BAGGAGE, "b=1")];
        assert_eq!(
            told(&baggage, critical, true),
            ["baggage: id=7;p,b=1,criticality=critical", "x-criticality: critical"]
        );
    }

    #[test]
    fn without_a_policy_on_it_only_strangers_are_silenced() {
        let fields = [(FIELD, "sheddable"), (BAGGAGE, "criticality=sheddable")];
        assert_eq!(told(&fields, None, false), [""; 0]);
        assert_eq!(told(&fields, None, true).len(), 2);
        assert_eq!(told(&[(BAGGAGE, "a=1")], None, false), ["baggage: a=1"]);
        let weighted = [(BAGGAGE, "a=1, weight=critical_plus")];
        assert_eq!(told(&weighted, None, false), ["baggage: a=1"], "nor by a name of the policy's own");
        assert_eq!(told(&weighted, None, true), ["baggage: a=1, weight=critical_plus"]);
    }

    #[test]
    fn baggage_that_is_full_gets_no_more() {
        let full = vec!["a=1"; 64].join(",");
        assert_eq!(
            told(&[(BAGGAGE, &full)], Some(Criticality::Critical), true),
            [format!("baggage: {full}"), "x-criticality: critical".to_owned()]
        );
    }
}
