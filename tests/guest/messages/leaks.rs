//! Connections that are opened, used and closed many times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rdmacm::tokio::{Connection, Connector, Listener, Node};
use rdmacm::{Cause, MessageOptions};
use rdmacm_core::AccessFlags;
use rdmacm_tests::{PATIENCE, Random, SECOND, Site};
use tokio::task::JoinSet;

use crate::connector::asynchronous::{Dropped, on_threads};
use crate::process_resources::Belongings;
use rdmacm_tests_macros::case;

/// Sets more cycles, for a longer run.
const CYCLES: &str = "RDMACM_CYCLES";
/// The number of concurrent clients.
const TASKS: usize = 8;

#[case(alone)]
fn closed_connections_leak_nothing(site: &Site) {
    let cycles = std::env::var(CYCLES).map_or(160, |cycles| cycles.parse().unwrap());
    let before = Belongings::now();
    run(site, 2 * TASKS, ping);
    let before = before.with_what_stays();
    let started = Instant::now();
    run(site, cycles, ping);
    let took = started.elapsed();
    before.are_left();
    println!("{}: {cycles} cycles in {took:.1?}", site.device);
}

/// Runs this many cycles on two nodes.
fn run<F>(site: &Site, cycles: usize, carry: fn(Connection, u64) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    on_threads().block_on(async {
        let options = MessageOptions::new().size(512).receives(8).sends(8);
        let listener = Listener::options();
        let listener = listener.bind(site.v4(0)).unwrap();
        let (address, stopper) = (listener.local_addr(), listener.stop_handle());
        let serving = tokio::spawn(serve(listener, options.clone()));
        let node = Node::open().unwrap();
        let left = Arc::new(AtomicUsize::new(cycles));
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let (node, left) = (node.clone(), Arc::clone(&left));
            let options = options.clone();
            tasks.spawn(async move {
                let next = |left: usize| left.checked_sub(1);
                while let Ok(number) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
                {
                    let connector = Connector::new(address).with_node(&node).deadline(PATIENCE);
                    let connection = connector.connect_messages(options.clone()).await.unwrap();
                    connection.set_deadline(PATIENCE);
                    carry(connection, u64::try_from(number).unwrap()).await;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        stopper.stop();
        serving.await.unwrap();
    });
}

async fn ping(connection: Connection, number: u64) {
    let ping = [number.to_le_bytes()[0]; 100];
    connection.send(&ping).await.unwrap();
    assert_eq!(*connection.receive().await.unwrap().unwrap(), ping);
    connection.close(PATIENCE).await.unwrap();
}

/// Echoes messages until the peer disconnects.
async fn serve(listener: Listener, options: MessageOptions) {
    let mut peers = JoinSet::new();
    loop {
        let incoming = match listener.accept(PATIENCE).await {
            Ok(incoming) => incoming,
            Err(error) if matches!(error.cause(), Cause::Stopped) => break,
            Err(error) => panic!("{error}"),
        };
        let options = options.clone();
        peers.spawn(async move {
            let Ok(connection) = incoming.accept_messages(options).await else {
                // The client gave up meanwhile.
                return;
            };
            connection.set_deadline(PATIENCE);
            while let Ok(Some(message)) = connection.receive().await {
                if connection.send(&message).await.is_err() {
                    break;
                }
            }
        });
    }
    while let Some(ended) = peers.join_next().await {
        ended.unwrap();
    }
}

#[case(alone)]
fn cancelled_operations_leak_nothing(site: &Site) {
    let before = Belongings::now();
    run(site, TASKS, give_up);
    let before = before.with_what_stays();
    run(site, 10 * TASKS, give_up);
    before.are_left();
}

/// Drops futures after any number of polls with all kinds of requests outstanding; then
/// drops or closes the connection.
async fn give_up(connection: Connection, seed: u64) {
    let mut random = Random::new(seed);
    // Some of the awaited messages were never sent.
    connection.set_deadline(SECOND / 20);
    let access = AccessFlags::LOCAL_WRITE;
    let exposed = connection.expose(64, access).unwrap();
    for _ in 0..random.below(12) {
        let polls = u32::try_from(1 + random.below(4)).unwrap();
        match random.below(4) {
            0 => drop(Dropped::after(polls, connection.send(&[1; 200])).await),
            1 => drop(Dropped::after(polls, connection.receive()).await),
            2 => {
                let buffer = connection.allocate(100).unwrap();
                drop(Dropped::after(polls, connection.send_buffer(buffer)).await);
            }
            _ => {
                // The peer exposes nothing: this ends the connection.
                let buffer = connection.allocate(64).unwrap();
                let reading = connection.read(buffer, exposed.remote());
                if random.below(8) == 0 {
                    drop(Dropped::after(polls, reading).await);
                }
            }
        }
    }
    if random.below(2) == 0 {
        // Abandoned requests may have failed.
        let _ = connection.close(Duration::from_secs(5)).await;
    }
}
