//! The same on tokio, whose paused clock and that of the fabric move together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use rdmacm::addrinfo::{self, Hints};
use rdmacm::core::Deadline;
use rdmacm::tokio::{CmConnection, Connector, Listener, Node};
use rdmacm::{BlockingExecutor, BlockingTask, CLOSE_DEADLINE, Cause, Stage};
use rdmacm_sim::Host;
use rdmacm_test_helpers::poll_at_most;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::hosts::{Hosts, SECOND, channel};
use crate::queue_pair::NumberedQp;

/// Threads of the runtime, whose clock stands still while one is busy.
#[derive(Debug)]
pub(crate) struct SpawnBlocking(pub(crate) Handle);

impl BlockingExecutor for SpawnBlocking {
    fn spawn(&self, task: BlockingTask) {
        drop(self.0.spawn_blocking(task));
    }
}

/// How often a task has run that never waits for anything but its turn.
#[derive(Clone, Default)]
pub(crate) struct Turns(std::sync::Arc<AtomicUsize>);

impl Turns {
    pub(crate) fn count(&self) -> AbortHandle {
        let Self(turns) = self.clone();
        let counting = tokio::spawn(async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        counting.abort_handle()
    }

    pub(crate) fn so_far(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) fn node(host: &Host) -> Node {
    let executor = std::sync::Arc::new(SpawnBlocking(Handle::current()));
    let options = Node::options().channel(channel(host)).executor(executor);
    options.open().unwrap()
}

pub(crate) fn connector(hosts: &Hosts, node: &Node) -> Connector {
    Connector::new(hosts.address()).with_node(node)
}

pub(crate) fn listen(hosts: &Hosts, node: &Node) -> Listener {
    let options = Listener::options().with_node(node);
    options.bind(hosts.address()).unwrap()
}

pub(crate) async fn connect(
    hosts: &Hosts,
    client: &Node,
    listener: &Listener,
) -> [CmConnection<NumberedQp>; 2] {
    let accepted = async {
        let incoming = listener.accept(Deadline::Never).await.unwrap();
        incoming.accept_with(&hosts.server_pairs).await.unwrap()
    };
    let connected = connector(hosts, client).connect_with(&hosts.client_pairs);
    let (connected, accepted) = tokio::join!(connected, accepted);
    [connected.unwrap(), accepted]
}

/// Waits until an id and a queue pair that another thread destroys are gone.
pub(crate) async fn assert_client_is_clean(hosts: &Hosts) {
    tokio::task::yield_now().await;
    hosts.assert_client_is_clean();
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_made_and_closed() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let client = node(&hosts.client);
        let [connection, accepted] = connect(&hosts, &client, &listener).await;
        let closing = connection.close(CLOSE_DEADLINE);
        let (closed, reason) = tokio::join!(closing, accepted.closed(Deadline::Never));
        closed.unwrap();
        assert!(reason.unwrap().is_orderly());
        drop((connection, accepted, listener));
        hosts.assert_client_is_clean();
        hosts.assert_server_is_clean();
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_has_private_data() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let client = node(&hosts.client);
        let rejecting = async {
            let incoming = listener.accept(Deadline::Never).await.unwrap();
            incoming.reject(b"no").unwrap();
        };
        let connecting = connector(&hosts, &client).connect_with(&hosts.client_pairs);
        let (connected, ()) = tokio::join!(connecting, rejecting);
        let error = connected.unwrap_err();
        assert!(error.is_rejected(), "{error}");
        assert!(error.private_data().starts_with(b"no"), "{error:?}");
        assert_client_is_clean(&hosts).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_an_hour_passes_at_once() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let error = listener.accept(3600 * SECOND).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        assert_eq!(error.elapsed().as_secs(), 3600);
    }
}

/// Keeps the tasks, as if all its threads were busy.
#[derive(Debug, Default)]
struct Busy(std::sync::Mutex<Kept>);

#[derive(Default)]
struct Kept(Vec<BlockingTask>);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kept").field(&self.0.len()).finish()
    }
}

impl BlockingExecutor for Busy {
    fn spawn(&self, task: BlockingTask) {
        self.0.lock().unwrap().0.push(task);
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolution_ends_though_the_executor_is_busy() {
    let hosts = Hosts::roce();
    let options = Node::options().channel(channel(&hosts.client));
    let options = options.executor(std::sync::Arc::new(Busy::default()));
    let node = options.open().unwrap();
    let hints = Hints::rc().deadline(SECOND);
    let began = tokio::time::Instant::now();
    let error = node.resolve("10.0.0.2", "7471", &hints).await.unwrap_err();
    assert_eq!(error, addrinfo::Error::LookupDeadline);
    assert_eq!(began.elapsed().as_secs(), 1);
}

/// tokio's own timers do not reach it.
#[tokio::test(start_paused = true)]
async fn a_deadline_at_the_end_of_time_does_not_pass() {
    let hosts = Hosts::roce();
    let listener = Listener::options().with_node(&node(&hosts.server));
    let listener = listener.bind(hosts.address()).unwrap();
    let now = std::time::Instant::now();
    let (mut latest, mut step) = (now, std::time::Duration::MAX);
    while !step.is_zero() {
        latest = latest.checked_add(step).unwrap_or(latest);
        step /= 2;
    }
    let accepting = listener.accept(Deadline::At(latest));
    assert!(tokio::time::timeout(SECOND, accepting).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up_at_the_deadline() {
    let hosts = Hosts::roce();
    let _listener = listen(&hosts, &node(&hosts.server));
    hosts.server.set_responding(false);
    let client = node(&hosts.client);
    let connector = connector(&hosts, &client).deadline(3 * SECOND);
    let error = connector.connect_with(&hosts.client_pairs).await;
    let error = error.unwrap_err();
    assert_eq!(error.stage(), Stage::Connect);
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    assert_eq!(error.elapsed().as_secs(), 3);
    assert_client_is_clean(&hosts).await;
}

#[tokio::test(start_paused = true)]
async fn a_driven_node_replies_to_disconnects() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        let listener = listen(&hosts, &server);
        let client = node(&hosts.client);
        let [connection, accepted] = connect(&hosts, &client, &listener).await;
        let driver = tokio::spawn(async move { server.drive().await });
        connection.close(CLOSE_DEADLINE).await.unwrap();
        driver.abort();
        assert!(accepted.closed(SECOND).await.unwrap().is_orderly());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_handle_wakes_all_tasks() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let stop = listener.stop_handle();
        let wait = || listener.accept(Deadline::Never);
        let (one, other, ()) = tokio::join!(wait(), wait(), async { stop.stop() });
        assert!(one.unwrap_err().is_stopped());
        assert!(other.unwrap_err().is_stopped());
    }
}

/// Its timers would panic.
#[test]
fn a_runtime_that_has_ended_ends_the_waits_of_another() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    for hosts in Hosts::each() {
        let (first, second) = (runtime(), runtime());
        let listener = first.block_on(async { listen(&hosts, &node(&hosts.server)) });
        let waiting = second.block_on(async {
            let listener = listener.accept(Deadline::Never);
            tokio::pin!(listener);
            // It waits when the runtime ends.
            let is_pending = std::future::poll_fn(|context| {
                std::task::Poll::Ready(listener.as_mut().poll(context).is_pending())
            });
            assert!(is_pending.await);
            first.shutdown_background();
            listener.await.unwrap_err()
        });
        let later = second.block_on(listener.accept(SECOND)).unwrap_err();
        for error in [waiting, later] {
            assert_eq!(error.raw_os_error(), Some(libc::ECANCELED), "{error}");
            assert_eq!(error.stage(), Stage::WaitForRequest);
            assert!(error.ends_listener(), "{error}");
        }
    }
}

/// As a program does that calls from where it does not wait for futures. What the event loop wants
/// to do in the task's next turn must not be lost with the task.
#[test]
fn waits_of_one_task_each_lose_no_event() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    for hosts in Hosts::each() {
        let listener = runtime.block_on(async { listen(&hosts, &node(&hosts.server)) });
        let client = crate::hosts::node(&hosts.client);
        let reject = || {
            let accepting = async {
                let limit = std::time::Duration::from_secs(20);
                tokio::time::timeout(limit, listener.accept(Deadline::Never)).await
            };
            let incoming = runtime.block_on(accepting).unwrap().unwrap();
            incoming.reject(b"").unwrap();
        };
        std::thread::scope(|scope| {
            for requests in [2, 1] {
                let connect = || {
                    let connector = hosts.connector(&client);
                    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
                    assert!(error.is_rejected(), "{error}");
                };
                let connecting: Vec<_> = (0..requests).map(|_| scope.spawn(connect)).collect();
                // Until all have come.
                while hosts.server.id_count() < 1 + requests {
                    assert!(!connecting.iter().any(ScopedJoinHandle::is_finished));
                    std::thread::yield_now();
                }
                for _ in 0..requests {
                    reject();
                }
                for one in connecting {
                    one.join().unwrap();
                }
            }
        });
    }
}

/// The runtime has not looked at the descriptor since the event came.
#[tokio::test(start_paused = true)]
async fn what_came_before_a_deadline_of_zero_is_read() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, &node(&hosts.server));
        let client = node(&hosts.client);
        let [connection, accepted] = connect(&hosts, &client, &listener).await;
        // The node of the client is not driven by anybody meanwhile.
        drop(accepted);
        hosts.fabric.advance(SECOND);
        let reason = connection.closed(std::time::Duration::ZERO).await.unwrap();
        assert!(reason.is_orderly(), "{reason}");
    }
}

/// As that of a branch of `select!` while another one's handler runs.
#[tokio::test(start_paused = true)]
async fn a_future_that_nobody_polls_does_not_hold_up_other_waiters() {
    let hosts = Hosts::roce();
    let server = node(&hosts.server);
    let listener = listen(&hosts, &server);
    let client = node(&hosts.client);
    let [connection, accepted] = connect(&hosts, &client, &listener).await;
    let drivers = [client.clone(), server.clone()]
        .map(|node| tokio::spawn(async move { node.drive().await }));
    let connection = std::sync::Arc::new(connection);
    let mut kept = Box::pin(connection.closed(None));
    assert!(poll_at_most(1, &mut kept).await.is_none());
    let other = std::sync::Arc::clone(&connection);
    // In a task of its own, whose waker is another one.
    let waiting = tokio::spawn(async move { other.closed(60 * SECOND).await });
    tokio::task::yield_now().await;
    let began = tokio::time::Instant::now();
    drop(accepted);
    waiting.await.unwrap().unwrap();
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
    drop(kept);
    for driver in drivers {
        driver.abort();
    }
}
