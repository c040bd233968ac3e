//! A reader and a writer of one stream at the same time.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use rdmacm::tokio::Node;
use rdmacm::{RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::rstream::{Counter, Test, expect_end};
use super::{Pair, accept, for_c_clients, tasks};
use crate::connector::asynchronous::on_threads;
use crate::rdma_core::RdmaCore;

/// Sets more messages of each side, for a longer run.
const MESSAGES: &str = "RDMACM_MESSAGES";

fn messages(unless_set: usize) -> usize {
    std::env::var(MESSAGES).map_or(unless_set, |messages| messages.parse().unwrap())
}

/// Returns the stream, which is closed when it is dropped.
fn write_numbers<S: Write>(mut stream: S, messages: usize) -> S {
    for number in 0..messages {
        stream.write_all(&number.to_le_bytes()).unwrap();
    }
    stream
}

/// Returns the stream, which is closed when it is dropped.
fn read_numbers<S: Read>(mut stream: S, messages: usize) -> S {
    let mut read = [0; size_of::<usize>()];
    for number in 0..messages {
        stream.read_exact(&mut read).unwrap();
        assert_eq!(usize::from_le_bytes(read), number);
    }
    stream
}

/// Neither side closes the stream before all is read: siw may lose what is in flight then.
///
/// The client waits without a timeout: only a wake-up ends its waits. If one were lost, the
/// server would give up and close the stream.
fn exchange_on_threads(Pair { client, server }: Pair, messages: usize) {
    client.set_read_timeout(None).unwrap();
    client.set_write_timeout(None).unwrap();
    let (read, write) = server.into_split();
    let server = thread::scope(|scope| {
        scope.spawn(|| write_numbers(&client, messages));
        scope.spawn(|| read_numbers(&client, messages));
        let write = scope.spawn(move || write_numbers(write, messages));
        let read = scope.spawn(move || read_numbers(read, messages));
        (write.join(), read.join())
    });
    drop((server.0.unwrap(), server.1.unwrap()));
}

#[case]
fn threads_read_and_write_at_once(site: &Site) {
    exchange_on_threads(Pair::new(site), messages(10_000));
}

/// Each of them waits for the peer again and again.
#[case]
fn threads_with_few_credits_read_and_write_at_once(site: &Site) {
    let options = StreamOptions::new().receives(4).sends(4);
    let options = options.busy_poll(Duration::ZERO);
    let pair = Pair::with(site, &options, &options);
    exchange_on_threads(pair, 2000);
}

/// How many messages must not take longer than the tests' patience.
const AT_ONCE: usize = 1000;

async fn write_numbers_in_task<S: AsyncWrite + Unpin>(mut stream: S, messages: usize) -> S {
    for first in (0..messages).step_by(AT_ONCE) {
        let write = async {
            for number in first..messages.min(first + AT_ONCE) {
                stream.write_all(&number.to_le_bytes()).await.unwrap();
            }
        };
        timeout(PATIENCE, write).await.unwrap();
    }
    stream
}

async fn read_numbers_in_task<S: AsyncRead + Unpin>(mut stream: S, messages: usize) -> S {
    let mut bytes = [0; size_of::<usize>()];
    for first in (0..messages).step_by(AT_ONCE) {
        let read = async {
            for number in first..messages.min(first + AT_ONCE) {
                stream.read_exact(&mut bytes).await.unwrap();
                assert_eq!(usize::from_le_bytes(bytes), number);
            }
        };
        timeout(PATIENCE, read).await.unwrap();
    }
    stream
}

fn exchange_in_tasks(site: &Site, options: StreamOptions, messages: usize) {
    on_threads().block_on(async {
        let node = Node::open().unwrap();
        let (client, server) = tasks::pair(site, &node, options).await;
        let (mut writers, mut readers) = (JoinSet::new(), JoinSet::new());
        for stream in [client, server] {
            let (read, write) = stream.into_split();
            writers.spawn(write_numbers_in_task(write, messages));
            readers.spawn(read_numbers_in_task(read, messages));
        }
        let halves = (writers.join_all().await, readers.join_all().await);
        drop(halves);
    });
}

#[case]
fn tasks_read_and_write_at_once(site: &Site) {
    exchange_in_tasks(site, StreamOptions::new(), messages(10_000));
}

#[case]
fn tasks_with_few_credits_read_and_write_at_once(site: &Site) {
    let options = StreamOptions::new().receives(4).sends(4);
    exchange_in_tasks(site, options, 2000);
}

/// The peer returns each message before it reads the next one; the writer waits for its credits
/// alone.
fn exchange_with_rstream(test: Test, stream: &RdmaStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    thread::scope(|scope| {
        // One before the test begins.
        let messages = test.iterations + 1;
        scope.spawn(move || {
            let mut sent = Counter::default();
            for _ in 0..messages {
                { stream }.write_all(&sent.bytes(test.size)).unwrap();
            }
        });
        let mut received = Counter::default();
        let mut bytes = vec![0; test.size];
        for _ in 0..messages {
            { stream }.read_exact(&mut bytes).unwrap();
            assert_eq!(bytes, received.bytes(test.size));
        }
    });
}

/// The message before the test has as many bytes.
fn rstream_test() -> Test {
    Test::new(16, 1, messages(2000))
}

#[case]
fn threads_read_from_an_rstream_server_and_write_to_it(site: &Site) {
    let test = rstream_test();
    for rdma_core in RdmaCore::compared() {
        let (server, stream) = test.connected(site, *rdma_core, &StreamOptions::new());
        exchange_with_rstream(test, &stream);
        expect_end(site, &stream);
        drop(stream);
        Test::check(&server.finish());
    }
}

#[case]
fn threads_read_from_an_rstream_client_and_write_to_it(site: &Site) {
    let test = rstream_test();
    for rdma_core in RdmaCore::compared() {
        let (listener, port) = for_c_clients(site, site.v4, StreamOptions::new());
        let client = test.start(*rdma_core, port, &["-s", &site.v4.to_string()]);
        let (stream, _) = accept(&listener);
        exchange_with_rstream(test, &stream);
        expect_end(site, &stream);
        drop(stream);
        Test::check(&client.finish());
    }
}
