//! Requests that are refused before they are posted: the memory is returned, and the
//! queues have as much space as before.

use rdmacm_core::AccessFlags;
use rdmacm_tests::{Site, Soft};
use rdmacm_verbs::{
    CompletionQueue, Error, PostError, QpCaps, QueuePair, RemoteMemory, SendOperation, SendRequest,
    SgList,
};

use super::{ROOMY, exposed, filled, received, room, roomy, sent, sge};
use rdmacm_tests_macros::case;

/// Checks that the request was returned, and returns the reason.
fn reason(refused: PostError<Option<SendRequest<'_>>>) -> (String, SgList) {
    assert!(matches!(refused.error, Error::InvalidInput { .. }));
    let request = refused.returned.unwrap();
    (refused.error.to_string(), request.into_sg_list())
}

fn assert_refused(queue_pair: &QueuePair, request: SendRequest<'_>, why: &str) {
    let (words, _) = reason(queue_pair.post_send(request).unwrap_err());
    assert_eq!(words, format!("post a send request: {why}"));
}

/// The queues take as many requests as before.
fn assert_empty(client: &QueuePair, server: &QueuePair) {
    let most = client.caps().max_send_wr.min(32);
    for _ in 0..most {
        server.post_receive(SgList::NONE).unwrap();
    }
    for _ in 0..most {
        let request = SendRequest::new(SendOperation::Send, SgList::NONE);
        client.post_send(request).unwrap();
    }
    for _ in 0..most {
        assert!(sent(client).result().is_ok());
        assert!(received(server).result().is_ok());
    }
}

#[case]
fn unsupported_operations(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let memory = exposed(server, 8).remote();
    let why = "the result needs registered memory";
    let read = SendRequest::inline(SendOperation::Read(memory), &[]);
    assert_refused(client, read, why);
    if site.soft == Soft::Siw {
        let why = "queue pairs of this type and device do not support this operation";
        for operation in [
            SendOperation::SendWithImmediate(1),
            SendOperation::WriteWithImmediate(memory, 1),
            SendOperation::FetchAdd {
                remote: memory,
                add: 1,
            },
            SendOperation::CompareSwap {
                remote: memory,
                compare: 0,
                swap: 1,
            },
        ] {
            assert_refused(client, SendRequest::new(operation, room(client, 8)), why);
        }
        let operation = SendOperation::SendWithInvalidate(memory.key());
        let why = "the device does not support inline data with this operation";
        assert_refused(client, SendRequest::inline(operation, b"x"), why);
    }
    assert_empty(client, server);
}

#[case]
fn too_many_sges(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let caps = client.caps();
    let bytes = vec![1; caps.max_inline_data as usize + 1];
    let why = "the inline data is longer than QpCaps::max_inline_data";
    assert_refused(
        client,
        SendRequest::inline(SendOperation::Send, &bytes),
        why,
    );

    let why = "it has more scatter/gather entries than the queue pair allows";
    let sg_list = |queue_pair, count: u32| -> Vec<_> {
        let sge = |_| filled(queue_pair, b"x").into();
        (0..count).map(sge).collect()
    };
    let many = sg_list(client, caps.max_send_sge + 1);
    assert_refused(client, SendRequest::new(SendOperation::Send, many), why);
    if site.soft == Soft::Siw {
        let read = SendOperation::Read(exposed(server, 8).remote());
        assert_refused(client, SendRequest::new(read, sg_list(client, 2)), why);
    }
    let many = sg_list(server, server.caps().max_recv_sge + 1);
    let count = many.len();
    let refused = server.post_receive(many).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "post a receive request: it has more scatter/gather entries than the queue allows"
    );
    assert_eq!(refused.returned.len(), count);
    assert_empty(client, server);
}

#[case]
fn memory_of_another_protection_domain(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let foreign = client.context().create_protection_domain().unwrap();
    let foreign = || {
        let mut buffer = foreign.allocate(3).unwrap();
        buffer.copy_from_slice(b"abc");
        buffer
    };
    let why = "its memory is registered in another protection domain";
    let request = SendRequest::new(SendOperation::Send, foreign());
    let (words, sg_list) = reason(client.post_send(request).unwrap_err());
    assert_eq!(words, format!("post a send request: {why}"));
    assert_eq!(*sg_list.into_buffer().unwrap(), *b"abc");
    let refused = client.post_receive(foreign()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("post a receive request: {why}")
    );
    assert_eq!(*refused.returned.into_buffer().unwrap(), *b"abc");
    assert_empty(client, server);
}

#[case]
fn memory_without_local_write_access(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let domain = client.protection_domain();
    let memory = domain.expose(8, AccessFlags::REMOTE_READ).unwrap();
    let part = || memory.slice(0..8).unwrap();
    let why = "its memory is not registered for writing";
    let read = SendOperation::Read(exposed(server, 8).remote());
    assert_refused(client, SendRequest::new(read, part()), why);
    let refused = client.post_receive(part()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("post a receive request: {why}")
    );
    // Read access is enough to send from it.
    server.post_receive(room(server, 8)).unwrap();
    let request = SendRequest::new(SendOperation::Send, part());
    client.post_send(request).unwrap();
    assert!(sent(client).result().is_ok());
    assert!(received(server).result().is_ok());
    assert_empty(client, server);
}

#[case]
fn remote_memory_that_is_too_short(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let why = "the peer's memory is shorter than this side's";
    let remote = exposed(server, 8).remote();
    for operation in [SendOperation::Write(remote), SendOperation::Read(remote)] {
        assert_refused(client, SendRequest::new(operation, room(client, 9)), why);
    }
    let request = SendRequest::inline(SendOperation::Write(remote), &[0; 9]);
    assert_refused(client, request, why);
    assert_empty(client, server);
}

#[case(needs(Datagrams))]
fn atomics_of_other_than_eight_bytes(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let remote = exposed(server, 32).remote();
    let add = |remote: Option<RemoteMemory>| SendOperation::FetchAdd {
        remote: remote.unwrap(),
        add: 1,
    };
    let one = |length| room(client, length);
    let why = "an atomic operation takes one scatter/gather entry of 8 bytes";
    for sg_list in [one(7), one(9), SgList::NONE] {
        assert_refused(client, SendRequest::new(add(Some(remote)), sg_list), why);
    }
    let two = [4, 4].map(|length| filled(client, &vec![0; length]).into());
    assert_refused(
        client,
        SendRequest::new(add(Some(remote)), Vec::from(two)),
        why,
    );
    let why = "the peer's memory is not aligned to 8 bytes";
    assert_refused(
        client,
        SendRequest::new(add(remote.slice(4..)), one(8)),
        why,
    );
    let why = "the peer's memory is shorter than this side's";
    assert_refused(
        client,
        SendRequest::new(add(remote.slice(..7)), one(8)),
        why,
    );
    assert_empty(client, server);
}

#[case]
fn a_send_before_connecting(site: &Site) {
    let queue_pair = site.queue_pair();
    for _ in 0..3 {
        let request = SendRequest::new(SendOperation::Send, sge(&queue_pair, b"early"));
        let refused = queue_pair.post_send(request).unwrap_err();
        let words = refused.to_string();
        assert!(words.contains("is not connected"), "{words}");
        let sg_list = refused.returned.unwrap().into_sg_list();
        assert_eq!(sg_list.into_buffer().unwrap()[..], *b"early");
    }
    assert!(!queue_pair.is_broken());
    assert!(queue_pair.destroy().is_empty());
}

#[case]
fn a_datagram_without_an_address_handle(site: &Site) {
    if site.soft == Soft::Siw {
        let domain = site.queue_pair().protection_domain().clone();
        let attr = zerocopy::FromZeros::new_zeroed();
        let refused = domain.create_address_handle(attr).unwrap_err();
        assert!(refused.to_string().contains("no datagrams"), "{refused}");
        return;
    }
    let options = QueuePair::options(rdmacm_core::QpType::UD);
    let queue_pair = options.create(&site.verbs()).unwrap();
    let request = SendRequest::new(SendOperation::Send, sge(&queue_pair, b"x"));
    assert_refused(&queue_pair, request, "a datagram needs a destination");
}

#[case]
fn more_requests_than_the_queues_hold(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let receives = client.caps().max_recv_wr;
    let mut full = None;
    for _ in 0..=receives {
        if let Err(refused) = client.post_receive(room(client, 2)) {
            full = Some(refused);
        }
    }
    let full = full.unwrap();
    assert_eq!(
        full.to_string(),
        "post a receive request: the receive queue is full"
    );
    assert_eq!(full.returned.into_buffer().unwrap()[..], [0xee; 2]);
    // Unpolled completions occupy their entries.
    let sends = client.caps().max_send_wr;
    let request = || SendRequest::new(SendOperation::Send, sge(client, b"x"));
    for number in 0..sends {
        if number < server.caps().max_recv_wr {
            server.post_receive(room(server, 1)).unwrap();
        } else {
            assert!(received(server).result().is_ok());
            server.post_receive(room(server, 1)).unwrap();
        }
        client.post_send(request()).unwrap();
    }
    let why = "the send queue is full: poll completions first";
    assert_refused(client, request(), why);
    assert!(sent(client).result().is_ok());
    assert!(received(server).result().is_ok());
    server.post_receive(room(server, 1)).unwrap();
    client.post_send(request()).unwrap();
}

#[case]
fn more_requests_than_the_completion_queue_holds(site: &Site) {
    let context = site.verbs();
    let channel = context.create_completion_channel().unwrap();
    let queue = CompletionQueue::options(4).channel(&channel);
    let queue = queue.create(&context).unwrap();
    let options = QueuePair::options(rdmacm_core::QpType::RC);
    let options = options.caps(ROOMY).send_cq(&queue).recv_cq(&queue);
    let client = options.create(&context).unwrap();
    let pair = site.pair_of(client, site.queue_pair_with(ROOMY));
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let holds = queue.entries();
    let why = "the completion queue has no room left for its completion";
    for _ in 2..holds {
        client.post_receive(room(client, 1)).unwrap();
    }
    server.post_receive(room(server, 1)).unwrap();
    let request = || SendRequest::new(SendOperation::Send, sge(client, b"x"));
    let mut all = [(); 3].map(|()| Some(request()));
    client.post_sends(&mut all).unwrap_err();
    assert!(all.iter().all(Option::is_some));
    client.post_send(request().unsignaled()).unwrap();
    // The last entry is for a request whose completion returns the others.
    assert_refused(client, request().unsignaled(), why);
    client.post_receive(room(client, 1)).unwrap();
    assert_refused(client, request(), why);
    let refused = client.post_receive(room(client, 1)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("post a receive request: {why}")
    );
    // Each polled completion frees an entry.
    let reply = SendRequest::new(SendOperation::Send, sge(server, b"y"));
    server.post_send(reply).unwrap();
    assert!(received(client).result().is_ok());
    assert_refused(client, request().unsignaled(), why);
    client.post_send(request()).unwrap();
    assert_refused(client, request(), why);
}

#[case]
fn ranges_outside_the_buffer(site: &Site) {
    let queue_pair = site.queue_pair();
    let memory = exposed(&queue_pair, 8);
    for range in [0..9, 9..9, 8..9] {
        let refused = filled(&queue_pair, &[1; 8]).slice(range.clone());
        let refused = refused.unwrap_err();
        assert!(
            refused.to_string().contains("is outside of the memory"),
            "{refused}"
        );
        assert_eq!(*refused.returned, [1; 8]);
        assert!(memory.slice(range).is_err());
    }
    #[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
    let backwards = 5..4;
    assert!(memory.slice(backwards).is_err());
    assert!(memory.slice(8..8).unwrap().is_empty());
    assert!(memory.word(4).is_none() && memory.word(8).is_none());
    let domain = queue_pair.protection_domain();
    assert!(matches!(
        domain.allocate(0),
        Err(Error::InvalidInput { .. })
    ));
    let refused = domain.register(Vec::new()).unwrap_err();
    assert!(refused.returned.is_empty());
    assert_eq!(*domain.register(vec![1, 2, 3]).unwrap(), [1, 2, 3]);
}

/// After a failed completion was polled, posting fails at once.
#[case]
fn requests_after_a_failure(site: &Site) {
    let caps = QpCaps::default();
    let queue_pairs = [(); 2].map(|()| site.queue_pair_with(caps));
    let [client, server] = queue_pairs;
    let pair = site.pair_of(client, server);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    client.post_receive(room(client, 4)).unwrap();
    server.post_receive(room(server, 4)).unwrap();
    pair.disconnect_both();
    for (queue_pair, word) in [(client, 1), (server, 2)] {
        let came = received(queue_pair);
        assert!(came.result().unwrap_err().is_flush(), "{word}");
        assert!(queue_pair.is_broken());
        let why = "the queue pair is in the error state";
        let request = SendRequest::new(SendOperation::Send, SgList::NONE);
        assert_refused(queue_pair, request, why);
        let refused = queue_pair.post_receive(room(queue_pair, 1)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("post a receive request: {why}")
        );
    }
}
