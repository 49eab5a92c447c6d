//! The figures while they change: in place on a terminal, line by line elsewhere.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::time::Duration;

use tidegate_load::SoFar;
use tidegate_tower::bulkhead::Status;

use super::side::Look;
use super::{LEVELS, Phase, Show, Style};

/// Control sequences that every terminal of the last decades knows.
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_LINE: &str = "\x1b[K";

/// What is shown at a time.
#[derive(Debug)]
pub(super) struct Frame {
    /// Since the last look, until this one.
    pub(super) time: Range<Duration>,
    pub(super) phase: Phase,
    /// What happened meanwhile, without and with a gateway.
    pub(super) sides: [Look; 2],
    pub(super) gateway: Option<Status>,
}

/// Where it is shown. On a terminal the cursor is hidden meanwhile, and comes back however this ends.
pub(super) struct Screen<'a> {
    page: &'a mut dyn Write,
    show: &'a Show,
    /// How many lines the last frame had.
    height: usize,
}

impl<'a> Screen<'a> {
    pub(super) fn new(page: &'a mut dyn Write, show: &'a Show) -> io::Result<Self> {
        match show.style {
            Style::Lines => page.write_all(heading().as_bytes())?,
            Style::Redrawn => page.write_all(HIDE_CURSOR.as_bytes())?,
        }
        page.flush()?;
        Ok(Self { page, show, height: 0 })
    }

    pub(super) fn show(&mut self, frame: &Frame) -> io::Result<()> {
        match self.show.style {
            Style::Lines => self.page.write_all(line(frame).as_bytes())?,
            Style::Redrawn => {
                let text = picture(frame, self.show);
                let back = if self.height > 0 { format!("\x1b[{}A", self.height) } else { String::new() };
                self.height = text.lines().count();
                let lines: String = text.lines().map(|line| format!("{line}{CLEAR_LINE}\n")).collect();
                // In one piece, so that nobody sees half of it.
                self.page.write_all(format!("{back}{lines}").as_bytes())?;
            }
        }
        self.page.flush()
    }

    /// Leaves the last figures where they are.
    pub(super) fn end(self) -> io::Result<()> {
        self.page.flush()
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        if self.show.style == Style::Redrawn {
            // Where this cannot be written nobody looks any more.
            self.page.write_all(SHOW_CURSOR.as_bytes()).and_then(|()| self.page.flush()).unwrap_or_default();
        }
    }
}

/// What a side looks like in words.
struct Words {
    a_second: f64,
    levels: [String; 4],
    mean: String,
    waiting: usize,
}

impl Words {
    fn of(look: &Look, time: &Range<Duration>) -> Self {
        let ok: u64 = look.levels.iter().map(|level| level.ok).sum();
        let took: Duration = look.levels.iter().map(|level| level.latency).sum();
        let mean = u32::try_from(ok).ok().and_then(|ok| took.checked_div(ok));
        Self {
            a_second: ok as f64 / (time.end - time.start).as_secs_f64(),
            levels: look.levels.each_ref().map(served),
            mean: mean.map_or_else(|| "–".to_owned(), |mean| format!("{} ms", mean.as_millis())),
            waiting: look.waiting,
        }
    }
}

/// Which share of what ended was served.
fn served(level: &SoFar) -> String {
    match level.ended() {
        0 => "–".to_owned(),
        ended => format!("{:.0} %", 100.0 * level.ok as f64 / ended as f64),
    }
}

/// A picture of two columns.
fn picture(frame: &Frame, show: &Show) -> String {
    let [without, behind] = frame.sides.each_ref().map(|side| Words::of(side, &frame.time));
    let wanted = show.capacity() * frame.phase.load();
    let mut text = String::new();
    let mut row = |what: &str, left: String, right: String| {
        // Writing to a text cannot fail.
        writeln!(text, "  {what:<28}{left:>18}{right:>20}").unwrap_or_default();
    };
    let title = format!("{:>4.1} s, {}", frame.time.end.as_secs_f64(), frame.phase.as_str());
    row(&title, "without Tidegate".to_owned(), "behind Tidegate".to_owned());
    row("asked for, a second", format!("{wanted:.0}"), format!("{wanted:.0}"));
    row("answered in time, a second", format!("{:.0}", without.a_second), format!("{:.0}", behind.a_second));
    for ((name, _), (left, right)) in LEVELS.iter().zip(without.levels.into_iter().zip(behind.levels)) {
        row(&format!("  of {name}"), left, right);
    }
    row("mean time of an answer", without.mean, behind.mean);
    row("waiting in the service", without.waiting.to_string(), behind.waiting.to_string());
    let limit = frame.gateway.as_ref().map_or_else(String::new, |status| status.limit.to_string());
    row("let in at a time", "all".to_owned(), limit);
    text
}

fn heading() -> String {
    let side = format!("{:>8}{:>9}{:>10}{:>6}", "answers", "critical", "sheddable", "queue");
    let sides = format!("{:12}{:^33}{:^33}", "", "without Tidegate", "behind Tidegate");
    format!("{}\n{:12}{side}{side}\n", sides.trim_end(), "")
}

/// One line: critical and above together, and so the others.
fn line(frame: &Frame) -> String {
    let side = |look: &Look| {
        let [plus, critical, sheddable_plus, sheddable] = look.levels;
        let both = |one: SoFar, other: SoFar| {
            served(&SoFar {
                ok: one.ok + other.ok,
                refused: one.refused + other.refused,
                failed: one.failed + other.failed,
                latency: Duration::ZERO,
            })
        };
        let a_second = format!("{:.0}/s", Words::of(look, &frame.time).a_second);
        let (upper, lower) = (both(plus, critical), both(sheddable_plus, sheddable));
        format!("{a_second:>8}{upper:>9}{lower:>10}{:>6}", look.waiting)
    };
    let [without, behind] = frame.sides.each_ref().map(side);
    format!("{:>2.0} s {:<7}{without}{behind}\n", frame.time.end.as_secs_f64(), frame.phase.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        let level = |ok, refused| SoFar { ok, refused, failed: 0, latency: Duration::from_millis(30 * ok) };
        let behind = Look { levels: [level(5, 0), level(5, 0), level(10, 30), level(0, 90)], waiting: 2 };
        let time = Duration::from_millis(2500)..Duration::from_secs(3);
        let without = Look { levels: [SoFar { failed: 7, ..SoFar::default() }; 4], waiting: 900 };
        Frame { time, phase: Phase::Flood, sides: [without, behind], gateway: None }
    }

    fn shown(style: Style) -> String {
        let (mut page, show) = (Vec::new(), Show { style, ..Show::usual(style) });
        let mut screen = Screen::new(&mut page, &show).unwrap();
        (0..2).for_each(|_| screen.show(&frame()).unwrap());
        screen.end().unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn lines_have_no_control_sequences() {
        let text = shown(Style::Lines);
        let last = text.lines().last().unwrap();
        let words: Vec<&str> = last.split_whitespace().collect();
        assert_eq!(
            words,
            ["3", "s", "flood", "0/s", "0", "%", "0", "%", "900", "40/s", "100", "%", "8", "%", "2"]
        );
        assert!(!text.contains('\x1b'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_terminal_is_redrawn_and_gets_its_cursor_back() {
        let text = shown(Style::Redrawn);
        assert!(text.starts_with(HIDE_CURSOR) && text.ends_with(SHOW_CURSOR));
        assert!(
            picture(&frame(), &Show::usual(Style::Redrawn)).lines().all(|line| line.chars().count() <= 80)
        );
        // The second frame begins where the first did: ten lines up.
        assert_eq!(text.matches("\x1b[10A").count(), 1, "{text}");
        assert!(
            text.contains("mean time of an answer                       –               30 ms"),
            "{text}"
        );
    }
}
