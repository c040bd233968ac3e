//! An event loop over the device, and its ids.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use rdmacm::core::{EventChannel, PortSpace, Result};
use shuttle::thread::JoinHandle;

use crate::blocking_executor::BlockingExecutor;
use crate::device::Device;
use crate::event_loop::{
    EventLoop, EventLoopParts, EventQueue, Extensions, ManagedId, QueuedEvent, block_on,
};
use crate::reactor::DeviceReactor;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Runs a task at once.
#[derive(Debug)]
struct NoExecutor;

impl BlockingExecutor for NoExecutor {
    fn spawn(&self, task: rdmacm::BlockingTask) {
        task();
    }
}

/// An event loop with some ids.
pub(crate) struct TestLoop {
    pub(crate) device: Arc<Device>,
    pub(crate) event_loop: Arc<EventLoop>,
    pub(crate) ids: Vec<ManagedId>,
}

impl TestLoop {
    /// One that only threads wait for.
    pub(crate) fn of_threads(ids: usize) -> Arc<Self> {
        Self::open(ids, false)
    }

    /// One that a runtime runs.
    pub(crate) fn of_tasks(ids: usize) -> Arc<Self> {
        Self::open(ids, true)
    }

    fn open(ids: usize, has_runtime: bool) -> Arc<Self> {
        let device = Arc::new(Device::new());
        let channel = EventChannel::options().ucma(Arc::clone(&device) as _);
        let parts = EventLoopParts {
            channel: channel.open().unwrap(),
            executor: Arc::new(NoExecutor),
            max_handshakes: 1,
            extensions: Extensions::default(),
        };
        let reactor = Arc::clone(&device);
        let event_loop = EventLoop::new(parts, |_| {
            Ok(has_runtime.then(|| Box::new(DeviceReactor(reactor)) as _))
        });
        let event_loop = event_loop.unwrap();
        let ids = (0..ids).map(|_| {
            let id = event_loop.channel().create_id(PortSpace::TCP).unwrap();
            ManagedId::new(&event_loop, id, EventQueue::new())
        });
        Arc::new(Self {
            ids: ids.collect(),
            device,
            event_loop,
        })
    }

    /// A thread waits for the next event of an id.
    pub(crate) fn wait(&self, id: usize) -> Result<QueuedEvent> {
        block_on(&self.event_loop, self.ids[id].next(None))
    }

    /// The time that is so much later.
    pub(crate) fn after(&self, time: Duration) -> Instant {
        self.event_loop.now() + time
    }
}

pub(crate) fn join_all(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Polls a future once, and drops it.
pub(crate) async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
