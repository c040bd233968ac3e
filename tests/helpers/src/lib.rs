//! What the tests of several crates share.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on panics"
)]

mod forked_child;
mod ucma_file;

pub use forked_child::child_ends;

use std::fs;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

/// How long something may take that takes a moment; emulated machines are slow.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Polls a future this many times at most, and drops it.
pub async fn poll_at_most<F: Future>(count: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = count;
    poll_fn(|context| {
        let Some(less) = left.checked_sub(1) else {
            return Poll::Ready(None);
        };
        left = less;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A thread that another one watches.
#[derive(Debug)]
pub struct WatchedThread {
    /// Its directory in proc(5).
    directory: PathBuf,
}

impl WatchedThread {
    /// The calling thread.
    #[must_use]
    pub fn current() -> Self {
        let directory = fs::read_link("/proc/thread-self").unwrap();
        Self {
            directory: Path::new("/proc").join(directory),
        }
    }

    /// Waits until the thread sleeps.
    pub fn wait_until_asleep(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let stat = fs::read_to_string(self.directory.join("stat")).unwrap();
            let (_, after_the_name) = stat.rsplit_once(") ").unwrap();
            if after_the_name.starts_with('S') {
                return;
            }
            assert!(Instant::now() < until, "{stat}");
            thread::yield_now();
        }
    }
}
