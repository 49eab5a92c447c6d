use tidegate_core::{Cost, Ratio};

use super::{Unreadable, shown, split};
use crate::problem::Code;

/// A number of bytes and how it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// As it was written: `64KiB`.
    pub written: String,
    /// How many bytes.
    pub bytes: u64,
}

/// A share from 0 to 100 % and how it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Percent {
    /// As it was written: `20%`.
    pub written: String,
    /// The hundredths, exactly.
    pub hundredths: Cost,
}

const UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

impl Size {
    /// Reads `64KiB`, `10MB`, `512B`.
    ///
    /// # Errors
    /// When there is no number, no unit or none that is known, or it is beyond counting.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let refused = |message: &str, help: String| {
            Err(Unreadable::new(Code::BadSize, format!("`{}` {message}", shown(text)), help))
        };
        let Some((number, unit)) = split(text) else {
            return refused(
                "is not a size",
                "write a number and a unit, such as \"64KiB\" or \"10MB\"".to_owned(),
            );
        };
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let message = if unit.is_empty() { "has no unit" } else { "has an unknown unit" };
            let help = match of_nginx(unit) {
                Some(meant) => format!("write \"{number}{meant}\" instead"),
                None => format!("write \"{number}B\", \"{number}KiB\" or \"{number}MiB\""),
            };
            return refused(message, help);
        };
        let total = u128::from(number.micros()) * u128::from(*factor) / 1_000_000;
        match u64::try_from(total) {
            Ok(bytes) => Ok(Self { written: text.trim().to_owned(), bytes }),
            Err(_) => refused("is more than can be counted", "write a smaller size".to_owned()),
        }
    }
}

/// What nginx and its like mean by one letter.
fn of_nginx(unit: &str) -> Option<&'static str> {
    match unit {
        "k" | "K" => Some("KiB"),
        "m" | "M" => Some("MiB"),
        "g" | "G" => Some("GiB"),
        _ => None,
    }
}

impl Percent {
    /// Reads `20%`, `0.5%`.
    ///
    /// # Errors
    /// When there is no number, no percent sign, or it is above a hundred.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let refused = |message: &str, help: String| {
            Err(Unreadable::new(Code::BadPercent, format!("`{}` {message}", shown(text)), help))
        };
        match split(text) {
            Some((number, "%")) if number <= Cost::of(100) => {
                Ok(Self { written: text.trim().to_owned(), hundredths: number })
            }
            Some((_, "%")) => refused("is more than everything", "write \"100%\" at most".to_owned()),
            Some((number, "")) => refused("has no unit", format!("write \"{number}%\"")),
            _ => refused(
                "is not a percentage",
                "write a number and a percent sign, such as \"20%\"".to_owned(),
            ),
        }
    }

    /// The share.
    #[must_use]
    pub fn ratio(&self) -> Ratio {
        // A hundredth is a million millionths, so everything is a hundred million.
        let millionths = u32::try_from(self.hundredths.micros()).unwrap_or(u32::MAX);
        Ratio::new(f64::from(millionths) / 1e8).unwrap_or(Ratio::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_are_read_exactly() {
        assert_eq!(Size::read("64KiB").unwrap().bytes, 65_536);
        assert_eq!(Size::read("1.5MB").unwrap().bytes, 1_500_000);
        assert_eq!(Percent::read("12.5%").unwrap().hundredths, "12.5".parse().unwrap());
        assert_eq!(Percent::read("12.5%").unwrap().ratio(), Ratio::new(0.125).unwrap());
        assert_eq!(Percent::read("100%").unwrap().ratio(), Ratio::ONE);
    }

    #[test]
    fn bad_sizes_and_shares_say_what_to_write() {
        let size = |text| Size::read(text).unwrap_err();
        assert_eq!(size("64").help, "write \"64B\", \"64KiB\" or \"64MiB\"");
        assert_eq!(size("2m").help, "write \"2MiB\" instead");
        assert_eq!(size("64Kb").message, "`64Kb` has an unknown unit");
        let share = |text| Percent::read(text).unwrap_err();
        assert_eq!(share("20").help, "write \"20%\"");
        assert_eq!(share("120%").message, "`120%` is more than everything");
    }
}
