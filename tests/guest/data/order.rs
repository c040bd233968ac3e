//! The order of completions, and waiting for them.

use std::process::{Child, Command};

use rdmacm_tests::{PATIENCE, Site, Soft};
use rdmacm_verbs::{QueuePair, SendOperation, SendRequest, SgList};

use super::{exposed, next, pattern, polled, received, room, roomy, sent, sge};
use rdmacm_tests_macros::case;

#[case]
fn unsignaled_requests_complete_with_a_signaled_one(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let most = client.caps().max_send_wr.min(32) as usize;
    for round in 0..3 {
        let posted: Vec<_> = (0..most)
            .map(|number| {
                server.post_receive(room(server, 4)).unwrap();
                let request = SendRequest::new(SendOperation::Send, sge(client, &[7; 4]));
                let request = if number + 1 == most {
                    request
                } else {
                    request.unsignaled()
                };
                client.post_send(request).unwrap()
            })
            .collect();
        for work in posted {
            let done = sent(client);
            assert!(done.result().is_ok(), "round {round}");
            assert_eq!((done.work, done.sg_list.len()), (work, 1));
        }
        for _ in 0..most {
            assert!(received(server).result().is_ok());
        }
    }
}

/// siw completes a message long before a read in front of it.
#[case]
fn reads_and_messages_complete_in_order(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let bytes = pattern(1 << 20, 3);
    let memory = exposed(server, bytes.len());
    memory.write(0, &bytes);
    for _ in 0..5 {
        server.post_receive(room(server, 4)).unwrap();
        let read = SendRequest::new(
            SendOperation::Read(memory.remote()),
            room(client, bytes.len()),
        );
        let read = client.post_send(read).unwrap();
        let message = SendRequest::new(SendOperation::Send, sge(client, &[1; 4]));
        let message = client.post_send(message).unwrap();
        let first = sent(client);
        assert_eq!(first.work, read);
        assert_eq!(first.sg_list.into_buffer().unwrap()[..], bytes);
        let second = sent(client);
        assert_eq!(second.work, message);
        assert!(received(server).result().is_ok());
    }
}

#[case]
fn unsignaled_reads_are_done_when_their_buffers_return(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let bytes = pattern(1 << 18, 3);
    let memory = exposed(server, bytes.len());
    memory.write(0, &bytes);
    for _ in 0..5 {
        server.post_receive(room(server, 4)).unwrap();
        for _ in 0..3 {
            let read = SendRequest::new(
                SendOperation::Read(memory.remote()),
                room(client, bytes.len()),
            );
            client.post_send(read.unsignaled()).unwrap();
        }
        let message = SendRequest::new(SendOperation::Send, sge(client, &[1; 4]));
        let message = client.post_send(message).unwrap();
        for _ in 0..3 {
            let read = sent(client);
            assert_eq!(read.sg_list.into_buffer().unwrap()[..], bytes);
        }
        assert_eq!(sent(client).work, message);
        assert!(received(server).result().is_ok());
    }
}

#[case]
fn requests_are_posted_in_batches(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let most = client.caps().max_send_wr.min(server.caps().max_recv_wr);
    let most = u8::try_from(most).unwrap();
    let requests = |signaled: u8| {
        let request = move |number: u8| {
            let request = SendRequest::new(SendOperation::Send, sge(client, &[number]));
            Some(if number < signaled {
                request
            } else {
                request.unsignaled()
            })
        };
        (0..most).map(request).collect::<Vec<_>>()
    };
    assert_eq!(client.post_sends(&mut []).unwrap().len(), 0);
    for _ in 0..most {
        server.post_receive(room(server, 1)).unwrap();
    }
    let mut too_many = requests(most);
    too_many.push(Some(SendRequest::new(SendOperation::Send, SgList::NONE)));
    client.post_sends(&mut too_many).unwrap_err();
    assert!(too_many.iter().all(Option::is_some));
    let refused = client.post_sends(&mut requests(0)).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("needs at least one signalled request")
    );
    let works = client.post_sends(&mut requests(most)).unwrap();
    assert_eq!(works.len(), usize::from(most));
    for (work, number) in works.into_iter().zip(0..) {
        assert_eq!(sent(client).work, work);
        let came = received(server).sg_list.into_buffer().unwrap();
        assert_eq!(*came, [number]);
    }
}

/// Data that was read is sent without polling in between.
#[case]
fn a_fence_waits_for_reads(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let theirs = exposed(server, 1 << 16);
    let ours = exposed(client, 1 << 16);
    for seed in 1..10 {
        let bytes = pattern(theirs.len(), seed);
        theirs.write(0, &bytes);
        server.post_receive(room(server, bytes.len())).unwrap();
        let all = || ours.slice(0..ours.len()).unwrap();
        let read = SendRequest::new(SendOperation::Read(theirs.remote()), all());
        let send = SendRequest::new(SendOperation::Send, all()).fence();
        let works = client.post_sends(&mut [Some(read.fence().unsignaled()), Some(send)]);
        for work in works.unwrap() {
            assert_eq!(sent(client).work, work);
        }
        let came = received(server).sg_list.into_buffer().unwrap();
        assert_eq!(came[..], bytes);
    }
}

#[case]
fn a_solicited_send_notifies(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let queue = server.recv_cq();
    let channel = queue.channel().unwrap();
    for _ in 0..2 {
        server.post_receive(room(server, 4)).unwrap();
    }
    queue.arm(true).unwrap();
    let message = || SendRequest::new(SendOperation::Send, sge(client, &[1; 4]));
    client.post_send(message()).unwrap();
    polled(queue).result().unwrap();
    match site.soft {
        Soft::Rxe => assert_eq!(channel.try_next().unwrap(), None),
        Soft::Siw => assert_eq!(channel.next(PATIENCE).unwrap(), Some(queue.token())),
    }
    queue.arm(true).unwrap();
    client.post_send(message().solicited()).unwrap();
    assert_eq!(channel.next(PATIENCE).unwrap(), Some(queue.token()));
    assert!(queue.poll().unwrap().is_some());
}

#[case]
fn several_threads_wait_at_one_queue(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    for _ in 0..50 {
        for _ in 0..8 {
            server.post_receive(room(server, 4)).unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| received(server).result().unwrap());
            }
            let message = || SendRequest::new(SendOperation::Send, sge(client, &[1; 4]));
            client
                .post_sends(&mut [(); 8].map(|()| Some(message())))
                .unwrap();
            for _ in 0..8 {
                sent(client).result().unwrap();
            }
        });
    }
    assert!(server.recv_cq().poll().unwrap().is_none());
}

#[case]
fn a_ring_wraps_around_many_times(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let [mut ours, mut theirs] = [client, server].map(|one| {
        let rooms = (0..8).map(|_| room(one, 8));
        rooms.collect::<Vec<_>>()
    });
    let (mut next_sent, mut next_came) = (0_u64, 0);
    while next_came < 2000 {
        while let Some(room) = theirs.pop() {
            server.post_receive(room).unwrap();
            let mut buffer = ours.pop().unwrap().into_buffer().unwrap();
            buffer.copy_from_slice(&next_sent.to_ne_bytes());
            next_sent += 1;
            let request = SendRequest::new(SendOperation::Send, buffer);
            client.post_send(request).unwrap();
        }
        let came = next(server.recv_cq());
        let buffer = came.sg_list.into_buffer().unwrap();
        assert_eq!(*buffer, u64::to_ne_bytes(next_came));
        next_came += 1;
        theirs.push(buffer.into());
        let done = client.send_cq().next(PATIENCE).unwrap().unwrap();
        ours.push(done.sg_list);
    }
}

/// Behind a long write, so that the device sends them later, without a doorbell.
#[case]
fn short_messages_from_two_pages_arrive(site: &Site) {
    const PAGE: usize = 4096;
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let memory = exposed(server, 1 << 20);
    let ours = exposed(client, 4 * PAGE);
    let address = usize::try_from(ours.remote().address()).unwrap();
    let page = address.next_multiple_of(PAGE) + PAGE - address;
    ours.write(0, &pattern(ours.len(), 1));
    for before in 1..32 {
        let message = page - before..page - before + 32;
        server.post_receive(room(server, 32)).unwrap();
        let write = SendOperation::Write(memory.remote());
        let write = SendRequest::new(write, room(client, memory.len()));
        let part = ours.slice(message.clone()).unwrap();
        let send = SendRequest::new(SendOperation::Send, part);
        let works = client.post_sends(&mut [Some(write.unsignaled()), Some(send)]);
        let came = received(server).sg_list.into_buffer().unwrap();
        assert_eq!(*came, pattern(ours.len(), 1)[message], "{before}");
        for work in works.unwrap() {
            let done = sent(client);
            assert!(done.work == work && done.result().is_ok());
        }
    }
}

/// More bytes than siw sends in the posting thread: it leaves the rest to a kernel
/// thread, which may run before the poster if the processors are busy.
#[case(alone)]
fn many_short_messages_arrive(site: &Site) {
    let pair = roomy(site);
    let _others = Others::new();
    short_messages(&pair.client.queue_pair, &pair.server.queue_pair);
}

/// Processes that keep the processors busy.
struct Others([Child; 4]);

impl Others {
    fn new() -> Self {
        let busy = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
        };
        Self([(); 4].map(|()| busy().unwrap()))
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

fn short_messages(client: &QueuePair, server: &QueuePair) {
    const BATCH: usize = 25;
    let [ours, theirs] = [client, server].map(|one| exposed(one, BATCH));
    for batch in 0..120 {
        let bytes = pattern(BATCH, batch);
        ours.write(0, &bytes);
        for at in 0..BATCH {
            let part = theirs.slice(at..at + 1).unwrap();
            server.post_receive(part).unwrap();
        }
        let message = |at| SendRequest::new(SendOperation::Send, ours.slice(at..at + 1).unwrap());
        client
            .post_sends(&mut std::array::from_fn::<_, BATCH, _>(|at| {
                Some(message(at))
            }))
            .unwrap();
        for _ in 0..BATCH {
            sent(client).result().unwrap();
            received(server).result().unwrap();
        }
        let mut came = [0; BATCH];
        theirs.read(0, &mut came);
        assert_eq!(came[..], bytes, "{batch}");
    }
}
