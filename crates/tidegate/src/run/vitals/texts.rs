//! Small files in which the system tells numbers.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most that is read of one file. The longest is the list of mounts, which has some hundred bytes for each.
const LONGEST: u64 = 1 << 20;

/// Where texts come from.
pub(super) trait Texts {
    /// The whole text, as far as it is one.
    fn text(&self, path: &Path) -> io::Result<String>;
}

/// The system's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk;

impl Texts for Disk {
    fn text(&self, path: &Path) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The number in a file that holds just one; none when it is missing or says something else, such as `max`.
pub(super) fn number(texts: &impl Texts, path: &Path) -> Option<u64> {
    texts.text(path).ok()?.trim().parse().ok()
}

/// The first word behind a name at the beginning of a line: `24684100` of `MemTotal:       24684100 kB`.
pub(super) fn word<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| words.next().filter(|word| *word == name).and_then(|_| words.next()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Texts by their paths.
    pub(in super::super) struct Written(BTreeMap<&'static str, &'static str>);

    impl Written {
        pub(in super::super) fn new<const N: usize>(texts: [(&'static str, &'static str); N]) -> Self {
            Self(texts.into())
        }

        /// The same with another text in one place.
        pub(in super::super) fn with(mut self, path: &'static str, text: &'static str) -> Self {
            self.0.insert(path, text);
            self
        }
    }

    impl Texts for Written {
        fn text(&self, path: &Path) -> io::Result<String> {
            let found = path.to_str().and_then(|path| self.0.get(path));
            found.map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn numbers_stand_alone_or_behind_their_names() {
        let texts = Written::new([("/one", "123\n"), ("/max", "max\n"), ("/odd", "-1"), ("/none", "")]);
        let read = |path: &str| number(&texts, Path::new(path));
        assert_eq!(
            ["/one", "/max", "/odd", "/none", "/missing"].map(read),
            [Some(123), None, None, None, None]
        );
        let text = "MemTotal:       24684100 kB\nMemFree: \n\n";
        assert_eq!(word(text, "MemTotal:"), Some("24684100"));
        assert_eq!((word(text, "MemFree:"), word(text, "Mem")), (None, None));
    }

    #[test]
    fn of_a_file_without_end_only_the_beginning_is_read() {
        assert_eq!(Disk.text(Path::new("/dev/zero")).unwrap().len() as u64, LONGEST);
        assert!(Disk.text(Path::new("/proc/self/nothing")).is_err());
    }
}
