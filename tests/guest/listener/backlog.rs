//! More simultaneous peers than the kernel's backlog.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rdmacm::Listener;
use rdmacm::core::{CommandNumber, EventChannel};
use rdmacm_tests::{Counting, PATIENCE, Site, Soft};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connector::asynchronous::{connector, on_one_thread};
use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

/// None is accepted until all have asked. siw's client waits ten seconds for its answer, so there
/// are fewer of them.
fn backlog(site: &Site) -> usize {
    match site.soft {
        Soft::Rxe => 64,
        Soft::Siw => 16,
    }
}

/// The time after which the kernel repeats a dropped request.
const REPEATED: Duration = Duration::from_secs(4);

/// Requests that were read do not count towards the backlog, beyond which the kernel
/// drops requests. So many wait to be read, and all wait to be accepted.
#[case(alone)]
fn three_times_the_backlog_connects_without_retries(site: &Site) {
    let backlog = backlog(site);
    let burst = 3 * backlog;
    let listener = Listener::options().backlog(backlog.try_into().unwrap());
    let listener = listener.bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(site);
    let room = Arc::new(Semaphore::new(backlog));
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming: Vec<_> = (0..burst)
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
            for _ in 0..burst {
                let connector = connector(site, port).with_node(&node);
                let connecting = connector.connect_with(queue_pairs.clone());
                let room = Arc::clone(&room);
                tasks.spawn(async move {
                    let permit = timeout(PATIENCE, room.acquire()).await.unwrap();
                    permit.unwrap().forget();
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

/// The number of events that may be read between two polls of another task: as many as
/// one poll of the reading task and one of a waiting task read.
const BETWEEN: usize = 128;

/// More than may be read. Of siw's clients not many more: none is answered until all have asked,
/// and each waits for ten seconds.
fn burst(site: &Site) -> usize {
    match site.soft {
        Soft::Rxe => 192,
        Soft::Siw => BETWEEN + 2,
    }
}

/// Starts this many connections at once and reports when the kernel has all requests.
fn ask(site: &Site, port: u16, asked: &mpsc::Sender<()>) {
    let device = Arc::new(Counting::new());
    let channel = EventChannel::options().ucma(device.clone());
    let queue_pairs = QueuePairs::new(site);
    on_one_thread().block_on(async {
        let node = rdmacm::tokio::Node::options().channel(channel).open();
        let node = node.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..burst(site) {
            let connector = connector(site, port).with_node(&node);
            tasks.spawn(connector.connect_with(queue_pairs.clone()));
        }
        let all = async {
            while device.of(CommandNumber::CONNECT) < burst(site) {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, all).await.unwrap();
        asked.send(()).unwrap();
        for refused in tasks.join_all().await {
            assert!(refused.unwrap_err().is_rejected());
        }
    });
}

/// A task that is always ready. Returns the greatest number of events read between two
/// of its polls.
async fn turns(device: Arc<Counting>, over: Arc<AtomicBool>) -> usize {
    let reads = || device.of(CommandNumber::GET_EVENT);
    let mut most = 0;
    while !over.load(Ordering::Acquire) {
        let before = reads();
        tokio::task::yield_now().await;
        most = most.max(reads() - before);
    }
    most
}

#[case(alone)]
fn a_full_event_queue_does_not_starve_other_tasks(site: &Site) {
    let device = Arc::new(Counting::new());
    let channel = EventChannel::options().ucma(device.clone());
    let runtime = on_one_thread();
    let _inside = runtime.enter();
    let node = rdmacm::tokio::Node::options().channel(channel).open();
    let listener = rdmacm::tokio::Listener::options().with_node(&node.unwrap());
    let listener = listener.queue(burst(site)).bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    std::thread::scope(|scope| {
        let (asked, all) = mpsc::channel();
        scope.spawn(move || ask(site, port, &asked));
        all.recv().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let turns = runtime.spawn(turns(device.clone(), over.clone()));
        let most = runtime.block_on(async {
            for _ in 0..burst(site) {
                // Dropping a request rejects it.
                drop(listener.accept(PATIENCE).await.unwrap());
            }
            over.store(true, Ordering::Release);
            turns.await.unwrap()
        });
        assert!(most <= BETWEEN, "{most} events between two turns");
    });
}
