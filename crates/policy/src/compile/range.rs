//! Numbers, sizes and lengths of time that must lie in a range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::document::read::Field;
use crate::problem::{Code, Problem, Problems};
use crate::quantity::{Length, Size};
use crate::text::Span;

/// A whole number in a range, where one was written.
pub(super) fn count(
    written: Option<&Field<u64>>,
    range: RangeInclusive<u64>,
    path: &str,
    problems: &mut Problems,
) -> Option<usize> {
    let field = written?;
    if !range.contains(&field.value) {
        let allowed = format!("from {} to {}", range.start(), range.end());
        problems.push(outside(field.value, &allowed, field.span, path));
    }
    usize::try_from(field.value).ok()
}

/// A size in a range, which has its words: "from 8KiB to 1MiB".
pub(super) fn size(
    written: Option<&Field<Size>>,
    range: RangeInclusive<u64>,
    allowed: &str,
    path: &str,
    problems: &mut Problems,
) -> Option<usize> {
    let field = written?;
    if !range.contains(&field.value.bytes) {
        problems.push(outside(&field.value.written, allowed, field.span, path));
    }
    usize::try_from(field.value.bytes).ok()
}

/// A time to wait for something, which must not be none.
pub(super) fn patience(
    written: Option<&Field<Length>>,
    path: &str,
    problems: &mut Problems,
) -> Option<Duration> {
    let field = written?;
    if field.value.duration.is_zero() {
        problems.push(outside(&field.value.written, "longer than 0s", field.span, path));
    }
    Some(field.value.duration)
}

pub(super) fn outside(value: impl Display, allowed: &str, span: Span, path: &str) -> Problem {
    let key = path.rsplit('.').next().unwrap_or(path);
    let problem = Problem::new(Code::BadNumber, format!("{key} is {value}, but must be {allowed}"));
    problem.at(span).path(path).label("change it, or remove it for the default")
}
