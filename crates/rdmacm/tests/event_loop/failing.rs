//! Waits and reads that fail once.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rdmacm::core::EventChannel;
use rdmacm::{Cause, Error, Listener, Node, tokio as awaited};
use rdmacm_test_helpers::PATIENCE;

use crate::ucma_file::{Failing, Flooding};

const ENOMEM: i32 = 12;
const EINTR: i32 = 4;
/// A deadline that is to pass, or how long a flood of events lasts.
const SOON: Duration = Duration::from_millis(50);

const ADDRESS: &str = "10.1.0.7:7471";

fn blocking() -> (Arc<Flooding>, Listener) {
    let device = Arc::new(Flooding::new());
    let channel = EventChannel::options().ucma(device.clone());
    let node = Node::options().channel(channel).open().unwrap();
    let listener = Listener::options().with_node(&node).bind(ADDRESS);
    (device, listener.unwrap())
}

fn on_tokio() -> (Arc<Flooding>, awaited::Listener) {
    let device = Arc::new(Flooding::new());
    let channel = EventChannel::options().ucma(device.clone());
    let node = awaited::Node::options().channel(channel).open().unwrap();
    let listener = awaited::Listener::options().with_node(&node).bind(ADDRESS);
    (device, listener.unwrap())
}

fn assert_refused(error: &Error) {
    assert!(matches!(error.cause(), Cause::Refused(_)), "{error}");
    assert_eq!(error.raw_os_error(), Some(ENOMEM));
}

fn assert_deadline(error: &Error) {
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
}

#[test]
fn a_node_works_after_a_failed_wait() {
    let (device, listener) = blocking();
    device.fail(Failing::Wait, ENOMEM);
    assert_refused(&listener.accept(PATIENCE).unwrap_err());
    assert_deadline(&listener.accept(SOON).unwrap_err());
    device.flood(SOON);
    drop(listener.accept(PATIENCE).unwrap());
}

#[test]
fn an_interrupted_wait_goes_on() {
    let (device, listener) = blocking();
    device.fail(Failing::Wait, EINTR);
    assert_deadline(&listener.accept(SOON).unwrap_err());
}

#[test]
fn a_node_works_after_a_failed_read() {
    let (device, listener) = blocking();
    device.fail(Failing::Read, ENOMEM);
    assert_refused(&listener.accept(PATIENCE).unwrap_err());
    assert_deadline(&listener.accept(SOON).unwrap_err());
}

#[tokio::test]
async fn the_next_wait_reads_what_a_failed_read_left() {
    let (device, listener) = on_tokio();
    device.fail(Failing::Read, ENOMEM);
    device.flood(SOON);
    assert_refused(&listener.accept(PATIENCE).await.unwrap_err());
    drop(listener.accept(PATIENCE).await.unwrap());
}

#[tokio::test]
async fn all_waiters_receive_a_failure() {
    let (device, listener) = on_tokio();
    let both = async {
        let (one, other) = (listener.accept(PATIENCE), listener.accept(PATIENCE));
        tokio::join!(one, other, async {
            device.fail(Failing::Read, ENOMEM);
        })
    };
    let (one, other, ()) = both.await;
    assert_refused(&one.unwrap_err());
    assert_refused(&other.unwrap_err());
    assert_deadline(&listener.accept(SOON).await.unwrap_err());
}

#[tokio::test]
async fn a_poll_does_not_learn_of_a_failure_before_it() {
    let device = Arc::new(Flooding::new());
    let channel = EventChannel::options().ucma(device.clone());
    let node = awaited::Node::options().channel(channel).open().unwrap();
    let bind = || awaited::Listener::options().with_node(&node).bind(ADDRESS);
    let (polled, other) = (bind().unwrap(), bind().unwrap());
    let gone = &mut Context::from_waker(Waker::noop());
    assert!(polled.poll_accept(gone).is_pending());
    device.fail(Failing::Read, ENOMEM);
    assert_refused(&other.accept(PATIENCE).await.unwrap_err());
    let polled = poll_fn(|context| Poll::Ready(polled.poll_accept(context)));
    assert!(polled.await.is_pending());
}
