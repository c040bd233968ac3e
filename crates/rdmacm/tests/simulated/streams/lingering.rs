//! Streams that are dropped while what they have written is in flight.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdmacm::core::Deadline;
use rdmacm::tokio::{Connector, Node, RdmaStream};
use rdmacm::{BlockingExecutor, BlockingTask, Cause};
use rdmacm_sim::Fabric;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Handle;

use super::small;
use super::tasks::Tasks;
use crate::hosts::{PORT, channel};
use crate::tasks::SpawnBlocking;

const STREAMS: usize = 10;
/// How long they linger, by the machine's clock.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);
/// Longer than it takes to drop them, even if the machine pauses.
const LONG_CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// Counts the tasks.
#[derive(Debug)]
struct Counting(AtomicUsize, SpawnBlocking);

impl BlockingExecutor for Counting {
    fn spawn(&self, task: BlockingTask) {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.1.spawn(task);
    }
}

/// Has no threads.
#[derive(Debug)]
struct Inline;

impl BlockingExecutor for Inline {
    fn spawn(&self, task: BlockingTask) {
        task();
    }
}

/// Leaves the tasks to the test.
#[derive(Debug, Default)]
struct Queue(Mutex<Vec<Task>>);

struct Task(BlockingTask);

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

impl BlockingExecutor for Queue {
    fn spawn(&self, task: BlockingTask) {
        self.0.lock().unwrap().push(Task(task));
    }
}

/// Streams that have written what no device acknowledges, and their peers.
async fn written(
    tasks: &Tasks,
    executor: Arc<dyn BlockingExecutor>,
    linger: Duration,
) -> (Node, [Vec<RdmaStream>; 2]) {
    let options = Node::options()
        .channel(channel(&tasks.client))
        .executor(executor);
    let node = options
        .device_source(Arc::new(tasks.client.clone()))
        .open()
        .unwrap();
    let (mut streams, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..STREAMS {
        let connector = Connector::new((tasks.server.address().unwrap(), PORT)).with_node(&node);
        let connected = connector.connect_stream(small().linger(linger));
        let (connected, accepted) = tokio::join!(connected, tasks.listener.accept());
        streams.push(connected.unwrap());
        peers.push(accepted.unwrap().0);
    }
    tasks.server.set_link_up("rxe0", false);
    for stream in &mut streams {
        stream.write_all(b"unacknowledged").await.unwrap();
    }
    (node, [streams, peers])
}

#[tokio::test(start_paused = true)]
async fn a_node_waits_for_its_dropped_streams() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let executor = Arc::new(SpawnBlocking(Handle::current()));
    let (node, [streams, peers]) = written(&tasks, executor, LONG_CLOSE_DEADLINE).await;
    node.wait_for_dropped_streams(Duration::ZERO).await.unwrap();
    drop(streams);
    let error = node.wait_for_dropped_streams(Duration::ZERO).await;
    let error = error.unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    tasks.server.set_link_up("rxe0", true);
    tasks.fabric.advance(Duration::from_secs(60));
    let waiting = node.wait_for_dropped_streams(Deadline::Never);
    tokio::time::timeout(LONG_CLOSE_DEADLINE, waiting)
        .await
        .unwrap()
        .unwrap();
    drop(peers);
    tasks.assert_clean().await;
}

#[tokio::test(start_paused = true)]
async fn one_task_keeps_all_streams() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let executor = Arc::new(Counting(
        AtomicUsize::new(0),
        SpawnBlocking(Handle::current()),
    ));
    let (_, [streams, peers]) = written(&tasks, executor.clone(), LONG_CLOSE_DEADLINE).await;
    let before = executor.0.load(Ordering::Relaxed);
    drop(streams);
    assert_eq!(executor.0.load(Ordering::Relaxed), before + 1);
    // What was lost is sent again, and they linger no longer.
    tasks.server.set_link_up("rxe0", true);
    tasks.fabric.advance(Duration::from_secs(60));
    drop(peers);
    tasks.assert_clean().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_stream_does_not_wait_without_a_thread() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let (_, [streams, peers]) = written(&tasks, Arc::new(Inline), LONG_CLOSE_DEADLINE).await;
    let began = Instant::now();
    drop(streams);
    let elapsed = began.elapsed();
    assert!(elapsed < LONG_CLOSE_DEADLINE, "{elapsed:?}");
    drop(peers);
    tasks.assert_clean().await;
}

/// A thread of a pool that drops a stream may be the one that runs the task.
#[tokio::test(start_paused = true)]
async fn the_thread_that_drops_a_stream_may_keep_it_later() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let queue = Arc::new(Queue::default());
    let (_, [streams, peers]) = written(&tasks, queue.clone(), CLOSE_DEADLINE).await;
    let began = Instant::now();
    drop(streams);
    let Task(task) = queue.0.lock().unwrap().pop().unwrap();
    assert_eq!(tasks.client.id_count(), STREAMS);
    task();
    assert!(
        began.elapsed() > CLOSE_DEADLINE / 2,
        "{:?}",
        began.elapsed()
    );
    drop(peers);
    tasks.assert_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_never_run_keeps_nothing() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let queue = Arc::new(Queue::default());
    let (_, [streams, peers]) = written(&tasks, queue.clone(), CLOSE_DEADLINE).await;
    drop(streams);
    assert_eq!(tasks.client.id_count(), STREAMS);
    queue.0.lock().unwrap().clear();
    drop(peers);
    tasks.assert_clean().await;
}
