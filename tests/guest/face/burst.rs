//! More peers at once than the kernel keeps.

use std::time::{Duration, Instant};

use rdmacm::Listener;
use rdmacm_tests::{PATIENCE, Site};
use tokio::task::JoinSet;

use super::QueuePairs;
use super::asynchronous::{connector, on_one_thread};

crate::cases!("face::burst": three_times_the_backlog_waits_for_nobody);

const BACKLOG: usize = 64;
const BURST: usize = 3 * BACKLOG;

/// After this long the kernel repeats a request that was dropped.
const REPEATED: Duration = Duration::from_secs(4);

/// The kernel drops what exceeds the backlog, unless it is read as it comes.
fn three_times_the_backlog_waits_for_nobody(site: &Site) {
    let backlog = u32::try_from(BACKLOG).unwrap();
    let listener = Listener::options().backlog(backlog).bind(site.v4(0));
    let listener = listener.unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(site);
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming = (0..BURST).map(|_| listener.accept(PATIENCE).unwrap());
            let accepted = incoming.map(|one| one.accept_with(queue_pairs.clone()));
            accepted.collect::<Result<Vec<_>, _>>().unwrap()
        });
        let (clients, mut moments) = on_one_thread().block_on(async {
            let node = rdmacm::tokio::Node::open().unwrap();
            let mut tasks = JoinSet::new();
            for _ in 0..BURST {
                let connector = connector(site, port).on(&node);
                let connecting = connector.connect_with(queue_pairs.clone());
                tasks.spawn(async move { (connecting.await.unwrap(), Instant::now()) });
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
