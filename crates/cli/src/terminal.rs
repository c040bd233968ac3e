//! Output while a task runs.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Prints a result to standard output at once. Other tasks run while nobody reads it.
///
/// # Errors
/// Why it was not written, such as a closed pipe.
pub(crate) async fn print_result(result: &impl Display) -> io::Result<()> {
    crate::check_stdout()?;
    let line = format!("{result}\n");
    let print = move || {
        let mut stdout = io::stdout().lock();
        stdout.write_all(line.as_bytes())?;
        stdout.flush()
    };
    tokio::task::spawn_blocking(print).await?
}

/// Prints a notice or an error to standard error, in one write. The output and the exit code are
/// the result, also if nobody reads this.
pub(crate) fn print_notice(notice: &str) {
    let _ = io::stderr().write_all(format!("rdmacm: {notice}\n").as_bytes());
}

/// A line that is overwritten as the task goes on, if standard error is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    on_terminal: bool,
    shown: Option<Instant>,
}

/// The time between two updates.
const INTERVAL: Duration = Duration::from_millis(100);

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            on_terminal: io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// Shows a line, at most one each [`INTERVAL`].
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= INTERVAL);
        if self.on_terminal && is_due {
            self.shown = Some(Instant::now());
            // Overwrites the previous line and clears the rest of it.
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
