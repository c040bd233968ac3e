//! Ending by `SIGINT` (Ctrl-C) or `SIGTERM`.

use std::io;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::sleep;

/// Signals that arrive within this time are one: `timeout(1)` sends one to the process, and then
/// one to its group.
const TOGETHER: Duration = Duration::from_millis(300);

/// Whether a signal asked this process to end. The first signal ends it in order, and one that does not
/// come [together](TOGETHER) with it at once, with the signal's default action.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts to watch for the signals that this process does not ignore: it inherits that from
    /// its parent. A shell without job control ignores `SIGINT` for what it starts with `&`, so
    /// that Ctrl-C does not end that.
    ///
    /// Call it within the runtime and before other threads start, which would have to block the
    /// signals too.
    pub(crate) fn watch() -> io::Result<Self> {
        let ignored = ignored_signals();
        let signals = [Signal::SIGINT, Signal::SIGTERM];
        let signals: SigSet = signals
            .into_iter()
            .filter(|signal| !contains(ignored, *signal))
            .collect();
        signals.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        #[expect(
            deprecated,
            reason = "its successor is new and takes a proof that an owned descriptor is one"
        )]
        let file = AsyncFd::new(SignalFd::with_flags(&signals, flags)?)?;
        let (sender, interrupted) = watch::channel(false);
        tokio::spawn(async move {
            let arrived = signal_arrived(&file).await;
            sender.send_replace(true);
            if arrived.is_ok() {
                sleep(TOGETHER).await;
                while let Ok(Some(_)) = file.get_ref().read_signal() {}
                // If this fails, further signals do nothing.
                let _ = signals.thread_unblock();
            }
        });
        Ok(Self(interrupted))
    }

    /// Whether a signal has arrived.
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for a signal.
    pub(crate) async fn wait(&self) {
        let mut interrupted = self.0.clone();
        // The sender lives as long as the runtime.
        let _ = interrupted.wait_for(|interrupted| *interrupted).await;
    }
}

/// The signals that this process ignores, one bit each; none if `/proc` is not mounted.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status).unwrap_or(0)
}

/// The ignored signals of a status file (`proc_pid_status(5)`).
fn ignored_in(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Whether the mask has the signal. Signals count from 1.
fn contains(mask: u64, signal: Signal) -> bool {
    let bit = u32::try_from(signal as i32 - 1).ok();
    let shifted = bit.and_then(|bit| mask.checked_shr(bit));
    shifted.is_some_and(|shifted| shifted & 1 == 1)
}

async fn signal_arrived(file: &AsyncFd<SignalFd>) -> io::Result<()> {
    loop {
        let mut ready = file.readable().await?;
        match ready.get_inner().read_signal() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => ready.clear_ready(),
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sys::signal::raise;
    use tokio::time::timeout;

    use super::*;

    /// The environment variable that the child process has.
    const IS_CHILD: &str = "RDMACM_TEST_IS_CHILD";

    #[test]
    fn the_status_file_has_the_ignored_signals() {
        let status = "SigBlk:\t0000000000000002\nSigIgn:\t0000000000005000\nSigCgt:\t0\n";
        let mask = ignored_in(status);
        assert_eq!(mask, Some(0x5000));
        let is_ignored = |signal| mask.is_some_and(|mask| contains(mask, signal));
        assert!(is_ignored(Signal::SIGPIPE) && is_ignored(Signal::SIGTERM));
        assert!(!is_ignored(Signal::SIGINT) && !is_ignored(Signal::SIGSYS));
        assert_eq!(ignored_in("SigIgn:\tmany\n"), None);
        assert_eq!(ignored_in(""), None);
    }

    /// Runs itself in a process that ignores `SIGINT`.
    #[test]
    fn an_ignored_signal_does_not_interrupt() {
        if std::env::var_os(IS_CHILD).is_some() {
            return check_that_only_sigterm_interrupts();
        }
        in_child("trap '' INT; ", "an_ignored_signal_does_not_interrupt");
    }

    /// Runs a test in a process of its own that this shell command prepares.
    fn in_child(prepare: &str, test: &str) {
        let child = Command::new("sh")
            .args(["-c", &format!("{prepare} exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &format!("interrupt::tests::{test}")])
            .env(IS_CHILD, "1")
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(output.contains("1 passed"), "{output}");
    }

    /// The second one would end the process before that has ended in order.
    #[test]
    fn signals_that_arrive_together_are_one() {
        if std::env::var_os(IS_CHILD).is_some() {
            return check_that_two_signals_interrupt();
        }
        in_child("", "signals_that_arrive_together_are_one");
    }

    #[tokio::main(flavor = "current_thread")]
    async fn check_that_two_signals_interrupt() {
        let interrupt = Interrupt::watch().unwrap();
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            raise(signal).unwrap();
        }
        interrupt.wait().await;
        let is_blocked = || SigSet::thread_get_mask().unwrap().contains(Signal::SIGTERM);
        while is_blocked() {
            sleep(TOGETHER / 10).await;
        }
    }

    /// Both signals are sent to this thread, which blocks those that it watches.
    #[tokio::main(flavor = "current_thread")]
    async fn check_that_only_sigterm_interrupts() {
        let interrupt = Interrupt::watch().unwrap();
        raise(Signal::SIGINT).unwrap();
        let waited = timeout(Duration::from_millis(100), interrupt.wait()).await;
        assert!(waited.is_err() && !interrupt.is_set());
        raise(Signal::SIGTERM).unwrap();
        interrupt.wait().await;
        assert!(interrupt.is_set());
    }
}
