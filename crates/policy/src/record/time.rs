//! Wall time as people and log tools write it: `2026-11-15T23:18:39.25Z`.
//!
//! Days are counted in the calendar that began on 1 March of year 0, so that the leap day comes last and every
//! month before it begins at a fixed place: month `m` of that year, counted from zero, begins on day
//! `(153 m + 2) / 5`.

use tidegate_core::WallTime;

const NANOS: u64 = 1_000_000_000;
const DAY: u64 = 86_400;
/// Days from 1 March of year 0 to 1 January 1970.
const TO_1970: u64 = 719_468;
/// Days in 400 years.
const ERA: u64 = 146_097;

/// Wall time as people and log tools write it: `2026-11-15T23:18:39.25Z`.
#[must_use]
pub fn write(time: WallTime) -> String {
    let (seconds, nanos) = (time.unix_nanos() / NANOS, time.unix_nanos() % NANOS);
    let days = seconds / DAY + TO_1970;
    let (era, day_of_era) = (days / ERA, days % ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year_of_era + later;
    let (hour, minute, second) = (seconds % DAY / 3_600, seconds % 3_600 / 60, seconds % 60);
    let fraction = if nanos == 0 { String::new() } else { format!(".{nanos:09}") };
    let fraction = fraction.trim_end_matches('0');
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Reads it; none when it is something else, or beyond the year 2554.
#[must_use]
pub fn read(text: &str) -> Option<WallTime> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    if !is_time || !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * ERA + day_of_era).checked_sub(TO_1970)?;
    let seconds = days * DAY + hour * 3_600 + minute * 60 + second;
    let nanos = match fraction.len() {
        0 => 0,
        1..=9 => format!("{fraction:0<9}").parse::<u64>().ok()?,
        _ => return None,
    };
    Some(WallTime::from_unix_nanos(seconds.checked_mul(NANOS)?.checked_add(nanos)?))
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates_are_written_and_read() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400 * NANOS, "2000-02-29T00:00:00Z"),
            (951_868_800 * NANOS, "2000-03-01T00:00:00Z"),
            (1_704_067_199 * NANOS + 250_000_000, "2023-12-31T23:59:59.25Z"),
            (4_107_542_400 * NANOS + 1, "2100-03-01T00:00:00.000000001Z"),
        ] {
            assert_eq!(write(WallTime::from_unix_nanos(nanos)), text);
            assert_eq!(read(text), Some(WallTime::from_unix_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "2026-11-15", "2026-11-15T10:00:00", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
