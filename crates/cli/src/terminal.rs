//! What is said while a task runs.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// A result, on standard output, as soon as it is known. A reader that has gone
/// does not end the task.
pub(crate) fn tell(result: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{result}").and_then(|()| stdout.flush());
}

/// A remark, on standard error.
pub(crate) fn remark(remark: &str) {
    let _ = writeln!(io::stderr(), "rdmacm: {remark}");
}

/// One line that changes, where standard error is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    on_terminal: bool,
    shown: Option<Instant>,
}

/// Between two changes.
const PACE: Duration = Duration::from_millis(100);

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            on_terminal: io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// Shows a line, if the one before has been there for a while.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= PACE);
        if self.on_terminal && is_due {
            self.shown = Some(Instant::now());
            // Over the line before, and to the end of the screen's.
            let _ = write!(io::stderr(), "\r{}\x1b[K", line());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
