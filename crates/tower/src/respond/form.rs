//! What answers have in common, written once.
//!
//! Refusals come in floods, and in a flood one differs from the next in a few numbers. So an answer is written with
//! blanks first, and then they are filled in:
//!
//! ```text
//! …"quota":[{"rule":"per_key","limit":20,"used":▢,"window_seconds":2,"retry_after":▢}],"instance":"urn:…:▢"}
//! RateLimit: "per_key";r=▢;t=▢
//! ```
//!
//! Each thread keeps the forms it filled in last, so the next refusal by the same rules only writes its numbers.
//! A rule is known by its place in memory, and so is the name of an upstream: another policy has others, and nobody
//! takes the place of what a form is kept for, since the form holds on to it.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use tidegate_core::{Cost, Retry};
use tidegate_policy::policy::Rule;
use tidegate_policy::{By, DecisionId, Standing, Standings};

use super::detail::{Detail, seconds, whole_seconds};
use super::kind::Kind;
use super::page::Page;
use super::sheet::{Blank, Sheet, Text};
use super::structured::LARGEST;
use super::{REFUSAL_BYTES, Said, fields, named, problem};

/// Forms that a thread keeps.
const KEPT: usize = 16;

thread_local! {
    static FORMS: [Cell<Option<Box<Form>>>; KEPT] = const { [const { Cell::new(None) }; KEPT] };
}

/// What an answer is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) standings: &'a Standings<'a>,
    /// What is refused, if anything is.
    pub(crate) said: Option<&'a Said<'a>>,
    /// Whether it is told as a problem.
    pub(crate) is_problem: bool,
    /// Whether the `RateLimit` fields are told.
    pub(crate) has_fields: bool,
}

/// What a form depends on beside the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Purpose {
    kind: Option<Kind>,
    is_problem: bool,
    has_fields: bool,
    names_retry: bool,
    is_never: bool,
}

/// An answer with blanks.
#[derive(Debug)]
pub(crate) struct Form {
    purpose: Purpose,
    /// Who answers.
    by: Option<Answering>,
    rules: Vec<Told>,
    status: StatusCode,
    /// All fields of a problem; of them `RateLimit` is to be replaced, and `Retry-After` if it is another.
    headers: HeaderMap,
    retry_after: Option<u64>,
    /// The same, each on its line.
    lines: Text,
    body: Text,
    policy: Option<HeaderValue>,
    state: Text,
}

/// What a form depends on of one rule.
#[derive(Debug)]
struct Told {
    rule: Arc<Rule>,
    limit: Cost,
    window: Duration,
    is_violated: bool,
    has_retry: bool,
}

impl Told {
    fn new(standing: &Standing<'_>) -> Self {
        let Standing { rule, limit, window, is_violated, .. } = *standing;
        Self { rule: Arc::clone(rule), limit, window, is_violated, has_retry: has_retry(standing) }
    }

    fn fits(&self, standing: &Standing<'_>) -> bool {
        Arc::ptr_eq(&self.rule, standing.rule)
            && self.limit == standing.limit
            && self.window == standing.window
            && self.is_violated == standing.is_violated
            && self.has_retry == has_retry(standing)
    }
}

/// Who answers, held on to.
#[derive(Debug)]
enum Answering {
    Rule(Arc<Rule>),
    Upstream(Arc<str>),
    Operator,
}

impl Answering {
    fn new(by: By<'_>) -> Self {
        match by {
            By::Rule(rule) => Self::Rule(Arc::clone(rule)),
            By::Upstream(name) => Self::Upstream(Arc::clone(name)),
            By::Operator => Self::Operator,
        }
    }

    const fn by(&self) -> By<'_> {
        match self {
            Self::Rule(rule) => By::Rule(rule),
            Self::Upstream(name) => By::Upstream(name),
            Self::Operator => By::Operator,
        }
    }
}

/// Its place in memory. A rule and a name never share one.
fn place_of(by: By<'_>) -> usize {
    match by {
        By::Rule(rule) => Arc::as_ptr(rule).addr(),
        By::Upstream(name) => Arc::as_ptr(name).addr(),
        By::Operator => 0,
    }
}

const fn has_retry(standing: &Standing<'_>) -> bool {
    matches!(standing.retry, Some(Retry::After(_)))
}

impl Case<'_> {
    /// The answer to a refused request, told as a problem.
    pub(crate) fn problem(&self, sheet: &mut Sheet, id: DecisionId) -> Response<Bytes> {
        self.with_form(|form| {
            form.body.fill(sheet, |sheet, blank| self.write(sheet, blank, Some(id)));
            let mut response = Response::new(sheet.cut());
            let mut headers = form.headers.clone();
            if let Some(seconds) = self.retry_after().filter(|seconds| Some(*seconds) != form.retry_after)
                && let Some(value) = sheet.integer(seconds).cut_field()
            {
                headers.insert(header::RETRY_AFTER, value);
            }
            if let Some(state) = self.state(sheet, &form.state) {
                headers.insert(fields::STATE, state);
            }
            *response.status_mut() = form.status;
            *response.headers_mut() = headers;
            response
        })
    }

    /// The same as it is written.
    pub(crate) fn page(&self, mut sheet: Sheet, id: DecisionId) -> Page {
        self.with_form(|form| {
            form.lines.fill(&mut sheet, |sheet, blank| self.write(sheet, blank, Some(id)));
            let body_at = sheet.length();
            form.body.fill(&mut sheet, |sheet, blank| self.write(sheet, blank, Some(id)));
            sheet.into_page(form.status, body_at)
        })
    }

    /// Adds the `RateLimit` fields.
    pub(crate) fn write_fields(&self, headers: &mut HeaderMap, sheet: &mut Sheet) {
        self.with_form(|form| {
            fields::append(headers, fields::POLICY, form.policy.clone());
            fields::append(headers, fields::STATE, self.state(sheet, &form.state));
        });
    }

    fn state(&self, sheet: &mut Sheet, state: &Text) -> Option<HeaderValue> {
        state.fill(sheet, |sheet, blank| self.write(sheet, blank, None));
        sheet.cut_field()
    }

    /// Fills in a blank.
    fn write(&self, sheet: &mut Sheet, blank: Blank, id: Option<DecisionId>) {
        let number = match blank {
            Blank::Id => return id.into_iter().for_each(|id| _ = sheet.id(id)),
            Blank::After => return self.retry_after().into_iter().for_each(|after| _ = sheet.integer(after)),
            Blank::Used(number) | Blank::Retry(number) | Blank::Remaining(number) | Blank::Until(number) => {
                number
            }
        };
        let Some(standing) = self.standings.get(number.into()) else { return };
        match (blank, standing.retry) {
            (Blank::Used(_), _) => _ = sheet.decimal(standing.used),
            (Blank::Retry(_), Some(Retry::After(delay))) => _ = sheet.decimal(seconds(named(delay))),
            (Blank::Remaining(_), _) => _ = sheet.integer(standing.remaining.whole().min(LARGEST)),
            (Blank::Until(_), _) => {
                let seconds = self.retry_after().unwrap_or_else(|| whole_seconds(standing.reset));
                sheet.integer(seconds.min(LARGEST));
            }
            (Blank::Retry(_) | Blank::After | Blank::Id, _) => {}
        }
    }

    fn retry_after(&self) -> Option<u64> {
        self.said?.retry_after()
    }

    fn by(&self) -> Option<By<'_>> {
        self.said?.by
    }

    /// Uses the form that was kept, or a new one, and keeps it.
    fn with_form<T>(&self, fill: impl FnOnce(&Form) -> T) -> T {
        let (purpose, place) = (self.purpose(), self.place());
        // A thread that is about to end has none.
        let kept = FORMS.try_with(|forms| forms[place].take()).ok().flatten();
        let form =
            kept.filter(|form| self.fits(form, purpose)).unwrap_or_else(|| Box::new(self.form(purpose)));
        let filled = fill(&form);
        if self.is_usual() {
            _ = FORMS.try_with(|forms| forms[place].set(Some(form)));
        }
        filled
    }

    /// Whether the words follow from the rules: not those about a field that a caller repeats.
    fn is_usual(&self) -> bool {
        self.said.is_none_or(|said| !matches!(said.detail, Detail::Repeated { .. }))
    }

    fn purpose(&self) -> Purpose {
        Purpose {
            kind: self.said.map(|said| said.kind),
            is_problem: self.is_problem,
            has_fields: self.has_fields,
            names_retry: self.retry_after().is_some(),
            is_never: self.said.is_some_and(|said| said.retry == Retry::Never),
        }
    }

    /// Where its form would be kept. Forms for the same place replace one another.
    fn place(&self) -> usize {
        let start = usize::from(self.is_problem) ^ self.by().map_or(0, place_of);
        let mixed = self.standings.iter().fold(start, |mixed, standing| {
            mixed.rotate_left(7) ^ Arc::as_ptr(standing.rule).addr() ^ usize::from(standing.is_violated)
        });
        mixed.wrapping_mul(0x9e37_79b9) >> 8 & (KEPT - 1)
    }

    fn fits(&self, form: &Form, purpose: Purpose) -> bool {
        let mut standings = self.standings.iter();
        form.purpose == purpose
            && form.by.as_ref().map(|by| place_of(by.by())) == self.by().map(place_of)
            && form.rules.iter().all(|told| standings.next().is_some_and(|standing| told.fits(standing)))
            && standings.next().is_none()
    }

    fn form(&self, purpose: Purpose) -> Form {
        let sheet = &mut Sheet::with_room(REFUSAL_BYTES);
        let mut form = Form {
            purpose,
            by: self.by().map(Answering::new),
            rules: self.standings.iter().map(Told::new).collect(),
            status: self.said.map_or(StatusCode::OK, |said| said.kind.status()),
            headers: HeaderMap::new(),
            retry_after: self.retry_after(),
            lines: Text::default(),
            body: Text::default(),
            policy: None,
            state: Text::default(),
        };
        if self.has_fields {
            form.policy = fields::policy(sheet, self.standings);
            form.state = fields::state(sheet, self.standings, purpose.names_retry);
        }
        if let Some(said) = self.said.filter(|_| self.is_problem) {
            form.body = problem::form(sheet, said, self.standings);
            form.headers = said.fields(sheet);
            fields::append(&mut form.headers, fields::POLICY, form.policy.clone());
            fields::append(&mut form.headers, fields::STATE, self.state(sheet, &form.state));
            form.lines = lines(sheet, &form.headers, &form.state);
        }
        form
    }
}

/// The fields of a problem on their lines; where they have numbers, these are left blank.
fn lines(sheet: &mut Sheet, headers: &HeaderMap, state: &Text) -> Text {
    for (name, value) in headers {
        sheet.push(name.as_str()).push(": ");
        if name == header::RETRY_AFTER {
            sheet.blank(Blank::After);
        } else if name == fields::STATE {
            sheet.text(state);
        } else {
            sheet.value(value);
        }
        sheet.push("\r\n");
    }
    sheet.cut_text()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tidegate_core::{Moment, WallTime};
    use tidegate_policy::{Attributes, Gate, Now, Refused, Source, read};

    use crate::respond::{Respond, Speech};

    fn at(millis: u64) -> Now {
        Now { moment: Moment::from_nanos(millis * 1_000_000), wall: WallTime::from_unix_nanos(0) }
    }

    /// Refusals at different times, by policies whose rules have the same names.
    fn refusals() -> Vec<(Now, Refused)> {
        let mut refusals = Vec::new();
        for rules in [
            r#"rule.a = { key = "global", quota = "1/min" }"#,
            r#"rule.a = { key = "global", quota = "2/min" }"#,
            "rule.a = { key = \"global\", quota = \"1/min\" }\nrule.b = { key = \"path\", quota = \"1/h\" }",
        ] {
            let (policy, _) = read(Source::named("form.toml", rules.as_bytes()), None).unwrap();
            let gate = Gate::new(policy, 7, at(0)).unwrap();
            for millis in [0, 0, 0, 1, 50_000, 59_500, 60_000, 61_000, 61_000] {
                let (method, path, host, headers) = ("GET", "/", "", &());
                let attributes = Attributes { method, path, host, headers, client: None, criticality: None };
                let refused = gate.decide(at(millis), &attributes).refused();
                refusals.extend(refused.map(|refused| (at(millis), refused)));
            }
        }
        refusals
    }

    #[test]
    fn a_form_that_was_kept_gives_the_same_answer_as_a_new_one() {
        let respond = Respond::default();
        let refusals = refusals();
        assert!(refusals.len() > 15, "{}", refusals.len());
        for (now, refused) in &refusals {
            let answer = || {
                let response = respond.refused(*now, refused, Speech::Http);
                let (status, headers) = (response.status(), response.headers().clone());
                let lines: Vec<_> =
                    headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                (status, lines, response.into_body())
            };
            // A thread of its own has kept nothing.
            let fresh = thread::scope(|scope| scope.spawn(answer).join().unwrap());
            assert_eq!(answer(), fresh);

            let page = respond.page(*now, refused, Speech::Http).unwrap();
            let (status, lines, body) = fresh;
            let written: Vec<u8> = (lines.iter())
                .flat_map(|(name, value)| {
                    [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat()
                })
                .collect();
            assert_eq!((page.status(), page.lines(), page.body()), (status, &written[..], &body[..]));
        }
    }
}
