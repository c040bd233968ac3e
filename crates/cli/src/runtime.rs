//! Where what waits runs: this thread alone.

use std::future::Future;
use std::io;

use tokio::runtime::Builder;

use crate::interrupt::Interrupt;

/// Runs a task that heeds Ctrl-C.
pub(crate) fn run<T, F: Future<Output = T>>(task: impl FnOnce(Interrupt) -> F) -> io::Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { Ok(task(Interrupt::watch()?).await) })
}
