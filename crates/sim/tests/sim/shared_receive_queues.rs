//! Receive queues that queue pairs share.

use rdmacm_core::{CmId, ConnParam, EventKind, QpAttr, QpAttrMask, QpState, QpType};
use rdmacm_sim::{Fabric, Host, KernelVersion};
use rdmacm_verbs::{
    AsyncEventKind, AsyncEventSource, AsyncEvents, CompletionQueue, Context, QueuePair,
    SendOperation, SendRequest, SharedReceiveQueue, SrqOptions, WcStatus,
};
use zerocopy::FromZeros;

use crate::connected::{connect, create, done, open, poll, status};
use crate::expect;
use crate::pair::{Hosts, Side};

const OPTIONS: SrqOptions = SrqOptions {
    max_wr: 4,
    max_sge: 1,
};

/// Queue pairs of one host that share a receive queue and their completion queues, and a peer of each.
struct Shared {
    context: Context,
    requests: SharedReceiveQueue,
    completions: CompletionQueue,
    receivers: [QueuePair; 2],
    senders: [QueuePair; 2],
    /// On iWARP.
    connections: Vec<(Side, CmId)>,
}

/// Two hosts of this kernel, a queue pair for each of two receivers, and the shared queue.
fn objects(receiving: &Host, sending: &Host) -> Shared {
    let context = open(receiving);
    let domain = context.create_protection_domain().unwrap();
    let requests = OPTIONS.create(&domain).unwrap();
    let completions = CompletionQueue::options(64).create(&context).unwrap();
    let options = QueuePair::options(QpType::RC).recv_cq(&completions);
    let options = options.shared_receive_queue(&requests);
    Shared {
        receivers: [0, 1].map(|_| options.create(&context).unwrap()),
        senders: [0, 1].map(|_| create(sending)),
        context,
        requests,
        completions,
        connections: Vec::new(),
    }
}

fn roce(kernel: KernelVersion) -> Shared {
    let fabric = Fabric::roce(["sending", "receiving"]);
    let [sending, receiving] = ["sending", "receiving"].map(|name| {
        let host = fabric.find_host(name).unwrap();
        host.kernel_version(kernel)
    });
    let shared = objects(&receiving, &sending);
    for (sender, receiver) in shared.senders.iter().zip(&shared.receivers) {
        connect(sender, receiver, &receiving);
        connect(receiver, sender, &sending);
    }
    shared
}

fn iwarp() -> (Hosts, Shared) {
    let hosts = Hosts::iwarp();
    let mut shared = objects(&hosts.server, &hosts.client);
    let listener = hosts.listen(2);
    for (sender, receiver) in shared.senders.iter().zip(&shared.receivers) {
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        id.connect(ConnParam::new().with_queue_pair(sender))
            .unwrap();
        let child = listener.next_request().into_child().unwrap();
        child
            .accept(ConnParam::new().with_queue_pair(receiver))
            .unwrap();
        let client = Side { channel, id };
        client.expect(EventKind::Established);
        expect(&listener.channel, EventKind::Established);
        shared.connections.push((client, child));
    }
    (hosts, shared)
}

impl Shared {
    fn post_receives(&self, count: usize) {
        for _ in 0..count {
            let room = self.requests.protection_domain().allocate(8).unwrap();
            self.requests.post_receive(room).unwrap();
        }
    }

    /// Sends one byte to a receiver.
    fn send(&self, to: usize, byte: u8) {
        let sender = &self.senders[to];
        let memory = sender.protection_domain().register([byte]).unwrap();
        let request = SendRequest::new(SendOperation::Send, memory);
        sender.post_send(request).unwrap();
    }

    /// Expects the byte that a receiver has received.
    #[track_caller]
    fn expect(&self, at: usize, byte: u8) {
        let received = poll(&self.completions).unwrap();
        done(&received);
        assert_eq!(received.qp_number(), self.receivers[at].number());
        let buffer = received.sg_list.into_buffer().unwrap();
        assert_eq!(buffer[0], byte);
        while poll(self.senders[at].send_cq()).is_some() {}
    }
}

/// The queue wraps around.
fn expect_messages(shared: &Shared) {
    for round in 0..10 {
        shared.post_receives(4);
        for (to, byte) in [(1, 1), (0, 2), (0, 3), (1, 4)] {
            shared.send(to, 10 * round + byte);
            shared.expect(to, 10 * round + byte);
        }
    }
}

#[test]
fn queue_pairs_take_requests_from_one_queue() {
    expect_messages(&roce(KernelVersion::default()));
    let (_hosts, shared) = iwarp();
    expect_messages(&shared);
}

fn expect_limit(shared: &Shared, events: &AsyncEvents, left: u32) {
    assert_eq!(shared.requests.limit(), Ok(0));
    shared.requests.set_limit(2).unwrap();
    shared.post_receives(4);
    for byte in 0..4 {
        assert_eq!(events.try_next(), Ok(None), "{byte} messages");
        shared.send(0, byte);
        if byte == 2 {
            let event = events.try_next().unwrap().unwrap();
            let source = AsyncEventSource::SharedReceiveQueue(shared.requests.token());
            assert_eq!(event.kind, AsyncEventKind::SRQ_LIMIT_REACHED);
            assert_eq!(event.source, source);
        }
    }
    assert_eq!(shared.requests.limit(), Ok(left));
    let refused = shared.requests.set_limit(1000).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    shared.requests.set_limit(0).unwrap();
    while poll(&shared.completions).is_some() {}
    shared.post_receives(1);
    shared.send(0, 9);
    assert_eq!(events.try_next(), Ok(None));
}

/// siw keeps the limit after it was reached.
#[test]
fn a_limit_that_is_reached_is_reported_once() {
    let shared = roce(KernelVersion::default());
    expect_limit(&shared, &shared.context.async_events().unwrap(), 0);
    let (_hosts, shared) = iwarp();
    expect_limit(&shared, &shared.context.async_events().unwrap(), 2);
}

#[test]
fn a_queue_pair_that_has_failed_leaves_the_requests_to_others() {
    for kernel in [KernelVersion::Linux6_1, KernelVersion::Linux7_3] {
        let shared = roce(kernel);
        let events = shared.context.async_events().unwrap();
        shared.post_receives(2);
        let attr = QpAttr {
            qp_state: QpState::ERR,
            ..QpAttr::new_zeroed()
        };
        let [failed, _] = &shared.receivers;
        failed.modify(&attr, QpAttrMask::STATE).unwrap();
        assert!(poll(&shared.completions).is_none());
        let event = events.try_next().unwrap();
        assert_eq!(event.is_some(), kernel == KernelVersion::Linux7_3);
        if let Some(event) = event {
            assert_eq!(event.kind, AsyncEventKind::QP_LAST_WQE_REACHED);
            assert_eq!(event.source, AsyncEventSource::QueuePair(failed.token()));
        }
        shared.send(1, 7);
        shared.expect(1, 7);
    }
}

#[test]
fn a_peer_finds_no_request_in_an_empty_queue() {
    let shared = roce(KernelVersion::default());
    shared.post_receives(1);
    shared.send(0, 1);
    shared.send(1, 2);
    shared.expect(0, 1);
    assert!(poll(&shared.completions).is_none());
    assert!(poll(shared.senders[1].send_cq()).is_none());
}

/// Nothing is sent again on iWARP.
#[test]
fn a_message_that_finds_no_request_ends_a_connection_of_iwarp() {
    let (_hosts, shared) = iwarp();
    shared.send(1, 1);
    assert_eq!(shared.receivers[1].state(), Ok(Some(QpState::ERR)));
    shared.post_receives(1);
    shared.send(0, 2);
    shared.expect(0, 2);
}

#[test]
fn a_queue_is_counted_and_lives_as_long_as_its_queue_pairs() {
    let host = Fabric::roce(["host"]).find_host("host").unwrap();
    let count = || host.verbs_objects().shared_receive_queues;
    let Shared {
        context,
        requests,
        receivers,
        ..
    } = objects(&host, &host);
    assert_eq!(count(), 1);
    drop(requests);
    assert_eq!(count(), 1);
    drop(receivers);
    assert_eq!(count(), 0);
    let domain = context.create_protection_domain().unwrap();
    let none = SrqOptions {
        max_wr: 0,
        ..OPTIONS
    };
    let refused = none.create(&domain).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    let many = SrqOptions {
        max_sge: 28,
        ..OPTIONS
    };
    let refused = many.create(&domain).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
}

/// A request that was taken when its queue pair failed belongs to that one.
#[test]
fn a_message_that_is_too_long_takes_a_request() {
    let shared = roce(KernelVersion::default());
    shared.post_receives(2);
    let sender = &shared.senders[0];
    let memory = sender.protection_domain().register([1; 9]).unwrap();
    let request = SendRequest::new(SendOperation::Send, memory);
    sender.post_send(request).unwrap();
    let received = poll(&shared.completions).unwrap();
    assert_eq!(status(&received), WcStatus::LOC_QP_OP_ERR);
    shared.send(1, 5);
    shared.expect(1, 5);
}
