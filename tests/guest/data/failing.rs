//! Requests that fail: with which status, and with their memory.

use rdmacm_core::{AccessFlags, QpType};
use rdmacm_tests::{Side, Site, Soft};
use rdmacm_verbs::{
    Completion, CompletionError, Done, Piece, QueuePair, RemoteMemory, SendOperation, SendRequest,
    WcStatus,
};

use super::{ALL, ROOMY, contents, exposed, piece, received, room, roomy, sent};

crate::cases!("data::failing":
    a_peer_guards_its_memory,
    a_key_expires_with_its_memory,
    a_message_is_too_long_for_its_room,
    a_local_key_is_wrong,
    what_is_outstanding_is_flushed,
);

crate::cases!("data::failing" as ON_ROCE:
    nobody_receives,
    nobody_is_there,
);

/// Posts it, and gives what became of it, with its memory.
fn outcome(queue_pair: &QueuePair, operation: SendOperation) -> Result<Done, CompletionError> {
    let request = SendRequest::new(operation, piece(queue_pair, &[5; 8]));
    let work = queue_pair.post_send(request).unwrap();
    let done = sent(queue_pair);
    assert_eq!((done.work, done.pieces.len()), (work, 1));
    if done.result.is_err() {
        assert!(queue_pair.is_broken());
    }
    done.result
}

/// What was posted to receive comes back, at the latest when the side disconnects:
/// siw's does not flush it before.
fn assert_flushed(side: &Side) {
    let queue_pair = &side.queue_pair;
    side.disconnect();
    let error = received(queue_pair).result.unwrap_err();
    assert!(error.is_flush(), "{error}");
    assert!(queue_pair.receive_queue().poll().unwrap().is_none());
}

/// A peer's access that is refused. siw's peer says so by ending the connection: a
/// read is flushed with it, and a write was complete before.
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
        (Soft::Siw, SendOperation::Write(_), outcome) => assert!(outcome.is_ok()),
        (Soft::Siw, _, outcome) => assert!(outcome.unwrap_err().is_flush()),
    }
    assert_flushed(&pair.client);
    assert_flushed(&pair.server);
}

/// What reaches for memory.
type Reach = fn(RemoteMemory) -> SendOperation;

fn a_peer_guards_its_memory(site: &Site) {
    let whole = |server: &QueuePair, flags| {
        let domain = server.protection_domain();
        domain.expose(16, flags).unwrap()
    };
    let told = |memory: &RemoteMemory, by, key| {
        let address = memory.address() + by;
        RemoteMemory::new(address, 8, memory.key() ^ key).unwrap()
    };
    for (operation, right) in [
        (SendOperation::Write as Reach, AccessFlags::REMOTE_WRITE),
        (SendOperation::Read as Reach, AccessFlags::REMOTE_READ),
    ] {
        for (flags, by, key) in [(ALL, 0, 0x100), (ALL, 9, 0), (ALL - right, 0, 0)] {
            if (site.soft, flags) == (Soft::Siw, ALL - AccessFlags::REMOTE_READ) {
                // siw looks at no right to read.
                continue;
            }
            let memory = std::cell::OnceCell::new();
            assert_guarded(site, |server| {
                let remote = memory.get_or_init(|| whole(server, flags)).remote();
                operation(told(&remote, by, key))
            });
            let untouched = contents(memory.get().unwrap());
            assert_eq!(untouched, [0; 16], "{flags:?}, {by}, {key:#x}");
        }
    }
}

fn a_key_expires_with_its_memory(site: &Site) {
    for operation in [SendOperation::Write, SendOperation::Read] {
        assert_guarded(site, |server| operation(exposed(server, 8).remote()));
    }
}

fn a_message_is_too_long_for_its_room(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    client.post_receive(room(client, 4)).unwrap();
    server.post_receive(room(server, 7)).unwrap();
    let outcome = outcome(client, SendOperation::Send);
    let came = received(server);
    let status = came.result.unwrap_err().status;
    match site.soft {
        Soft::Rxe => {
            assert_eq!(outcome.unwrap_err().status, WcStatus::REM_OP_ERR);
            assert_eq!(status, WcStatus::LOC_QP_OP_ERR);
        }
        Soft::Siw => {
            assert!(outcome.is_ok());
            assert_eq!(status, WcStatus::LOC_LEN_ERR);
        }
    }
    assert_eq!(came.pieces.into_buffer().unwrap().len(), 7);
    assert_flushed(&pair.client);
}

fn a_local_key_is_wrong(site: &Site) {
    let pair = roomy(site);
    let client = &pair.client.queue_pair;
    client.post_receive(room(client, 8)).unwrap();
    let buffer = [7_u8; 8];
    let address = buffer.as_ptr().expose_provenance() as u64;
    #[expect(unsafe_code, reason = "a wrong key is what is tried")]
    // SAFETY: nothing has this key, so the device reads nothing.
    let piece = unsafe { Piece::raw(address, 8, 0x7777_7700) };
    let request = SendRequest::new(SendOperation::Send, piece);
    client.post_send(request).unwrap();
    // rxe of later kernels says that it was flushed.
    assert!(sent(client).result.is_err());
    assert_flushed(&pair.client);
}

fn what_is_outstanding_is_flushed(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let most = ROOMY.max_recv_wr;
    let posted: Vec<_> = (0..most)
        .map(|_| client.post_receive(room(client, 4)).unwrap())
        .collect();
    server.post_receive(room(server, 4)).unwrap();
    pair.part();
    for work in posted {
        let Completion {
            work: flushed,
            result,
            pieces,
            ..
        } = received(client);
        assert_eq!(flushed, work);
        let error = result.unwrap_err();
        assert!(error.is_flush());
        assert!(!error.is_device_gone());
        assert_eq!((error.work, error.queue_pair), (work, client.number()));
        let words = error.to_string();
        assert!(words.starts_with("RECEIVE on queue pair 0x"), "{words}");
        assert!(
            words.contains(": WR_FLUSH_ERR: the queue pair went"),
            "{words}"
        );
        assert_eq!(pieces.into_buffer().unwrap()[..], [0xee; 4]);
    }
    assert!(received(server).result.unwrap_err().is_flush());
}

fn nobody_receives(site: &Site) {
    assert_eq!(site.soft, Soft::Rxe);
    let [client, server] = site.led_pair(QpType::RC, ROOMY);
    let request = SendRequest::new(SendOperation::Send, piece(&client, &[5; 8]));
    client.post_send(request).unwrap();
    let error = sent(&client).result.unwrap_err();
    assert_eq!(error.status, WcStatus::RNR_RETRY_EXC_ERR);
    assert!(error.to_string().contains("no receive request"), "{error}");
    drop(server);
}

fn nobody_is_there(site: &Site) {
    let [client, server] = site.led_pair(QpType::RC, ROOMY);
    drop(server);
    let request = SendRequest::new(SendOperation::Send, piece(&client, &[5; 8]));
    client.post_send(request).unwrap();
    let error = sent(&client).result.unwrap_err();
    assert_eq!(error.status, WcStatus::RETRY_EXC_ERR);
    assert!(error.to_string().contains("did not acknowledge"), "{error}");
}
