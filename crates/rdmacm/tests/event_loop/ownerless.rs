//! Requests for a listener that was dropped.

use std::sync::Arc;
use std::time::Duration;

use rdmacm::Cause;
use rdmacm::core::ucma::UcmaFile as _;
use rdmacm::core::{Error, EventChannel, PortSpace};
use rdmacm::tokio::{Listener, Node};

use crate::ucma_file::Flooding;

const FLOOD: Duration = Duration::from_secs(4);
const DEADLINE: Duration = Duration::from_millis(100);
const IN_TIME: Duration = Duration::from_millis(150);

fn flooded() -> (Arc<Flooding>, EventChannel) {
    let device = Arc::new(Flooding::new());
    let channel = EventChannel::options().ucma(device.clone());
    let channel = channel.open().unwrap();
    drop(channel.create_id(PortSpace::TCP).unwrap());
    device.flood(FLOOD);
    (device, channel)
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let (device, channel) = flooded();
    let began = device.now();
    let error = channel.next_event(DEADLINE).unwrap_err();
    assert_eq!(error, Error::DeadlinePassed);
    let elapsed = device.now() - began;
    assert!((DEADLINE..IN_TIME).contains(&elapsed), "{elapsed:?}");
}

#[test]
fn a_waker_ends_a_wait() {
    let (device, channel) = flooded();
    let began = device.now();
    let waker = channel.waker();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while device.now() - began < DEADLINE {
                std::hint::spin_loop();
            }
            waker.wake();
        });
        let error = channel.next_event(FLOOD).unwrap_err();
        assert_eq!(error, Error::Woken);
    });
    assert!(device.now() - began < FLOOD);
}

#[tokio::test]
async fn a_node_keeps_deadlines() {
    let device = Arc::new(Flooding::new());
    let channel = EventChannel::options().ucma(device.clone());
    let node = Node::options().channel(channel);
    let node = node.open().unwrap();
    let listening = |address: &str| Listener::options().with_node(&node).bind(address);
    drop(listening("10.1.0.7:7471").unwrap());
    let quiet = listening("10.1.0.7:7472").unwrap();
    device.flood(FLOOD);
    let began = device.now();
    let error = quiet.accept(DEADLINE).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    let elapsed = device.now() - began;
    assert!((DEADLINE..IN_TIME).contains(&elapsed), "{elapsed:?}");
}
