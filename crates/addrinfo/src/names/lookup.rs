//! Name lookups on threads that may outlive the deadline.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::lookup_limit::LookupLimits;

impl LookupLimits {
    /// Runs a lookup, once it has a permit, until it ends or until `until`. Without a
    /// deadline it runs on this thread.
    ///
    /// `getaddrinfo(3)` cannot be cancelled, so a lookup with a deadline runs on a thread
    /// of its own. After the deadline the thread finishes on its own; it holds nothing but
    /// its permit and the channel for its result.
    pub(super) fn run<T: Send + 'static>(
        &self,
        until: Option<Instant>,
        lookup: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let permit = self.lookup(until).ok_or(Error::TooManyLookups)?;
        let Some(until) = until else {
            return Ok(lookup());
        };
        let (answer, answered) = sync_channel(1);
        thread::Builder::new()
            .name("rdmacm-lookup".to_owned())
            .spawn(move || {
                let found = lookup();
                drop(permit);
                // The caller may have given up.
                let _ = answer.send(found);
            })
            .map_err(|error| Error::NoThread(error.kind()))?;
        let left = until.saturating_duration_since(Instant::now());
        answered.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => Error::LookupDeadline,
            RecvTimeoutError::Disconnected => Error::LookupPanicked,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup_limit::MAX_LOOKUPS;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn an_answer_in_time_is_given() {
        assert_eq!(LookupLimits::default().run(Some(soon()), || 7), Ok(7));
        assert_eq!(LookupLimits::default().run(None, || 7), Ok(7));
    }

    #[test]
    fn a_silent_server_ends_at_the_deadline_and_the_number_left_behind_is_bounded() {
        let lookups = LookupLimits::default();
        let mut servers = Vec::new();
        for _ in 0..MAX_LOOKUPS {
            let (server, asked) = mpsc::channel::<()>();
            servers.push(server);
            let silent = move || asked.recv().is_ok();
            let at_once = Some(Instant::now());
            assert_eq!(lookups.run(at_once, silent), Err(Error::LookupDeadline));
        }
        let brief = Some(Instant::now() + Duration::from_millis(20));
        assert_eq!(lookups.run(brief, || 7), Err(Error::TooManyLookups));
        drop(servers);
        while lookups.lookups_in_use() > 0 {
            thread::yield_now();
        }
        assert_eq!(lookups.run(Some(soon()), || 7), Ok(7));
    }

    #[test]
    fn lookups_beyond_the_limit_wait_for_one_to_end() {
        let lookups = LookupLimits::default();
        let most = AtomicUsize::new(0);
        let look_up = {
            let lookups = lookups.clone();
            move || {
                thread::sleep(Duration::from_millis(5));
                lookups.lookups_in_use()
            }
        };
        thread::scope(|scope| {
            for index in 0..3 * MAX_LOOKUPS {
                let until = (index % 2 == 0).then(soon);
                let (lookups, most, look_up) = (&lookups, &most, look_up.clone());
                scope.spawn(move || {
                    let in_use = lookups.run(until, look_up).unwrap();
                    most.fetch_max(in_use, Ordering::Relaxed);
                });
            }
        });
        let most = most.into_inner();
        assert!(most <= MAX_LOOKUPS, "{most}");
        assert_eq!(lookups.lookups_in_use(), 0);
    }
}
