//! A listener that is flooded, and what goes on beside it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm::core::EventChannel;
use rdmacm::core::ucma::UcmaFile as _;
use rdmacm::face::Listener;
use rdmacm::tokio::Tokio;
use rdmacm::{Async, Blocking, Cause, Error, Mode, face};

use crate::device::Flooding;
use crate::reactor::AsyncIo;

/// How long there are requests, by the device's clock; longer than anything may take.
const FLOOD: Duration = Duration::from_secs(4);
/// The deadline of an accept, and when it must be over.
const DEADLINE: Duration = Duration::from_millis(100);
const IN_TIME: Duration = Duration::from_millis(150);
/// How long an unrelated task sleeps, and when it must have its turn.
const NAP: Duration = Duration::from_millis(10);
const AWAKE: Duration = Duration::from_millis(30);

/// A node with a listener that is flooded, and one that nobody asks for anything.
struct Flooded<M: Mode> {
    device: Arc<Flooding>,
    busy: Listener<M>,
    quiet: Listener<M>,
    began: Instant,
}

impl<M: Mode> Flooded<M> {
    fn begin() -> Self {
        let device = Arc::new(Flooding::new());
        let channel = EventChannel::options().ucma(device.clone());
        let node = face::Node::<M>::options().channel(channel).open().unwrap();
        let [busy, quiet] = [7471, 7472].map(|port| {
            let address = format!("10.1.0.7:{port}");
            Listener::options().on(&node).bind(&*address).unwrap()
        });
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

    fn has_passed(&self, error: &Error) {
        let elapsed = self.elapsed();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        assert!((DEADLINE..IN_TIME).contains(&elapsed), "{elapsed:?}");
    }
}

#[test]
fn a_thread_that_waits_hears_of_its_deadline() {
    let flooded = Flooded::<Blocking>::begin();
    let error = flooded.quiet.accept(DEADLINE).unwrap_err();
    flooded.has_passed(&error);
    flooded.busy.accept(DEADLINE).unwrap();
}

#[test]
fn a_thread_that_another_leads_hears_of_its_deadline() {
    let flooded = Flooded::<Blocking>::begin();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while flooded.elapsed() < IN_TIME {
                flooded.busy.accept(DEADLINE).unwrap();
            }
        });
        let error = flooded.quiet.accept(DEADLINE).unwrap_err();
        flooded.has_passed(&error);
    });
}

#[tokio::test]
async fn a_task_that_waits_hears_of_its_deadline() {
    let flooded = Flooded::<Async<Tokio>>::begin();
    let error = flooded.quiet.accept(DEADLINE).await.unwrap_err();
    flooded.has_passed(&error);
    flooded.busy.accept(DEADLINE).await.unwrap();
}

async fn a_nap_beside_a_flood() {
    let flooded = Flooded::<Async<Tokio>>::begin();
    let (device, began) = (flooded.device.clone(), flooded.began);
    let nap = tokio::spawn(async move {
        tokio::time::sleep(NAP).await;
        device.now() - began
    });
    let error = flooded.quiet.accept(DEADLINE).await.unwrap_err();
    flooded.has_passed(&error);
    let awake = nap.await.unwrap();
    assert!(awake < AWAKE, "{awake:?}");
}

#[test]
fn an_unrelated_task_has_its_turn() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(a_nap_beside_a_flood());
    // Where the runtime polls a task, not what it is blocked on.
    let flooded = async { tokio::spawn(a_nap_beside_a_flood()).await.unwrap() };
    runtime.block_on(flooded);
}

#[test]
fn an_unrelated_task_of_several_threads_has_its_turn() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { tokio::spawn(a_nap_beside_a_flood()).await.unwrap() });
}

#[test]
fn so_it_is_in_a_runtime_of_the_callers_own() {
    async_io::block_on(async {
        let flooded = Flooded::<Async<AsyncIo>>::begin();
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
        flooded.has_passed(&error);
    });
}
