//! Ending by `SIGINT` (Ctrl-C) or `SIGTERM`.

use std::io;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// Whether a signal asked this process to end. The first signal ends it in order, the
/// second one at once, with the signal's default action.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts to watch for the signals. Call it within the runtime and before other threads
    /// start, which would have to block the signals too.
    pub(crate) fn watch() -> io::Result<Self> {
        let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        signals.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        #[expect(
            deprecated,
            reason = "its successor is new and takes a proof that an owned descriptor is one"
        )]
        let file = AsyncFd::new(SignalFd::with_flags(&signals, flags)?)?;
        let (sender, interrupted) = watch::channel(false);
        tokio::spawn(async move {
            if signal_arrived(&file).await.is_ok() {
                // If this fails, further signals do nothing.
                let _ = signals.thread_unblock();
            }
            sender.send_replace(true);
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
