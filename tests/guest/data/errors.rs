//! Requests that fail: their status, and the return of their memory.

use std::sync::Barrier;
use std::thread;

use rdmacm_core::{AccessFlags, EventKind, QpType};
use rdmacm_tests::{PATIENCE, Side, Site, Soft};
use rdmacm_verbs::{
    Completion, CompletionError, CompletionInfo, CompletionQueue, QueuePair, RemoteMemory,
    SendOperation, SendRequest, SgList, Sge, WcStatus,
};

use super::{ALL, ROOMY, contents, exposed, received, room, roomy, sent, sge};
use crate::newer_commands;
use rdmacm_tests_macros::case;

/// Posts an operation with eight bytes and returns its result.
fn outcome(
    queue_pair: &QueuePair,
    operation: SendOperation,
) -> Result<CompletionInfo, CompletionError> {
    outcome_with(queue_pair, operation, sge(queue_pair, &[5; 8]))
}

/// Like [`failure`], with an entry of the caller's, which is returned.
fn outcome_with(
    queue_pair: &QueuePair,
    operation: SendOperation,
    memory: impl Into<SgList>,
) -> Result<CompletionInfo, CompletionError> {
    let request = SendRequest::new(operation, memory);
    let work = queue_pair.post_send(request).unwrap();
    let done = sent(queue_pair);
    assert_eq!((done.work, done.sg_list.len()), (work, 1));
    if done.result().is_err() {
        assert!(queue_pair.is_broken());
    }
    done.result()
}

/// Posted receive requests return their memory, at the latest when the side
/// disconnects: siw does not flush them earlier.
fn assert_flushed(side: &Side) {
    let queue_pair = &side.queue_pair;
    side.disconnect();
    let error = received(queue_pair).result().unwrap_err();
    assert!(error.is_flush(), "{error}");
    assert!(queue_pair.recv_cq().poll().unwrap().is_none());
}

/// siw completes a request when TCP has taken all of it, unless the connection ends
/// before the completion (`siw_qp_sq_proc_tx`).
fn assert_done(outcome: Result<CompletionInfo, CompletionError>) {
    if let Err(error) = outcome {
        assert_eq!(error.status, WcStatus::LOC_QP_OP_ERR);
    }
}

/// An access that the peer's device refuses. siw's peer ends the connection: a pending
/// read is flushed, and a write is already complete.
fn assert_guarded(site: &Site, of: impl Fn(&QueuePair) -> SendOperation) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    client.post_receive(room(client, 4)).unwrap();
    server.post_receive(room(server, 4)).unwrap();
    let operation = of(server);
    match (site.soft, operation, outcome(client, operation)) {
        (Soft::Rxe, _, outcome) => {
            let error = outcome.unwrap_err();
            assert_eq!(error.status, WcStatus::REM_ACCESS_ERR);
            assert!(
                error.to_string().contains("does not allow access"),
                "{error}"
            );
        }
        (Soft::Siw, SendOperation::Write(_), outcome) => assert_done(outcome),
        (Soft::Siw, _, outcome) => assert!(outcome.unwrap_err().is_flush()),
    }
    assert_flushed(&pair.client);
    assert_flushed(&pair.server);
}

/// The operations that access remote memory.
type Reach = fn(RemoteMemory) -> SendOperation;

/// Both change zeros.
const ATOMICS: [Reach; 2] = [
    |remote| SendOperation::FetchAdd { remote, add: 1 },
    |remote| SendOperation::CompareSwap {
        remote,
        compare: 0,
        swap: 1,
    },
];

/// Tries to access eight of sixteen exposed bytes with these rights, offset and key;
/// all fail.
fn assert_untouched(site: &Site, operation: Reach, (rights, by, key): (AccessFlags, u64, u32)) {
    let memory = std::cell::OnceCell::new();
    assert_guarded(site, |server| {
        let domain = server.protection_domain();
        let whole = memory.get_or_init(|| domain.expose(16, rights).unwrap());
        let remote = whole.remote();
        let (address, key) = (remote.address() + by, remote.key() ^ key);
        operation(RemoteMemory::new(address, 8, key).unwrap())
    });
    let untouched = contents(memory.get().unwrap());
    assert_eq!(untouched, [0; 16], "{rights:?}, {by}, {key:#x}");
}

#[case]
fn remote_access_is_checked(site: &Site) {
    for (operation, right) in [
        (SendOperation::Write as Reach, AccessFlags::REMOTE_WRITE),
        (SendOperation::Read as Reach, AccessFlags::REMOTE_READ),
    ] {
        for difference in [(ALL, 0, 0x100), (ALL, 9, 0), (ALL - right, 0, 0)] {
            if (site.soft, difference.0) == (Soft::Siw, ALL - AccessFlags::REMOTE_READ) {
                // siw does not check the right to read.
                continue;
            }
            assert_untouched(site, operation, difference);
        }
    }
}

/// The rights that an operation does not need.
#[case(needs(Datagrams))]
fn atomics_need_remote_atomic_access(site: &Site) {
    let others = ALL - AccessFlags::REMOTE_ATOMIC;
    for operation in ATOMICS {
        for difference in [(ALL, 0, 0x100), (ALL, 16, 0), (others, 0, 0)] {
            assert_untouched(site, operation, difference);
        }
    }
}

#[case]
fn deregistration_invalidates_the_rkey(site: &Site) {
    for operation in [SendOperation::Write, SendOperation::Read] {
        assert_guarded(site, |server| operation(exposed(server, 8).remote()));
    }
}

/// Both sides' results of a message that the receiver could not take. On rxe the sender
/// gets an error too, and the receiver has one status for all reasons. On siw the send
/// is already complete.
fn assert_not_taken(
    site: &Site,
    outcome: Result<CompletionInfo, CompletionError>,
    receiver: WcStatus,
    of_siw: WcStatus,
) {
    match site.soft {
        Soft::Rxe => {
            assert_eq!(outcome.unwrap_err().status, WcStatus::REM_OP_ERR);
            assert_eq!(receiver, WcStatus::LOC_QP_OP_ERR);
        }
        Soft::Siw => {
            assert_done(outcome);
            assert_eq!(receiver, of_siw);
        }
    }
}

#[case]
fn a_message_longer_than_the_receive_buffer(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    client.post_receive(room(client, 4)).unwrap();
    server.post_receive(room(server, 7)).unwrap();
    let outcome = outcome(client, SendOperation::Send);
    let came = received(server);
    let status = came.result().unwrap_err().status;
    assert_not_taken(site, outcome, status, WcStatus::LOC_LEN_ERR);
    assert_eq!(came.sg_list.into_buffer().unwrap().len(), 7);
    assert_flushed(&pair.client);
}

/// Eight bytes with a key that belongs to no region.
fn misnamed(buffer: &[u8; 8]) -> Sge {
    let address = buffer.as_ptr().expose_provenance() as u64;
    #[expect(unsafe_code, reason = "a wrong key is what is tried")]
    // SAFETY: the key belongs to no region, so the device accesses nothing.
    unsafe {
        Sge::raw(address, 8, 0x7777_7700)
    }
}

/// The statuses of the drivers. A request whose data arrives here fails on arrival, and
/// both drivers report why. A request whose data leaves from here fails before sending,
/// and neither reports why: siw has one status for all reasons (`siw_qp_sq_process`),
/// and rxe has one for all errors but `EFAULT`, which `copy_data` does not return for a
/// key. In later kernels rxe puts the queue pair in the error state before it completes
/// the request, so the request is flushed (`rxe_sender`).
fn wrong_key(site: &Site, operation: SendOperation) -> WcStatus {
    match site.soft {
        _ if operation.fetches() => WcStatus::LOC_PROT_ERR,
        Soft::Rxe if newer_commands::is_new() => WcStatus::WR_FLUSH_ERR,
        _ => WcStatus::LOC_QP_OP_ERR,
    }
}

#[case]
fn a_wrong_lkey_fails_the_send(site: &Site) {
    let send: Reach = |_| SendOperation::Send;
    let mut operations = vec![send, SendOperation::Write, SendOperation::Read];
    if site.soft == Soft::Rxe {
        operations.extend(ATOMICS);
    }
    for operation in operations {
        let pair = roomy(site);
        let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
        client.post_receive(room(client, 8)).unwrap();
        let memory = exposed(server, 8);
        let operation = operation(memory.remote());
        let outcome = outcome_with(client, operation, misnamed(&[7; 8]));
        let status = outcome.unwrap_err().status;
        assert_eq!(status, wrong_key(site, operation), "{operation:?}");
        assert_flushed(&pair.client);
    }
}

/// rxe's sender reports a fault of the receiver; siw's send is already complete.
#[case]
fn a_wrong_lkey_fails_the_receive(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    client.post_receive(room(client, 4)).unwrap();
    let work = server.post_receive(misnamed(&[7; 8])).unwrap();
    server.post_receive(room(server, 8)).unwrap();
    let outcome = outcome(client, SendOperation::Send);
    let came = received(server);
    assert_eq!((came.work, came.sg_list.len()), (work, 1));
    let status = came.result().unwrap_err().status;
    assert_not_taken(site, outcome, status, WcStatus::GENERAL_ERR);
    assert_flushed(&pair.client);
    assert_flushed(&pair.server);
}

#[case]
fn outstanding_requests_are_flushed(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let most = ROOMY.max_recv_wr;
    let posted: Vec<_> = (0..most)
        .map(|_| client.post_receive(room(client, 4)).unwrap())
        .collect();
    server.post_receive(room(server, 4)).unwrap();
    pair.disconnect_both();
    for work in posted {
        let completion = received(client);
        let result = completion.result();
        let Completion {
            work: flushed,
            sg_list,
            ..
        } = completion;
        assert_eq!(flushed, work);
        let error = result.unwrap_err();
        assert!(error.is_flush());
        assert!(!error.is_context_closed());
        assert_eq!((error.work, error.qp_number), (work, client.number()));
        let words = error.to_string();
        assert!(words.starts_with("RECEIVE on queue pair 0x"), "{words}");
        assert!(
            words.contains(": WR_FLUSH_ERR: the queue pair went"),
            "{words}"
        );
        assert_eq!(sg_list.into_buffer().unwrap()[..], [0xee; 4]);
    }
    assert!(received(server).result().unwrap_err().is_flush());
}

#[case(needs(Datagrams))]
fn no_receive_posted_exhausts_rnr_retries(site: &Site) {
    assert_eq!(site.soft, Soft::Rxe);
    let [client, server] = site.pair_in_rts(QpType::RC, ROOMY);
    let request = SendRequest::new(SendOperation::Send, sge(&client, &[5; 8]));
    client.post_send(request).unwrap();
    let error = sent(&client).result().unwrap_err();
    assert_eq!(error.status, WcStatus::RNR_RETRY_EXC_ERR);
    assert!(error.to_string().contains("no receive request"), "{error}");
    drop(server);
}

#[case(needs(Datagrams))]
fn a_missing_peer_exhausts_retries(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::RC, ROOMY);
    drop(server);
    let request = SendRequest::new(SendOperation::Send, sge(&client, &[5; 8]));
    client.post_send(request).unwrap();
    let error = sent(&client).result().unwrap_err();
    assert_eq!(error.status, WcStatus::RETRY_EXC_ERR);
    assert!(error.to_string().contains("did not acknowledge"), "{error}");
}

/// siw flushes its queues when the connection ends. It accepts later requests and never
/// completes them (`siw_post_send`).
#[case(needs(TcpHandshake))]
fn requests_posted_in_the_error_state_are_flushed(site: &Site) {
    let pair = roomy(site);
    let client = &pair.client.queue_pair;
    let queue = client.recv_cq();
    let first = client.post_receive(room(client, 4)).unwrap();
    queue.arm(false).unwrap();
    pair.server.disconnect();
    pair.client.expect(EventKind::Disconnected);
    // The notification is left unread, so this side does not know.
    queue.channel().unwrap().next(PATIENCE).unwrap().unwrap();
    let late = sge(client, b"late");
    let send = client.post_send(SendRequest::new(SendOperation::Send, late));
    let receive = client.post_receive(room(client, 4));
    pair.client
        .id
        .with_queue_pair(client)
        .move_to_error()
        .unwrap();
    let flushed = |queue: &CompletionQueue| {
        let polled = std::iter::from_fn(|| queue.poll().unwrap());
        let works = polled.map(|completion| {
            let error = completion.result().unwrap_err();
            assert!(error.is_flush(), "{error}");
            assert_eq!(completion.sg_list.len(), 1);
            completion.work
        });
        works.collect::<Vec<_>>()
    };
    assert_eq!(flushed(client.send_cq()), [send.unwrap()]);
    assert_eq!(flushed(queue), [first, receive.unwrap()]);
}

/// On rxe, the move to the error state flushes the receive requests that are there, and no later
/// one.
#[case]
fn requests_that_are_posted_during_the_move_to_the_error_state_return(site: &Site) {
    for _ in 0..10 {
        let pair = roomy(site);
        let client = &pair.client.queue_pair;
        let posting = Barrier::new(2);
        let posted = thread::scope(|scope| {
            let posting_thread = scope.spawn(|| {
                posting.wait();
                std::iter::from_fn(|| client.post_receive(room(client, 4)).ok()).count()
            });
            posting.wait();
            client.move_to_error().unwrap();
            posting_thread.join().unwrap()
        });
        for _ in 0..posted {
            let error = received(client).result().unwrap_err();
            assert!(error.is_flush(), "{error}");
        }
    }
}
