//! The async runtime: the current thread.

use std::future::Future;
use std::io;

use tokio::runtime::Builder;

use crate::interrupt::Interrupt;

/// Runs a task that may watch for Ctrl-C.
pub(crate) fn run<T, F: Future<Output = T>>(task: impl FnOnce(Interrupt) -> F) -> io::Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async { Ok(task(Interrupt::watch()?).await) });
    // A read of standard input may never end.
    runtime.shutdown_background();
    done
}
