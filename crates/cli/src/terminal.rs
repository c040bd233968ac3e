//! Output while a task runs.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

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

/// Prints the error with which the process ends to standard error, in one write. The output and the
/// exit code are the result, also if nobody reads this.
pub(crate) fn print_error(error: &str) {
    let _ = io::stderr().write_all(line(error).as_bytes());
}

/// Prints a notice to standard error while a task runs. Drops it if nobody reads what was printed
/// before: a write would keep the task waiting.
pub(crate) fn print_notice(notice: &str) {
    let mut stderr = io::stderr().lock();
    if is_writable(&stderr) {
        let _ = stderr.write_all(line(notice).as_bytes());
    }
}

fn line(text: &str) -> String {
    format!("rdmacm: {text}\n")
}

/// Whether a short write returns at once. A pipe has room for `PIPE_BUF` bytes then.
fn is_writable(file: &impl AsFd) -> bool {
    let mut file = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
    poll(&mut file, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
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
            let mut stderr = io::stderr().lock();
            if is_writable(&stderr) {
                // Overwrites the previous line and clears the rest of it.
                let _ = write!(stderr, "\r{}\x1b[K", line());
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let mut stderr = io::stderr().lock();
        if self.shown.is_some() && is_writable(&stderr) {
            let _ = write!(stderr, "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use nix::fcntl::OFlag;
    use nix::unistd::pipe2;

    use super::*;

    #[test]
    fn a_full_pipe_is_not_writable() {
        let (reader, writer) = pipe2(OFlag::O_NONBLOCK).unwrap();
        let mut writer = File::from(writer);
        assert!(is_writable(&writer));
        while writer.write(&[0]).is_ok() {}
        assert!(!is_writable(&writer));
        // Nobody can read it any more: a write fails at once.
        drop(reader);
        assert!(is_writable(&writer));
    }
}
