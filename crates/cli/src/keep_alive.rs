//! Detecting that the peer's host is dead.

use std::time::Duration;

use rdmacm::StreamOptions;
use tokio::time::sleep;

/// How long a side waits for its peer until it sends an empty write, and from then on between two
/// of them. They fail if the peer's host is dead.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// How long a peer may be silent that has no reason to pause.
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// The options of the command's streams, whose library sends the empty writes.
pub(crate) fn stream_options() -> StreamOptions {
    StreamOptions::new().keep_alive(KEEP_ALIVE_INTERVAL)
}

/// Sends a keep-alive after each interval without completions. Returns once there have been none
/// for as long as `limit`, and how long that was; before the first completion, which all peers
/// cause at once, for as long as [`SILENCE_LIMIT`] if there is no limit.
pub(crate) async fn watch(
    completions: impl Fn() -> u64,
    send_keep_alive: impl Fn(),
    limit: Option<Duration>,
) -> Duration {
    let (mut seen, mut silent) = (completions(), Duration::ZERO);
    loop {
        // Counts intervals and does not read the clock: a process that was stopped for long finds
        // what has arrived meanwhile after one more interval at most.
        sleep(KEEP_ALIVE_INTERVAL).await;
        let so_far = completions();
        if so_far != seen {
            (seen, silent) = (so_far, Duration::ZERO);
            continue;
        }
        silent += KEEP_ALIVE_INTERVAL;
        let is_new = so_far == 0;
        let limit = limit.or(is_new.then_some(SILENCE_LIMIT));
        if limit.is_some_and(|limit| silent >= limit) {
            return silent;
        }
        // The accepting side of an iWARP connection must not send first.
        if !is_new {
            send_keep_alive();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::{Instant, timeout};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn keep_alives_are_sent_to_a_silent_peer_until_the_limit() {
        let (began, posted) = (Instant::now(), Cell::new(0));
        let send = || posted.set(posted.get() + 1);
        let silent = watch(|| 1, send, Some(SILENCE_LIMIT)).await;
        assert_eq!((silent, began.elapsed()), (SILENCE_LIMIT, SILENCE_LIMIT));
        assert_eq!(posted.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_may_pause_gets_keep_alives_for_ever() {
        let posted = Cell::new(0);
        let send = || posted.set(posted.get() + 1);
        let watched = timeout(MINUTE * 10 + SILENCE_LIMIT / 6, watch(|| 1, send, None)).await;
        assert!(watched.is_err());
        assert_eq!(posted.get(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_has_sent_nothing_gets_no_keep_alives() {
        for (limit, expected) in [(None, SILENCE_LIMIT), (Some(MINUTE), MINUTE)] {
            let silent = watch(|| 0, || panic!("it sends first"), limit).await;
            assert_eq!(silent, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_is_not_silent() {
        let began = Instant::now();
        // One completion in 25 seconds, until five minutes have passed.
        let completions = || began.elapsed().min(MINUTE * 5).as_secs() / 25;
        let silent = watch(completions, || {}, Some(SILENCE_LIMIT)).await;
        assert_eq!(silent, SILENCE_LIMIT);
        assert_eq!(began.elapsed(), MINUTE * 5 + SILENCE_LIMIT);
    }
}
