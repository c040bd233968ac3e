//! Connections whose queue pairs the program posts to itself.

use std::io;
use std::thread;

use rdmacm::core::{AccessFlags, DeviceId, IdHandle, QpType, RdmaDevices as _};
use rdmacm::verbs::{Context, DeviceSource, QueuePair, RemoteMemory, SendOperation, SendRequest};
use rdmacm::{CLOSE_DEADLINE, Cause, CmConnection, QueuePairFactory};
use rdmacm_sim::Host;

use super::{Hosts, SECOND};

fn open(host: &Host) -> Context {
    let device = host.list().unwrap().remove(0);
    let id = DeviceId {
        index: device.index,
        guid: device.guid,
    };
    DeviceSource::open(host, id).unwrap()
}

/// Creates queue pairs with a receive request each.
fn factory(context: &Context) -> impl QueuePairFactory<QueuePair = QueuePair> + use<'_> {
    |id: &IdHandle| -> io::Result<QueuePair> {
        let options = QueuePair::options(QpType::RC).with_completion_channels();
        let queue_pair = options.create(context)?;
        id.with_queue_pair(&queue_pair).init()?;
        let memory = queue_pair.protection_domain().allocate(64)?;
        queue_pair
            .post_receive(memory)
            .map_err(|error| error.error)?;
        Ok(queue_pair)
    }
}

/// Connects, and runs a test with both sides.
fn connected(hosts: &Hosts, test: impl FnOnce([&CmConnection<QueuePair>; 2])) {
    let contexts = [&hosts.client, &hosts.server].map(open);
    let (near, far) = thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming = hosts.listener.accept(None).unwrap();
            incoming.accept_with(factory(&contexts[1])).unwrap()
        });
        let connector = hosts.connector();
        let near = connector.connect_with(factory(&contexts[0])).unwrap();
        (near, accepting.join().unwrap())
    });
    test([&near, &far]);
    drop((near, far, contexts));
    hosts.assert_clean();
}

/// Performs an operation on eight bytes; returns what it has fetched.
fn atomic(connection: &CmConnection<QueuePair>, operation: SendOperation) -> u64 {
    let queue_pair = connection.queue_pair();
    let memory = queue_pair.protection_domain().allocate(8).unwrap();
    let posted = queue_pair.post_send(SendRequest::new(operation, memory));
    let work = posted.map_err(|error| error.error).unwrap();
    let completion = connection.next_sent(SECOND).unwrap();
    assert_eq!(completion.work, work);
    completion.result().unwrap();
    let fetched = completion.sg_list.into_buffer().unwrap();
    u64::from_ne_bytes(fetched[..].try_into().unwrap())
}

#[test]
fn a_posted_message_completes_on_both_sides() {
    for hosts in Hosts::each() {
        connected(&hosts, |[near, far]| {
            let domain = near.queue_pair().protection_domain();
            let mut message = domain.allocate(5).unwrap();
            message.copy_from_slice(b"hello");
            let work = near.post_send(message).unwrap();
            assert_eq!(near.next_sent(SECOND).unwrap().work, work);
            let received = far.next_received(SECOND).unwrap();
            assert_eq!(received.result().unwrap().bytes, 5);
            assert_eq!(received.sg_list.into_buffer().unwrap()[..5], *b"hello");
            let error = far.next_received(SECOND).unwrap_err();
            assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        });
    }
}

#[test]
fn atomics_change_the_peers_memory() {
    let hosts = Hosts::roce();
    connected(&hosts, |[near, far]| {
        let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_ATOMIC;
        let domain = far.queue_pair().protection_domain();
        let counter = domain.expose(8, access).unwrap();
        let remote: RemoteMemory = counter.remote();
        for number in 0..10 {
            let add = SendOperation::FetchAdd { remote, add: 2 };
            assert_eq!(atomic(near, add), 2 * number);
        }
        let swap = |compare, swap| SendOperation::CompareSwap {
            remote,
            compare,
            swap,
        };
        assert_eq!(atomic(near, swap(7, 1)), 20);
        assert_eq!(atomic(near, swap(20, 1)), 20);
        assert_eq!(atomic(near, swap(1, 0)), 1);
    });
}

#[test]
fn a_wait_for_a_completion_ends_with_the_connection() {
    for hosts in Hosts::each() {
        connected(&hosts, |[near, far]| {
            thread::scope(|scope| {
                let receiving = scope.spawn(|| {
                    // The receive request is flushed, and then there is none.
                    let flushed = near.next_received(None).unwrap();
                    assert!(flushed.result().unwrap_err().is_flush());
                    near.next_received(None).unwrap_err()
                });
                // Replies as well.
                far.close(CLOSE_DEADLINE).unwrap();
                let error = receiving.join().unwrap();
                assert!(matches!(error.cause(), Cause::Closed(_)), "{error}");
            });
        });
    }
}
