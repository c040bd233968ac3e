//! Being asked to end, by Ctrl-C or `SIGTERM`.

use std::io;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// Whether somebody has asked this process to end. The first time it ends in
/// order, the second time at once, as the signal has it.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Heeds the signals from now on. To be called before there are other
    /// threads, which would have to heed them too, and within the runtime.
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
            if heard(&file).await.is_ok() {
                // Nothing to be done where the next one cannot end the process.
                let _ = signals.thread_unblock();
            }
            sender.send_replace(true);
        });
        Ok(Self(interrupted))
    }

    /// Whether somebody has asked.
    pub(crate) fn has_come(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody asks.
    pub(crate) async fn wait(&self) {
        let mut interrupted = self.0.clone();
        // The sender is gone only with the runtime.
        let _ = interrupted.wait_for(|interrupted| *interrupted).await;
    }
}

async fn heard(file: &AsyncFd<SignalFd>) -> io::Result<()> {
    loop {
        let mut ready = file.readable().await?;
        match ready.get_inner().read_signal() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => ready.clear_ready(),
            Err(errno) => return Err(errno.into()),
        }
    }
}
