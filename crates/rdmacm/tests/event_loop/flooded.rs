//! Deadlines and other tasks beside a listener that receives requests without end.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdmacm::asynchronous::{self, Runtime};
use rdmacm::core::ucma::UcmaFile as _;
use rdmacm::core::{ChannelOptions, EventChannel};
use rdmacm::tokio::Tokio;
use rdmacm::{Cause, Error, Listener, Node};

use crate::reactor::AsyncIo;
use crate::ucma_file::Flooding;

/// How long there are requests, by the device's clock; longer than anything may take.
const FLOOD: Duration = Duration::from_secs(4);
/// The deadline of an accept, and when it must be over.
const DEADLINE: Duration = Duration::from_millis(100);
const IN_TIME: Duration = Duration::from_millis(150);
/// The same where another thread reads while the one with the deadline waits for a processor.
const IN_TIME_BESIDE_A_THREAD: Duration = Duration::from_secs(2);
/// How long an unrelated task sleeps, and when it must have run.
const NAP: Duration = Duration::from_millis(10);
const AWAKE: Duration = Duration::from_millis(30);

const ADDRESSES: [&str; 2] = ["10.1.0.7:7471", "10.1.0.7:7472"];

/// A node with a listener that receives requests without end, and one that receives none.
struct Flooded<L> {
    device: Arc<Flooding>,
    busy: L,
    quiet: L,
    began: Instant,
}

impl Flooded<Listener> {
    fn blocking() -> Self {
        Self::begin(|channel| {
            let node = Node::options().channel(channel).open().unwrap();
            let options = || Listener::options().with_node(&node);
            ADDRESSES.map(|address| options().bind(address).unwrap())
        })
    }
}

impl Flooded<asynchronous::Listener> {
    fn on<R: Runtime>() -> Self {
        Self::begin(|channel| {
            let node = asynchronous::Node::options().runtime::<R>();
            let node = node.channel(channel).open().unwrap();
            let options = || asynchronous::Listener::options().with_node(&node);
            ADDRESSES.map(|address| options().bind(address).unwrap())
        })
    }
}

impl<L> Flooded<L> {
    fn begin(listen: impl FnOnce(ChannelOptions) -> [L; 2]) -> Self {
        let device = Arc::new(Flooding::new());
        let channel = EventChannel::options().ucma(device.clone());
        let [busy, quiet] = listen(channel);
        device.flood(FLOOD);
        let began = device.now();
        Self {
            device,
            busy,
            quiet,
            began,
        }
    }

    /// By the device's clock.
    fn elapsed(&self) -> Duration {
        self.device.now() - self.began
    }

    fn assert_deadline(&self, error: &Error) {
        self.assert_deadline_within(IN_TIME, error);
    }

    fn assert_deadline_within(&self, in_time: Duration, error: &Error) {
        let elapsed = self.elapsed();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        assert!((DEADLINE..in_time).contains(&elapsed), "{elapsed:?}");
    }
}

#[test]
fn a_waiting_thread_keeps_its_deadline() {
    let flooded = Flooded::blocking();
    let error = flooded.quiet.accept(DEADLINE).unwrap_err();
    flooded.assert_deadline(&error);
    drop(flooded.busy.accept(DEADLINE).unwrap());
}

#[test]
fn a_thread_behind_a_leader_keeps_its_deadline() {
    let flooded = Flooded::blocking();
    let is_over = AtomicBool::new(false);
    let leads = || !is_over.load(Ordering::Relaxed) && flooded.elapsed() < IN_TIME_BESIDE_A_THREAD;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while leads() {
                drop(flooded.busy.accept(DEADLINE).unwrap());
            }
        });
        let error = flooded.quiet.accept(DEADLINE).unwrap_err();
        is_over.store(true, Ordering::Relaxed);
        flooded.assert_deadline_within(IN_TIME_BESIDE_A_THREAD, &error);
    });
}

#[tokio::test]
async fn a_waiting_task_keeps_its_deadline() {
    let flooded = Flooded::on::<Tokio>();
    let error = flooded.quiet.accept(DEADLINE).await.unwrap_err();
    flooded.assert_deadline(&error);
    drop(flooded.busy.accept(DEADLINE).await.unwrap());
}

async fn a_nap_beside_a_flood() {
    let flooded = Flooded::on::<Tokio>();
    let (device, began) = (flooded.device.clone(), flooded.began);
    let nap = tokio::spawn(async move {
        tokio::time::sleep(NAP).await;
        device.now() - began
    });
    let error = flooded.quiet.accept(DEADLINE).await.unwrap_err();
    flooded.assert_deadline(&error);
    let awake = nap.await.unwrap();
    assert!(awake < AWAKE, "{awake:?}");
}

#[test]
fn an_unrelated_task_runs() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(a_nap_beside_a_flood());
    // Where the runtime polls a task, not what it is blocked on.
    let flooded = async { tokio::spawn(a_nap_beside_a_flood()).await.unwrap() };
    runtime.block_on(flooded);
}

#[test]
fn an_unrelated_task_runs_on_several_threads() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { tokio::spawn(a_nap_beside_a_flood()).await.unwrap() });
}

#[test]
fn another_runtime_keeps_deadlines() {
    async_io::block_on(async {
        let flooded = Flooded::on::<AsyncIo>();
        let mut nap = Some(async_io::Timer::after(NAP));
        let mut accept = pin!(flooded.quiet.accept(DEADLINE));
        let error = poll_fn(|context| {
            let awake = |nap: &mut async_io::Timer| pin!(nap).poll(context).is_ready();
            if nap.take_if(awake).is_some() {
                let elapsed = flooded.elapsed();
                assert!(elapsed < AWAKE, "{elapsed:?}");
            }
            accept.as_mut().poll(context)
        })
        .await
        .unwrap_err();
        assert!(nap.is_none());
        flooded.assert_deadline(&error);
    });
}
