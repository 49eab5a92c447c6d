//! Files that a policy names, such as the table of callers.
//!
//! Its author may be somebody else than the one who may read this machine's files: a policy can be sent over the
//! network. So a sent one reaches [`Reach::Beside`] its folder and what the running policy reads anyway, and nothing
//! else, wherever `..` and links lead. To look at a path first and open it then would leave a moment in which a link
//! can be swapped. So the file is held first without being opened, which neither waits nor does anything to a device;
//! what is held is looked at; and what was looked at is opened.
//!
//! | bound | beyond it |
//! |---|---|
//! | a regular file | refused: a FIFO waits, a device has no end |
//! | 32 MiB | refused |
//! | 2 s, since a network disk may be away | refused; the thread that waits for it ends when the disk does |
//! | 4 such threads | refused at once |

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

/// The largest file that is read.
const LARGEST: u64 = 32 << 20;

/// How long reading may take.
const TIME: Duration = Duration::from_secs(2);

/// How many files are read at once, those included that are waited for no more.
const MOST_AT_ONCE: usize = 4;

/// How many are.
static AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// Which files a policy may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Any: it lies on this machine, and whoever wrote it there could read them.
    Anywhere,
    /// Those in its folder, and those that the running policy reads.
    Beside {
        /// Where the running policy lies.
        folder: PathBuf,
        /// What the running policy reads.
        also: Vec<PathBuf>,
    },
}

impl Reach {
    /// Reads a file that is named so; the path is joined with the policy's folder already.
    ///
    /// # Errors
    /// With the reason, which says nothing of what stands in the file, nor whether there is one out of reach.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let place = Place::take().ok_or("four files are being read already")?;
        let (sender, read) = sync_channel(1);
        let (reach, path) = (self.clone(), path.to_owned());
        let work = move || {
            // Whoever waited may have left.
            sender.send(reach.read_here(&path)).ok();
            drop(place);
        };
        let thread = thread::Builder::new().name("tidegate-file".to_owned()).spawn(work);
        drop(thread.map_err(|problem| format!("there is no thread to read it: {problem}"))?);
        match read.recv_timeout(TIME) {
            Ok(read) => read,
            Err(RecvTimeoutError::Timeout) => Err("it could not be read within 2 seconds".to_owned()),
            Err(RecvTimeoutError::Disconnected) => {
                Err("the thread that read it ended; this is a bug".to_owned())
            }
        }
    }

    fn read_here(&self, path: &Path) -> Result<Vec<u8>, String> {
        let held = match hold(path) {
            Ok(held) => held,
            // Whether there is a file is told only where one may be.
            Err(_) if !self.could_reach(path) => return Err(OUTSIDE.to_owned()),
            Err(problem) => return Err(problem.to_string()),
        };
        if !self.reaches(&held.real) {
            return Err(OUTSIDE.to_owned());
        }
        let mut file = held.open()?;
        let mut bytes = Vec::new();
        let read = file.by_ref().take(LARGEST + 1).read_to_end(&mut bytes);
        read.map_err(|problem| problem.to_string())?;
        if bytes.len() as u64 > LARGEST { Err(TOO_LARGE.to_owned()) } else { Ok(bytes) }
    }

    /// Whether the file with this real path may be read.
    fn reaches(&self, real: &Path) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Beside { folder, also } => {
                let is_inside =
                    fs::canonicalize(or_here(folder)).is_ok_and(|folder| real.starts_with(folder));
                is_inside || also.iter().any(|path| fs::canonicalize(path).is_ok_and(|path| path == real))
            }
        }
    }

    /// Whether a path could lead to such a file, as far as can be seen without following it.
    fn could_reach(&self, path: &Path) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Beside { folder, also } => {
                let (path, folder) = (absolute(path), absolute(or_here(folder)));
                path.starts_with(folder) || also.iter().any(|also| absolute(also) == path)
            }
        }
    }
}

const OUTSIDE: &str = "it lies outside of the policy's folder, and the running policy does not read it";
const TOO_LARGE: &str = "it is larger than 32 MiB";
const NOT_REGULAR: &str = "it is not a regular file";

/// A file that is held and not open.
struct Held {
    file: File,
    /// Where it lies, links followed.
    real: PathBuf,
}

/// Holds what a path leads to, without opening it: the system says where it lies and what it is.
#[cfg(target_os = "linux")]
fn hold(path: &Path) -> io::Result<Held> {
    use std::os::fd::AsRawFd;

    let held = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let real = fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd()))?;
    Ok(Held { file: File::from(held), real })
}

#[cfg(target_os = "linux")]
impl Held {
    /// Opens it, if it is a file that can be read to its end.
    fn open(self) -> Result<File, String> {
        use std::os::fd::AsRawFd;

        fits(&self.file)?;
        // What is held is opened, and not what the path leads to by now.
        let name = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let opened = rustix::fs::open(name, READING, Mode::empty());
        opened.map(File::from).map_err(|problem| io::Error::from(problem).to_string())
    }
}

/// Where nothing can be held without opening it, the real path is opened without following a link, and must still be
/// the real path afterwards.
#[cfg(not(target_os = "linux"))]
fn hold(path: &Path) -> io::Result<Held> {
    let real = fs::canonicalize(path)?;
    if !fs::symlink_metadata(&real)?.is_file() {
        return Err(io::Error::other(NOT_REGULAR));
    }
    let file = File::from(rustix::fs::open(&real, READING | OFlags::NOFOLLOW, Mode::empty())?);
    if fs::canonicalize(path)? != real {
        return Err(io::Error::other("it was replaced while it was opened"));
    }
    Ok(Held { file, real })
}

#[cfg(not(target_os = "linux"))]
impl Held {
    fn open(self) -> Result<File, String> {
        fits(&self.file)?;
        Ok(self.file)
    }
}

/// What was regular when it was looked at does not wait; the flags make sure of it.
const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn fits(file: &File) -> Result<(), String> {
    let about = file.metadata().map_err(|problem| problem.to_string())?;
    if !about.is_file() {
        return Err(NOT_REGULAR.to_owned());
    }
    if about.len() > LARGEST { Err(TOO_LARGE.to_owned()) } else { Ok(()) }
}

fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// A path from the root, by its letters alone.
fn absolute(path: &Path) -> PathBuf {
    plainly(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// A path without `.` and `..`, by its letters alone.
fn plainly(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// One of the places for threads that read.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let taken = AT_ONCE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < MOST_AT_ONCE).then_some(count + 1)
        });
        taken.is_ok().then_some(Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        AT_ONCE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_without_their_detours() {
        for (path, plain) in [("a/./b", "a/b"), ("a/../b", "b"), ("../a", "../a"), ("a/../../b", "../b")] {
            assert_eq!(plainly(Path::new(path)), Path::new(plain), "{path}");
        }
    }
}
