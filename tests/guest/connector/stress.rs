//! Thousands of connections on two channels, with futures dropped at random.
//!
//! Each outcome is caused by one of the sides: nothing times out, and the kernel
//! refuses nothing without a reason. Afterwards the numbers of descriptors and ids and
//! the used memory are as before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm::tokio::{Connector, Incoming, Listener, Node};
use rdmacm::{Cause, Stage};
use rdmacm_tests::{PATIENCE, Random, Site, Soft, seeds};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::connector::asynchronous::{Dropped, on_threads};
use crate::process_resources::Belongings;
use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

/// Connections in each direction.
const CONNECTIONS: usize = 1000;
/// Concurrent connections in each direction.
const AT_ONCE: usize = 32;
/// The timeout for an accepted peer. A peer that gave up sends that once, and the
/// message may be lost; the kernel would retry for a minute.
const PRESENT: Duration = Duration::from_secs(20);

#[case(alone)]
fn every_outcome_is_expected_and_nothing_leaks(site: &Site) {
    let before = Belongings::now();
    storm(site, 0, CONNECTIONS / 10);
    // Memory that is allocated once is not a leak: a first run is the reference.
    let before = before.with_what_stays();
    // siw takes five times as long.
    let usual = if site.soft == Soft::Siw { 1 } else { 3 };
    for seed in seeds(usual) {
        let started = Instant::now();
        let outcomes = storm(site, seed, CONNECTIONS);
        before.are_left();
        let took = started.elapsed();
        println!("{} seed {seed}: {outcomes:?} in {took:.1?}", site.device);
    }
}

/// The number of polls before a future is dropped; usually unlimited.
fn patience(random: &mut Random) -> u32 {
    match random.below(4) {
        0 => u32::try_from(1 + random.below(8)).unwrap(),
        _ => u32::MAX,
    }
}

type Outcomes = BTreeMap<&'static str, usize>;

fn count(outcomes: &mut Outcomes, outcome: &'static str) {
    *outcomes.entry(outcome).or_default() += 1;
}

/// Runs all connections; returns the outcomes of the connecting side.
fn storm(site: &Site, seed: u64, connections: usize) -> Outcomes {
    let runtime = on_threads();
    let site = *site;
    let outcomes = runtime.block_on(async move {
        let nodes = [Node::open().unwrap(), Node::open().unwrap()];
        let queue_pairs = QueuePairs::new(&site);
        let mut servers = JoinSet::new();
        let mut clients = JoinSet::new();
        let mut stoppers = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let listener = Listener::options()
                .with_node(node)
                .bind(site.v4(0))
                .unwrap();
            let port = listener.local_addr().port();
            stoppers.push(listener.stop_handle());
            let direction = seed * 2 + u64::try_from(index).unwrap();
            servers.spawn(serve(listener, queue_pairs.clone(), direction));
            clients.spawn(connect_all(
                site,
                nodes[1 - index].clone(),
                port,
                queue_pairs.clone(),
                direction,
                connections,
            ));
        }
        let mut outcomes = Outcomes::new();
        while let Some(direction) = clients.join_next().await {
            for (outcome, times) in direction.unwrap() {
                *outcomes.entry(outcome).or_default() += times;
            }
        }
        stoppers.iter().for_each(rdmacm::StopHandle::stop);
        let mut never_established = 0;
        while let Some(server) = servers.join_next().await {
            never_established += server.unwrap();
        }
        assert_eq!(outcomes.values().sum::<usize>(), 2 * connections);
        outcomes.insert("never established", never_established);
        outcomes
    });
    for lost in ["unanswered", "never established"] {
        let times = outcomes.get(lost).copied().unwrap_or(0);
        assert!(times <= connections / 50, "{outcomes:?}");
    }
    outcomes
}

async fn connect_all(
    site: Site,
    node: Node,
    port: u16,
    queue_pairs: QueuePairs,
    direction: u64,
    connections: usize,
) -> Outcomes {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut random = Random::new(direction.wrapping_add(1 << 32));
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let connector = Connector::new(site.v4(port))
            .with_node(&node)
            .deadline(PATIENCE);
        let connecting = connector.connect_with(queue_pairs.clone());
        let (patience, end) = (patience(&mut random), random.below(3));
        tasks.spawn(async move {
            let outcome = connect(Dropped::after(patience, connecting), end).await;
            drop(place);
            outcome
        });
    }
    let mut outcomes = Outcomes::new();
    while let Some(outcome) = tasks.join_next().await {
        count(&mut outcomes, outcome.unwrap());
    }
    outcomes
}

async fn connect<F, Q: Send + Sync>(connecting: Dropped<F>, end: u64) -> &'static str
where
    F: Future<Output = rdmacm::Result<rdmacm::tokio::CmConnection<Q>>>,
{
    let connection = match connecting.await {
        None => return "given up",
        Some(Ok(connection)) => connection,
        Some(Err(error)) if error.is_rejected() => return "rejected",
        // The other side gave up after accepting.
        Some(Err(error)) if matches!(error.cause(), Cause::PeerGone | Cause::Event(_)) => {
            assert!(!error.is_timeout(), "{error}");
            return "lost";
        }
        // On iWARP the other side's reset may arrive before CONNECT returns.
        Some(Err(error)) if error.raw_os_error() == Some(libc::ECONNRESET) => return "lost",
        Some(Err(error)) => panic!("{error}"),
    };
    match end {
        0 => drop(connection),
        1 => drop(connection.closed(Duration::from_millis(5)).await),
        _ => {
            // The answer to a peer that is gone fails in the same way.
            let closed = connection.close(PRESENT).await;
            if closed.is_err_and(|error| error.is_timeout()) {
                return "unanswered";
            }
        }
    }
    "connected"
}

/// Returns how many accepted peers were not heard of in time.
async fn serve(listener: Listener, queue_pairs: QueuePairs, direction: u64) -> usize {
    let mut random = Random::new(direction);
    let mut tasks = JoinSet::new();
    loop {
        let incoming = match listener.accept(PATIENCE).await {
            Ok(incoming) => incoming,
            Err(error) if matches!(error.cause(), Cause::Stopped) => break,
            Err(error) => panic!("{error}"),
        };
        let (patience, end) = (patience(&mut random), random.below(8));
        tasks.spawn(answer(incoming, queue_pairs.clone(), patience, end));
    }
    let mut silent = 0;
    while let Some(is_silent) = tasks.join_next().await {
        silent += usize::from(is_silent.unwrap());
    }
    silent
}

/// Returns whether an accepted peer was not heard of in time.
async fn answer(incoming: Incoming, queue_pairs: QueuePairs, patience: u32, end: u64) -> bool {
    match end {
        0 => {
            drop(incoming);
            return false;
        }
        1 => {
            // The peer may be gone already.
            let _ = incoming.reject(b"no");
            return false;
        }
        _ => {}
    }
    let accepting = incoming.deadline(PRESENT).accept_with(queue_pairs);
    match Dropped::after(patience, accepting).await {
        None => {}
        Some(Ok(connection)) if end < 4 => drop(connection),
        Some(Ok(connection)) => drop(connection.closed(PATIENCE).await.unwrap()),
        Some(Err(error)) => {
            // The peer gave up.
            assert_eq!(error.stage(), Stage::Accept, "{error}");
            return matches!(error.cause(), Cause::Deadline);
        }
    }
    false
}
