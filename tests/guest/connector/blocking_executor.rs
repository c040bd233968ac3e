//! A blocking task that runs as late as possible.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;

use rdmacm::core::IdHandle;
use rdmacm::tokio::{Connector, Node};
use rdmacm::{BlockingExecutor, BlockingTask, Cause, Listener};
use rdmacm_tests::{PATIENCE, SECOND, Site};

use crate::connector::asynchronous::on_one_thread;
use crate::queue_pairs::{AnyQueuePair, QueuePairs};
use rdmacm_tests_macros::case;

/// Keeps every task until the test takes it.
#[derive(Default)]
struct Later(Mutex<Vec<BlockingTask>>);

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Later").finish_non_exhaustive()
    }
}

impl BlockingExecutor for Later {
    fn spawn(&self, task: BlockingTask) {
        self.0.lock().unwrap().push(task);
    }
}

impl Later {
    fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }

    /// The only task.
    fn one(&self) -> BlockingTask {
        let mut jobs = self.0.lock().unwrap();
        let task = jobs.pop().unwrap();
        assert!(jobs.is_empty());
        task
    }
}

#[case(needs(TcpHandshake))]
fn a_late_connect_does_not_keep_the_queue_pair(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let later = Arc::new(Later::default());
    let made = Arc::new(Mutex::new(None));
    let connect = on_one_thread().block_on(async {
        let node = Node::options().executor(later.clone()).open().unwrap();
        let connector = Connector::new(listener.local_addr()).with_node(&node);
        let queue_pairs = QueuePairs::new(site);
        let theirs = Arc::clone(&made);
        let queue_pair = move |_: &IdHandle| {
            let one = queue_pairs.one();
            *theirs.lock().unwrap() = Some(Arc::downgrade(&one));
            Ok(one)
        };
        let mut connecting = pin!(connector.deadline(PATIENCE).connect_with(queue_pair));
        poll_fn(|context| match connecting.as_mut().poll(context) {
            Poll::Pending if later.is_empty() => Poll::Pending,
            Poll::Pending => Poll::Ready(()),
            Poll::Ready(connected) => panic!("{connected:?}"),
        })
        .await;
        later.one()
    });
    // The destruction of the id, which waits for the pending handshake.
    later.one()();
    let queue_pair: Option<Weak<_>> = made.lock().unwrap().take();
    let queue_pair: Option<AnyQueuePair> = queue_pair.unwrap().upgrade();
    assert!(queue_pair.is_none());
    connect();
    let error = listener.accept(SECOND / 10).unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
}
