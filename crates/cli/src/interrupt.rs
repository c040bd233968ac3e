//! Ending by `SIGINT` (Ctrl-C) or `SIGTERM`.

use std::io;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::sync::watch;

/// Signals that arrive within this time are one: `timeout(1)` sends one to the process, and then
/// one to its group.
const TOGETHER: Duration = Duration::from_millis(300);

/// Whether a signal asked this process to end. The first signal ends it in order, and one that does not
/// come [together](TOGETHER) with it at once, with the signal's default action. Once this and all its
/// clones are dropped, the first one does, too: nothing is left to end in order.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts to watch for the signals that this process does not ignore: it inherits that from
    /// its parent. A shell without job control ignores `SIGINT` for what it starts with `&`, so
    /// that Ctrl-C does not end that.
    ///
    /// A thread of its own watches, so that a signal ends the process also while the caller writes
    /// to a pipe that nobody reads. Call it before other threads start, which would have to block
    /// the signals too.
    pub(crate) fn watch() -> io::Result<Self> {
        let ignored = ignored_signals();
        let signals = [Signal::SIGINT, Signal::SIGTERM];
        let signals: SigSet = signals
            .into_iter()
            .filter(|signal| !contains(ignored, *signal))
            .collect();
        // The thread inherits the mask.
        signals.thread_block()?;
        let (sender, interrupted) = watch::channel(false);
        let file = signal_file(&signals)?;
        let watching = move || {
            // If this fails, signals do nothing.
            let _ = await_signal(&signals, &file, &sender);
            // A signal is delivered to this thread: only its mask lets it pass.
            loop {
                thread::park();
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(watching)?;
        Ok(Self(interrupted))
    }

    /// Whether a signal has arrived.
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for a signal.
    pub(crate) async fn wait(&self) {
        let mut interrupted = self.0.clone();
        // The sender lives as long as this.
        let _ = interrupted.wait_for(|interrupted| *interrupted).await;
    }
}

/// A descriptor from which these signals are read, while they are blocked.
fn signal_file(signals: &SigSet) -> nix::Result<SignalFd> {
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    SignalFd::with_flags(signals, flags)
}

/// Waits for the first of these signals, and for those that arrive [together](TOGETHER) with it, and
/// unblocks them for this thread. If nobody is left to learn of it, that ends the process.
fn await_signal(
    signals: &SigSet,
    file: &SignalFd,
    sender: &watch::Sender<bool>,
) -> nix::Result<()> {
    let mut readable = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    while let Err(errno) = poll(&mut readable, PollTimeout::NONE) {
        if errno != Errno::EINTR {
            return Err(errno);
        }
    }
    if sender.send(true).is_ok() {
        thread::sleep(TOGETHER);
        while let Ok(Some(_)) = file.read_signal() {}
    }
    signals.thread_unblock()
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Output};

    use nix::sys::signal::{kill, raise};
    use nix::unistd::Pid;
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
        if is_child() {
            return check_that_only_sigterm_interrupts();
        }
        let ended = in_child("trap '' INT; ", "an_ignored_signal_does_not_interrupt");
        assert!(ended.status.success(), "{ended:?}");
        let output = String::from_utf8_lossy(&ended.stdout);
        assert!(output.contains("1 passed"), "{output}");
    }

    /// The thread of the runtime does something else, as it does while it writes to a full pipe.
    #[test]
    fn a_further_signal_ends_the_process() {
        if is_child() {
            return interrupt_until_ended();
        }
        let ended = in_child("", "a_further_signal_ends_the_process");
        assert_eq!(
            ended.status.signal(),
            Some(Signal::SIGTERM as i32),
            "{ended:?}"
        );
    }

    /// The second one would end the process before that has ended in order.
    #[test]
    fn signals_that_arrive_together_are_one() {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        signals.thread_block().unwrap();
        let file = signal_file(&signals).unwrap();
        let (sender, interrupted) = watch::channel(false);
        for signal in &signals {
            raise(signal).unwrap();
        }
        await_signal(&signals, &file, &sender).unwrap();
        assert!(*interrupted.borrow());
        let mask = SigSet::thread_get_mask().unwrap();
        assert!(signals.iter().all(|signal| !mask.contains(signal)));
    }

    /// It may be writing to a pipe that nobody reads.
    #[test]
    fn the_first_signal_ends_a_process_whose_work_is_done() {
        if is_child() {
            drop(Interrupt::watch().unwrap());
            kill(Pid::this(), Signal::SIGTERM).unwrap();
            loop {
                thread::park();
            }
        }
        let ended = in_child("", "the_first_signal_ends_a_process_whose_work_is_done");
        assert_eq!(
            ended.status.signal(),
            Some(Signal::SIGTERM as i32),
            "{ended:?}"
        );
    }

    fn is_child() -> bool {
        std::env::var_os(IS_CHILD).is_some()
    }

    /// Runs a test in a process of its own that this shell command prepares. All its threads block
    /// the signals, as those of the command do.
    fn in_child(prepare: &str, test: &str) -> Output {
        Command::new("sh")
            .args(["-c", &format!("{prepare} exec \"$0\" \"$@\"")])
            .args(["env", "--block-signal=INT,TERM"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &format!("interrupt::tests::{test}")])
            .env(IS_CHILD, "1")
            .output()
            .unwrap()
    }

    #[tokio::main(flavor = "current_thread")]
    async fn check_that_only_sigterm_interrupts() {
        let interrupt = Interrupt::watch().unwrap();
        kill(Pid::this(), Signal::SIGINT).unwrap();
        let waited = timeout(Duration::from_millis(100), interrupt.wait()).await;
        assert!(waited.is_err() && !interrupt.is_set());
        kill(Pid::this(), Signal::SIGTERM).unwrap();
        interrupt.wait().await;
        assert!(interrupt.is_set());
    }

    fn interrupt_until_ended() {
        let interrupt = Interrupt::watch().unwrap();
        loop {
            kill(Pid::this(), Signal::SIGTERM).unwrap();
            thread::sleep(TOGETHER);
            assert!(interrupt.is_set());
        }
    }
}
