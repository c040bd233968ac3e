//! Queue pairs of two hosts that are connected by hand.

use std::time::Duration;

use rdmacm_core::{AccessFlags, QpAttr, QpAttrMask, QpState, QpType};
use rdmacm_sim::{Adapter, Fabric, KernelVersion, MessageKind};
use rdmacm_verbs::{
    AsyncEvent, AsyncEventKind, AsyncEventSource, DeviceSource, QueuePair, SendOperation,
    SendRequest, Sge, WcStatus,
};
use zerocopy::FromZeros;

use crate::connected::{
    Connected, REMOTE, TIMEOUT, connect, create, device, done, gid, open, poll, status,
};
use crate::forked::CHILDREN;

#[test]
fn a_message_arrives_in_the_memory_that_was_posted() {
    let pair = Connected::new();
    pair.post_receive();
    pair.send(b"hello");
    let received = pair.received();
    assert_eq!(done(&received).bytes, 5);
    assert_eq!(received.sg_list.into_buffer().unwrap()[..5], *b"hello");
    assert!(pair.sent().result().is_ok());
    assert!(pair.near.send_cq().poll().unwrap().is_none());
}

#[test]
fn messages_arrive_in_order_and_queues_wrap() {
    let pair = Connected::new();
    for number in 0..200_u8 {
        pair.post_receive();
        pair.send(&[number; 3]);
        let buffer = pair.received().sg_list.into_buffer().unwrap();
        assert_eq!(buffer[..3], [number; 3]);
        done(&pair.sent());
    }
}

#[test]
fn a_message_carries_inline_data_and_immediate_data() {
    let pair = Connected::new();
    let caps = rdmacm_verbs::QpCaps {
        max_inline_data: 32,
        ..rdmacm_verbs::QpCaps::default()
    };
    let options = QueuePair::options(QpType::RC).caps(caps);
    let near = options.create(&open(&pair.here)).unwrap();
    let far = create(&pair.there);
    connect(&near, &far, &pair.there);
    connect(&far, &near, &pair.here);
    far.post_receive(far.protection_domain().allocate(64).unwrap())
        .unwrap();
    let operation = SendOperation::SendWithImmediate(0x1234);
    near.post_send(SendRequest::inline(operation, b"inline"))
        .unwrap();
    let received = poll(far.recv_cq()).unwrap();
    assert_eq!(done(&received).immediate, Some(0x1234));
    assert_eq!(received.sg_list.into_buffer().unwrap()[..6], *b"inline");
}

#[test]
fn memory_of_the_peer_is_written_and_read() {
    let pair = Connected::new();
    let region = pair.far.protection_domain().expose(64, REMOTE).unwrap();
    let remote = region.remote();
    pair.start(SendOperation::Write(remote.slice(8..13).unwrap()), b"write");
    done(&pair.sent());
    let mut bytes = [0; 5];
    region.read(8, &mut bytes);
    assert_eq!(bytes, *b"write");

    region.write(20, b"abc");
    pair.start(SendOperation::Read(remote.slice(20..23).unwrap()), &[0; 3]);
    let sent = pair.sent();
    done(&sent);
    assert_eq!(sent.sg_list.into_buffer().unwrap()[..], *b"abc");

    pair.post_receive();
    let operation = SendOperation::WriteWithImmediate(remote.slice(0..2).unwrap(), 7);
    pair.start(operation, b"hi");
    assert_eq!(done(&pair.received()).immediate, Some(7));
}

#[test]
fn atomics_change_memory_and_return_what_was_there() {
    let pair = Connected::new();
    let region = pair.far.protection_domain().expose(16, REMOTE).unwrap();
    region.write(0, &40_u64.to_ne_bytes());
    let remote = region.remote().slice(0..8).unwrap();
    let swap = SendOperation::CompareSwap {
        remote,
        compare: 42,
        swap: 1,
    };
    for (operation, before, after) in [
        (SendOperation::FetchAdd { remote, add: 2 }, 40, 42),
        (swap, 42, 1),
        (swap, 1, 1),
    ] {
        pair.start(operation, &[0; 8]);
        let buffer = pair.sent().sg_list.into_buffer().unwrap();
        assert_eq!(buffer[..], u64::to_ne_bytes(before));
        let mut bytes = [0; 8];
        region.read(0, &mut bytes);
        assert_eq!(u64::from_ne_bytes(bytes), after);
    }
}

#[test]
fn memory_without_the_right_is_not_accessed() {
    let readable = AccessFlags::REMOTE_READ;
    let pair = Connected::new();
    let region = pair.far.protection_domain().expose(8, readable).unwrap();
    pair.start(SendOperation::Write(region.remote()), &[1; 8]);
    pair.send(b"behind");
    assert_eq!(status(&pair.sent()), WcStatus::REM_ACCESS_ERR);
    assert_eq!(status(&pair.sent()), WcStatus::WR_FLUSH_ERR);
    assert_eq!(pair.near.state(), Ok(Some(QpState::ERR)));
    assert_eq!(pair.far.state(), Ok(Some(QpState::ERR)));
}

#[test]
fn memory_that_is_not_registered_any_more_is_not_accessed() {
    let pair = Connected::new();
    let region = pair.far.protection_domain().expose(8, REMOTE).unwrap();
    let remote = region.remote();
    drop(region);
    pair.start(SendOperation::Read(remote), &[0; 8]);
    assert_eq!(status(&pair.sent()), WcStatus::REM_ACCESS_ERR);
}

/// Eight bytes with a key that belongs to no region.
pub(crate) fn misnamed(buffer: &[u8; 8]) -> Sge {
    let address = buffer.as_ptr().expose_provenance() as u64;
    #[expect(unsafe_code, reason = "a wrong key is what is tried")]
    // SAFETY: the key belongs to no region, so the device accesses nothing.
    unsafe {
        Sge::raw(address, 8, 0x7777_7700)
    }
}

/// The kernels as `a_wrong_lkey_fails_the_send` of the guest suite finds them.
const KERNELS: [(KernelVersion, WcStatus); 2] = [
    (KernelVersion::Linux6_1, WcStatus::LOC_QP_OP_ERR),
    (KernelVersion::Linux7_3, WcStatus::WR_FLUSH_ERR),
];

#[test]
fn a_key_that_is_not_registered_here_fails_the_request() {
    for (kernel, of_sends) in KERNELS {
        let operations: [fn(_) -> _; 4] = [
            |_| (SendOperation::Send, false),
            |remote| (SendOperation::Write(remote), false),
            |remote| (SendOperation::Read(remote), true),
            |remote| (SendOperation::FetchAdd { remote, add: 1 }, true),
        ];
        for operation in operations {
            let pair = Connected::on(kernel);
            pair.post_receive();
            let region = pair.far.protection_domain().expose(8, REMOTE).unwrap();
            let (operation, fetches) = operation(region.remote());
            pair.start_with(operation, misnamed(&[7; 8]));
            let expected = if fetches {
                WcStatus::LOC_PROT_ERR
            } else {
                of_sends
            };
            assert_eq!(status(&pair.sent()), expected, "{operation:?} {kernel:?}");
            assert_eq!(pair.near.state(), Ok(Some(QpState::ERR)));
            assert!(poll(pair.far.recv_cq()).is_none());
        }
    }
}

#[test]
fn what_was_sent_before_such_a_request_completes_on_the_older_kernel_only() {
    for (kernel, of_sends) in KERNELS {
        let pair = Connected::on(kernel);
        pair.fabric.set_delay(Duration::from_millis(5));
        pair.post_receive();
        pair.send(b"before");
        pair.start_with(SendOperation::Send, misnamed(&[7; 8]));
        pair.fabric.advance(Duration::from_millis(10));
        assert_eq!(done(&pair.received()).bytes, 6);
        let before = pair.sent();
        let is_older = kernel == KernelVersion::Linux6_1;
        assert_eq!(before.result().is_ok(), is_older, "{kernel:?}");
        assert_eq!(status(&pair.sent()), of_sends);
    }
}

/// It arrives before that.
#[test]
fn a_key_is_not_invalidated() {
    let pair = Connected::new();
    pair.post_receive();
    let memory = pair.far.protection_domain().expose(64, REMOTE).unwrap();
    let invalidate = SendOperation::SendWithInvalidate(memory.remote().key());
    pair.start(invalidate, &[1; 8]);
    done(&pair.sent());
    let received = pair.received();
    assert_eq!(status(&received), WcStatus::REM_INV_REQ_ERR);
    assert_eq!(received.sg_list.into_buffer().unwrap()[..8], [1; 8]);
}

#[test]
fn a_message_that_is_too_long_fails_at_both_ends() {
    let pair = Connected::new();
    pair.post_receive();
    pair.send(&[1; 65]);
    assert_eq!(status(&pair.received()), WcStatus::LOC_QP_OP_ERR);
    assert_eq!(status(&pair.sent()), WcStatus::REM_OP_ERR);
}

#[test]
fn requests_are_flushed_in_the_error_state() {
    let pair = Connected::new();
    pair.post_receive();
    let attr = QpAttr {
        qp_state: QpState::ERR,
        ..QpAttr::new_zeroed()
    };
    pair.far.modify(&attr, QpAttrMask::STATE).unwrap();
    assert_eq!(status(&pair.received()), WcStatus::WR_FLUSH_ERR);
}

#[test]
fn a_receiver_that_is_not_ready_is_asked_again() {
    let pair = Connected::new();
    pair.send(b"early");
    assert!(poll(pair.near.send_cq()).is_none());
    pair.post_receive();
    pair.fabric.advance(Duration::from_micros(640));
    assert_eq!(done(&pair.received()).bytes, 5);
    done(&pair.sent());
}

#[test]
fn a_receiver_that_is_never_ready_fails_the_request() {
    let pair = Connected::new();
    pair.send(b"early");
    pair.fabric.advance(Duration::from_micros(1279));
    assert!(poll(pair.near.send_cq()).is_none());
    pair.fabric.advance(Duration::from_micros(1));
    assert_eq!(status(&pair.sent()), WcStatus::RNR_RETRY_EXC_ERR);
}

#[test]
fn a_peer_that_does_not_respond_fails_the_request() {
    let pair = Connected::new();
    pair.post_receive();
    pair.there.set_responding(false);
    pair.send(b"lost");
    let just_before = Duration::from_nanos(7 * (4096 << TIMEOUT) - 1);
    pair.fabric.advance(just_before);
    assert!(poll(pair.near.send_cq()).is_none());
    pair.fabric.advance(Duration::from_nanos(1));
    assert_eq!(status(&pair.sent()), WcStatus::RETRY_EXC_ERR);
}

#[test]
fn what_is_lost_is_sent_again_and_done_once() {
    let pair = Connected::new();
    let region = pair.far.protection_domain().expose(8, REMOTE).unwrap();
    region.write(0, &0_u64.to_ne_bytes());
    let remote = region.remote();
    pair.here.drop_next(MessageKind::Data, 1);
    pair.there.drop_next(MessageKind::DataReply, 2);
    for _ in 0..3 {
        pair.start(SendOperation::FetchAdd { remote, add: 1 }, &[0; 8]);
    }
    pair.fabric.advance(Duration::from_secs(1));
    for before in 0..3_u64 {
        let buffer = pair.sent().sg_list.into_buffer().unwrap();
        assert_eq!(buffer[..], before.to_ne_bytes());
    }
}

#[test]
fn random_loss_is_repeated_by_its_seed() {
    let run = |seed| {
        let pair = Connected::new();
        let fabric = pair.fabric.clone().seed(seed);
        fabric.set_loss(20);
        let begin = fabric.now();
        for number in 0..20_u8 {
            pair.post_receive();
            pair.send(&[number]);
            let completion = loop {
                if let Some(completion) = poll(pair.near.send_cq()) {
                    break completion;
                }
                fabric.advance(Duration::from_millis(1));
            };
            done(&completion);
            assert_eq!(pair.received().sg_list.into_buffer().unwrap()[0], number);
        }
        fabric.now().duration_since(begin)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), Duration::ZERO);
}

#[test]
fn a_message_takes_the_delay_of_the_fabric() {
    let pair = Connected::new();
    pair.fabric.set_delay(Duration::from_millis(5));
    pair.post_receive();
    pair.send(b"late");
    pair.fabric.advance(Duration::from_millis(4));
    assert!(poll(pair.far.recv_cq()).is_none());
    pair.fabric.advance(Duration::from_millis(1));
    done(&pair.received());
    assert!(poll(pair.near.send_cq()).is_none());
    pair.fabric.advance(Duration::from_millis(5));
    done(&pair.sent());
}

#[test]
fn a_completion_channel_reports_what_its_queue_is_armed_for() {
    let pair = Connected::new();
    let queue = pair.far.recv_cq();
    let channel = queue.channel().unwrap();
    queue.arm(true).unwrap();
    pair.post_receive();
    pair.send(b"quiet");
    assert!(channel.try_next().unwrap().is_none());
    pair.post_receive();
    let memory = pair.near.protection_domain().register(*b"loud").unwrap();
    let request = SendRequest::new(SendOperation::Send, memory).solicited();
    pair.near.post_send(request).unwrap();
    assert_eq!(channel.try_next().unwrap(), Some(queue.token()));
    assert!(channel.try_next().unwrap().is_none());
}

#[test]
fn a_completion_queue_keeps_what_it_holds_when_it_grows() {
    let pair = Connected::new();
    for number in 0..3_u8 {
        pair.post_receive();
        pair.send(&[number]);
    }
    pair.far.recv_cq().resize(100).unwrap();
    for number in 0..3_u8 {
        assert_eq!(pair.received().sg_list.into_buffer().unwrap()[0], number);
    }
}

#[test]
fn a_device_describes_itself() {
    let fabric = Fabric::new();
    let adapter = Adapter::roce("rxe0").address([10, 1, 0, 7]);
    let host = fabric.host([adapter]);
    let context = open(&host);
    assert_eq!(context.limits().node_guid, device(&host).guid);
    assert_eq!(context.port(1).unwrap().gid_table_len, 2);
    let gids = context.gids(1).unwrap();
    assert_eq!(gids[1].gid, gid(&host));
    assert!(context.port(2).is_err());
}

#[test]
fn a_device_that_is_removed_ends_its_contexts() {
    let _no_children = CHILDREN.read();
    let pair = Connected::new();
    pair.post_receive();
    let channel = pair.far.recv_cq().channel().unwrap().clone();
    let id = device(&pair.there);
    pair.there.remove_device("rxe0");
    assert!(channel.try_next().is_err());
    assert!(pair.far.context().is_closed());
    assert_eq!(status(&pair.received()), WcStatus::FATAL_ERR);
    assert!(DeviceSource::open(&pair.there, id).is_err());
}

#[test]
fn open_contexts_report_changes_of_the_link() {
    for (fabric, name) in [
        (Fabric::roce(["host"]), "rxe0"),
        (Fabric::iwarp(["host"]), "siw0"),
    ] {
        let host = fabric.find_host("host").unwrap();
        let contexts = [open(&host), open(&host)];
        let streams = [&contexts[0], &contexts[1]].map(|context| context.async_events().unwrap());
        let expect = |kind| {
            let source = AsyncEventSource::Port(1);
            for events in &streams {
                assert_eq!(events.try_next(), Ok(Some(AsyncEvent { kind, source })));
                assert_eq!(events.try_next(), Ok(None));
            }
        };
        // Nothing changes.
        host.set_link_up(name, true);
        host.set_link_up(name, false);
        expect(AsyncEventKind::PORT_ERR);
        host.set_link_up(name, true);
        expect(AsyncEventKind::PORT_ACTIVE);
    }
}
