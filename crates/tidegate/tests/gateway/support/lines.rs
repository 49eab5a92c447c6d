//! What a program prints, line by line, while it runs.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};

use super::PATIENCE;

/// The lines that have come so far.
#[derive(Clone, Debug, Default)]
pub struct Lines(Arc<(Mutex<Printed>, Condvar)>);

#[derive(Debug, Default)]
struct Printed {
    lines: Vec<String>,
    has_ended: bool,
}

impl Lines {
    /// Reads on a thread of its own, until the end.
    pub fn follow(from: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let printed = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                printed.change(|printed| printed.lines.push(line));
            }
            printed.change(|printed| printed.has_ended = true);
        });
        lines
    }

    fn change(&self, change: impl FnOnce(&mut Printed)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    /// Waits for a line that is wanted; none if the program ends without it.
    pub fn find(&self, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let found = |printed: &Printed| printed.lines.iter().find(|line| is_wanted(line)).cloned();
        let printed = self.0.0.lock().unwrap();
        let is_missing = |printed: &mut Printed| found(printed).is_none() && !printed.has_ended;
        let (printed, _) = self.0.1.wait_timeout_while(printed, PATIENCE, is_missing).unwrap();
        found(&printed)
    }

    /// Waits until so many lines have come.
    pub fn first(&self, count: usize) -> Vec<String> {
        let printed = self.0.0.lock().unwrap();
        let is_short = |printed: &mut Printed| printed.lines.len() < count && !printed.has_ended;
        let (printed, _) = self.0.1.wait_timeout_while(printed, PATIENCE, is_short).unwrap();
        assert!(printed.lines.len() >= count, "only {:#?}", printed.lines);
        printed.lines.iter().take(count).cloned().collect()
    }

    /// Waits until the program has closed its side, and gives everything.
    pub fn all(&self) -> Vec<String> {
        let printed = self.0.0.lock().unwrap();
        let (printed, _) =
            self.0.1.wait_timeout_while(printed, PATIENCE, |printed| !printed.has_ended).unwrap();
        assert!(printed.has_ended, "it still prints; so far {:#?}", printed.lines);
        printed.lines.clone()
    }

    /// What has come by now.
    pub fn so_far(&self) -> Vec<String> {
        self.0.0.lock().unwrap().lines.clone()
    }
}
