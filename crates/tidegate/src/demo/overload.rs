//! Ten times too much: the same service without and with a gateway before it, under the same load, at the
//! same time.
//!
//! ```text
//!                               ┌──────────────────> a service for 300 requests a second
//! callers of four criticalities ┤
//!       3000 a second           └──> [ gateway ] ──> another one, alike
//! ```
//!
//! Everything runs in this process, over loopback sockets that the system chooses, so there is nothing to
//! clean up when it ends, by itself or by Ctrl-C.

mod closing;
mod cost;
mod refusal;
mod running;
mod screen;
mod side;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_scenario::Effort;
use tokio::signal::unix::{SignalKind, signal};

use crate::Problem;
use crate::commands::Ended;
use crate::run::limits;

use closing::Closing;
use cost::{Meter, Micros};
use refusal::Shown;
use running::Running;
use screen::{Frame, Screen};
use side::Side;

/// What is shown, and how.
#[derive(Clone, Copy, Debug)]
pub struct Show {
    /// How many requests the services work on at a time, each for 20 ms.
    pub workers: usize,
    /// How long half of what the service can do is asked for.
    pub before: Duration,
    /// How long ten times as much as it can do is asked for.
    pub flood: Duration,
    /// How long half of it is asked for again.
    pub after: Duration,
    /// How long everything is forwarded, to see what that costs.
    pub forwarding: Duration,
    /// Where it is shown.
    pub style: Style,
}

/// How figures are shown while they change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line from time to time.
    Lines,
    /// In place, on a terminal that knows how to move its cursor.
    Redrawn,
}

impl Style {
    /// Between two looks at the figures.
    const fn pause(self) -> Duration {
        match self {
            Self::Lines => Duration::from_secs(1),
            Self::Redrawn => Duration::from_millis(500),
        }
    }
}

impl Show {
    /// Half a minute.
    #[must_use]
    pub const fn usual(style: Style) -> Self {
        Self {
            workers: 6,
            before: Duration::from_secs(4),
            flood: Duration::from_secs(14),
            after: Duration::from_secs(6),
            forwarding: Duration::from_secs(3),
            style,
        }
    }

    /// Requests a second that a service can do.
    fn capacity(&self) -> f64 {
        self.workers as f64 / WORK.as_secs_f64()
    }

    fn length(&self) -> Duration {
        self.before + self.flood + self.after
    }

    fn phase(&self, now: Duration) -> Phase {
        match now {
            now if now < self.before => Phase::Before,
            now if now < self.before + self.flood => Phase::Flood,
            _ => Phase::After,
        }
    }
}

/// A part of the show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Before,
    Flood,
    After,
}

impl Phase {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Flood => "flood",
            Self::After => "after",
        }
    }

    /// How many times the capacity is asked for.
    const fn load(self) -> f64 {
        match self {
            Self::Before | Self::After => CALM,
            Self::Flood => FLOOD,
        }
    }
}

/// How long a worker takes for a request.
const WORK: Duration = Duration::from_millis(20);

/// What is said of a machine on which the difference cannot be seen.
const TOO_BUSY: &str = "This machine is too busy to show anything: the gateway made no clear difference.";

const CALM: f64 = 0.5;
const FLOOD: f64 = 10.0;

/// How long callers wait for an answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The callers, most critical first: name and share. Critical and above are 0.6 of the capacity in the flood:
/// they fit.
const LEVELS: [(&str, f64); 4] =
    [("critical_plus", 0.03), ("critical", 0.03), ("sheddable_plus", 0.34), ("sheddable", 0.60)];

/// Shows it.
///
/// # Errors
/// When a socket cannot be had, or the page cannot be written.
pub fn write(page: &mut dyn Write, show: &Show) -> Result<Ended, Problem> {
    limits::raise();
    let interrupt = Interrupt::watch()?;
    introduction(page, show)?;
    let Some(played) = play(page, show, &interrupt)? else { return Ok(Ended::Interrupted) };
    let forwarded = cost::of_forwarding(show, &interrupt)?;
    if interrupt.came() {
        return Ok(Ended::Interrupted);
    }
    let cost = Micros::of(played.flood, forwarded);
    let closing = Closing { without: played.without, behind: played.behind, cost };
    if let Some(shown) = played.refusal {
        shown.write(page)?;
    }
    writeln!(page, "\nNext: `tidegate init` writes a policy, `tidegate run` serves it, and")?;
    writeln!(page, "`tidegate demo --quotas` shows what each kind of quota does.\n")?;
    // The last thing, for it is what stays on the screen.
    closing.write(page, show)?;
    if !closing.is_better() {
        writeln!(page, "{TOO_BUSY}")?;
    }
    page.flush()?;
    Ok(if closing.is_better() { Ended::Done } else { Ended::Failed })
}

/// What came of the show.
struct Played {
    without: side::Seen,
    behind: side::Seen,
    /// What the gateway used in the flood, and for what.
    flood: Option<Effort>,
    refusal: Option<Shown>,
}

/// Plays both sides at once; none when it was interrupted.
fn play(page: &mut dyn Write, show: &Show, interrupt: &Interrupt) -> Result<Option<Played>, Problem> {
    let services = [side::service(show)?, side::service(show)?];
    let gateway = Running::start(services[1].address())?;
    let [without, behind] = services;
    let without = Side::start(show, without, None)?;
    let behind = Side::start(show, behind, Some(gateway.address))?;
    let began = behind.began();
    let mut screen = Screen::new(page, show)?;
    let (mut meter, mut refusal) = (Meter::default(), None);
    let (mut last, mut looked) = ([without.look(), behind.look()], Duration::ZERO);
    while looked < show.length() {
        interrupt.wait_until(began + looked + show.style.pause());
        if interrupt.came() {
            return Ok(None);
        }
        let (now, looks) = (began.elapsed(), [without.look(), behind.look()]);
        let phase = show.phase(looked);
        if phase == Phase::Flood {
            meter.read(&looks[1]);
            let is_half_over = now > show.before + show.flood / 2;
            if is_half_over && refusal.is_none() {
                refusal = refusal::of(&gateway);
            }
        }
        let sides = [looks[0].since(&last[0]), looks[1].since(&last[1])];
        screen.show(&Frame { time: looked..now, phase, sides, gateway: gateway.status() })?;
        (last, looked) = (looks, now);
    }
    screen.end()?;
    let (without, behind) = (without.end(show), behind.end(show));
    gateway.stop();
    Ok(Some(Played { without, behind, flood: meter.effort(), refusal }))
}

fn introduction(page: &mut dyn Write, show: &Show) -> io::Result<()> {
    let capacity = show.capacity();
    let flood = capacity * FLOOD;
    writeln!(
        page,
        "Tidegate: a service for {capacity:.0} requests a second, and callers who want {flood:.0}.\n"
    )?;
    let seconds = [show.before, show.flood, show.after].map(|time| time.as_secs_f64());
    let [before, flood, after] = seconds;
    let patience = PATIENCE.as_millis();
    writeln!(page, "Two such services side by side, one of them behind a gateway. Both get the same:")?;
    writeln!(
        page,
        "{before:.0} s of half of what they can do, {flood:.0} s of ten times as much, {after:.0} s of half again."
    )?;
    writeln!(page, "Whoever has no answer after {patience} ms gives up. Critical requests and above would")?;
    writeln!(page, "fit: they are 6 of 100, which is 0.6 of the capacity.\n")?;
    page.flush()
}

/// Whether somebody pressed Ctrl-C.
#[derive(Clone, Debug)]
struct Interrupt {
    came: Arc<AtomicBool>,
    /// Who sleeps.
    sleeper: thread::Thread,
}

impl Interrupt {
    /// From now on Ctrl-C does not end the program by itself. The thread waits for as long as the program
    /// lives.
    fn watch() -> io::Result<Self> {
        let interrupt = Self { came: Arc::default(), sleeper: thread::current() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut pressed = {
            let _within = runtime.enter();
            signal(SignalKind::interrupt())?
        };
        let told = interrupt.clone();
        let wait = move || {
            runtime.block_on(pressed.recv());
            told.came.store(true, Ordering::Release);
            told.sleeper.unpark();
        };
        thread::Builder::new().name("interrupt".to_owned()).spawn(wait)?;
        Ok(interrupt)
    }

    fn came(&self) -> bool {
        self.came.load(Ordering::Acquire)
    }

    /// Sleeps until then, or until Ctrl-C.
    fn wait_until(&self, moment: Instant) {
        while !self.came() {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}
