//! More peers at once than the kernel keeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm::Listener;
use rdmacm_tests::{PATIENCE, Site};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::QueuePairs;
use super::asynchronous::{connector, on_one_thread};

crate::cases!("face::burst": three_times_the_backlog_waits_for_nobody);

const BACKLOG: usize = 64;
const BURST: usize = 3 * BACKLOG;

/// After this long the kernel repeats a request that was dropped.
const REPEATED: Duration = Duration::from_secs(4);

/// What has been read is no part of the backlog, beyond which the kernel drops
/// requests: so many wait at a time to be read, and all of them to be accepted.
fn three_times_the_backlog_waits_for_nobody(site: &Site) {
    let backlog = u32::try_from(BACKLOG).unwrap();
    let listener = Listener::options().backlog(backlog).bind(site.v4(0));
    let listener = listener.unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(site);
    let room = Arc::new(Semaphore::new(BACKLOG));
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming: Vec<_> = (0..BURST)
                .map(|_| {
                    let incoming = listener.accept(PATIENCE).unwrap();
                    room.add_permits(1);
                    incoming
                })
                .collect();
            let accepted = incoming
                .into_iter()
                .map(|one| one.accept_with(queue_pairs.clone()));
            accepted.collect::<Result<Vec<_>, _>>().unwrap()
        });
        let (clients, mut moments) = on_one_thread().block_on(async {
            let node = rdmacm::tokio::Node::open().unwrap();
            let mut tasks = JoinSet::new();
            for _ in 0..BURST {
                let connector = connector(site, port).on(&node);
                let connecting = connector.connect_with(queue_pairs.clone());
                let room = Arc::clone(&room);
                tasks.spawn(async move {
                    room.acquire().await.unwrap().forget();
                    (connecting.await.unwrap(), Instant::now())
                });
            }
            let connected = tasks.join_all().await;
            connected.into_iter().unzip::<_, _, Vec<_>, Vec<_>>()
        });
        moments.sort_unstable();
        let steps = moments.windows(2).map(|pair| pair[1] - pair[0]);
        let longest = steps.max().unwrap();
        assert!(longest < REPEATED, "{longest:?} without a connection");
        drop((accepting.join().unwrap(), clients));
    });
}
