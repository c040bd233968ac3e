//! A wait or a read that fails in passing.

use std::sync::Arc;
use std::time::Duration;

use rdmacm::core::EventChannel;
use rdmacm::face::{Listener, Node};
use rdmacm::tokio::Tokio;
use rdmacm::{Async, Blocking, Cause, Error, Mode};

use crate::device::{Failing, Flooding};

const ENOMEM: i32 = 12;
const EINTR: i32 = 4;
const SOON: Duration = Duration::from_millis(50);

fn listener<M: Mode>() -> (Arc<Flooding>, Listener<M>) {
    let device = Arc::new(Flooding::new());
    let channel = EventChannel::options().ucma(device.clone());
    let node = Node::<M>::options().channel(channel).open().unwrap();
    let listener = Listener::options().on(&node).bind("10.1.0.7:7471");
    (device, listener.unwrap())
}

fn was_refused(error: &Error) {
    assert!(matches!(error.cause(), Cause::Refused(_)), "{error}");
    assert_eq!(error.raw_os_error(), Some(ENOMEM));
}

fn has_passed(error: &Error) {
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
}

#[test]
fn a_wait_that_fails_is_no_end_of_the_node() {
    let (device, listener) = listener::<Blocking>();
    device.fail(Failing::Wait, ENOMEM);
    was_refused(&listener.accept(SOON).unwrap_err());
    has_passed(&listener.accept(SOON).unwrap_err());
    device.flood(SOON);
    listener.accept(SOON).unwrap();
}

#[test]
fn one_that_is_interrupted_goes_on() {
    let (device, listener) = listener::<Blocking>();
    device.fail(Failing::Wait, EINTR);
    has_passed(&listener.accept(SOON).unwrap_err());
}

#[test]
fn a_read_that_fails_is_no_end_of_the_node() {
    let (device, listener) = listener::<Blocking>();
    device.fail(Failing::Read, ENOMEM);
    was_refused(&listener.accept(SOON).unwrap_err());
    has_passed(&listener.accept(SOON).unwrap_err());
}

#[tokio::test]
async fn what_was_not_read_for_a_failure_is_read_by_the_next() {
    let (device, listener) = listener::<Async<Tokio>>();
    device.fail(Failing::Read, ENOMEM);
    device.flood(SOON);
    was_refused(&listener.accept(SOON).await.unwrap_err());
    listener.accept(SOON).await.unwrap();
}

#[tokio::test]
async fn all_who_wait_hear_of_a_failure() {
    let (device, listener) = listener::<Async<Tokio>>();
    let both = async {
        tokio::join!(listener.accept(SOON), listener.accept(SOON), async {
            device.fail(Failing::Read, ENOMEM);
        })
    };
    let (one, other, ()) = both.await;
    was_refused(&one.unwrap_err());
    was_refused(&other.unwrap_err());
    has_passed(&listener.accept(SOON).await.unwrap_err());
}
