//! Endpoints, the counterpart of `rdma_create_ep`.

use std::io;
use std::thread;

use rdmacm::addrinfo::{AddrInfo, AddrInfoFlags, Hints, resolve};
use rdmacm::core::{ConnParam, EventKind, QpType};
use rdmacm::{Cause, CmConnection, Endpoint, ListeningEndpoint, Stage, tokio as awaited};
use rdmacm_core::AccessFlags;
use rdmacm_tests::{PATIENCE, Site, Soft, free_port};
use rdmacm_verbs::{Buffer, QpOptions, QueuePair, SrqOptions};

use crate::connector::asynchronous::on_one_thread;
use crate::data::polled;
use rdmacm_tests_macros::case;

pub(crate) mod completions;

fn options() -> QpOptions {
    QueuePair::options(QpType::RC).with_completion_channels()
}

fn info(site: &Site, port: u16, flags: AddrInfoFlags) -> AddrInfo {
    let hints = Hints::rc().flags(flags);
    let found = resolve(&*site.v4.to_string(), &*port.to_string(), &hints).unwrap();
    found.into_iter().next().unwrap()
}

/// Hints to listen, and to connect.
fn infos(site: &Site) -> [AddrInfo; 2] {
    let port = free_port();
    [AddrInfoFlags::PASSIVE, AddrInfoFlags::empty()].map(|flags| info(site, port, flags))
}

fn listening(site: &Site, options: &QpOptions) -> (ListeningEndpoint, AddrInfo) {
    let [passive, active] = infos(site);
    let listening = ListeningEndpoint::bind(&passive, options).unwrap();
    assert_eq!(Some(listening.local_addr()), passive.source);
    (listening, active)
}

type Connected = CmConnection<QueuePair>;
type Awaited = awaited::CmConnection<QueuePair>;

/// Both sides, each with all receive requests posted before it is connected.
fn pair(site: &Site, options: &QpOptions) -> (Connected, Connected) {
    let (listening, active) = listening(site, options);
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let endpoint = Endpoint::new(&active, options).unwrap();
            for room in room(endpoint.queue_pair()) {
                endpoint.post_receive(room).unwrap();
            }
            endpoint.connect(ConnParam::new()).unwrap()
        });
        let endpoint = listening.accept(PATIENCE).unwrap();
        for room in room(endpoint.queue_pair()) {
            endpoint.post_receive(room).unwrap();
        }
        let server = endpoint.accept(ConnParam::new()).unwrap();
        (client.join().unwrap(), server)
    })
}

/// Memory for all receive requests, 16 bytes each; none with a shared queue.
fn room(queue_pair: &QueuePair) -> Vec<Buffer> {
    let messages = queue_pair.caps().max_recv_wr as usize;
    if queue_pair.shared_receive_queue().is_some() {
        return Vec::new();
    }
    let memory = queue_pair.protection_domain().allocate(16 * messages);
    memory.unwrap().into_chunks(16)
}

fn exchange(from: &Connected, to: &Connected) {
    let mut message = from.queue_pair().protection_domain().allocate(16).unwrap();
    message.copy_from_slice(b"sixteen letters!");
    let work = from.post_send(message).unwrap();
    let sent = from.next_sent(PATIENCE).unwrap();
    assert_eq!(sent.work, work);
    sent.result().unwrap();
    let received = to.next_received(PATIENCE).unwrap();
    assert_eq!(received.result().unwrap().bytes, 16);
    let buffer = received.sg_list.into_buffer().unwrap();
    assert_eq!(*buffer, *b"sixteen letters!");
    to.post_receive(buffer).unwrap();
}

#[case]
fn both_sides_exchange_messages(site: &Site) {
    let (client, server) = pair(site, &options());
    for _ in 0..5 {
        exchange(&client, &server);
        exchange(&server, &client);
    }
    thread::scope(|scope| {
        scope.spawn(|| client.close(PATIENCE).unwrap());
        let ended = server.closed(PATIENCE).unwrap();
        assert_eq!(ended.kind(), EventKind::Disconnected);
    });
}

/// Like [`exchange`], on tokio.
async fn awaited_pair(site: &Site, options: &QpOptions) -> (Awaited, Awaited) {
    let [passive, active] = infos(site);
    let listening = awaited::ListeningEndpoint::bind(&passive, options).unwrap();
    let connecting = async {
        let endpoint = awaited::Endpoint::new(&active, options);
        let endpoint = endpoint.await.unwrap();
        for room in room(endpoint.queue_pair()) {
            endpoint.post_receive(room).unwrap();
        }
        endpoint.connect(ConnParam::new()).await.unwrap()
    };
    let accepting = async {
        let endpoint = listening.accept(PATIENCE).await.unwrap();
        for room in room(endpoint.queue_pair()) {
            endpoint.post_receive(room).unwrap();
        }
        endpoint.accept(ConnParam::new()).await.unwrap()
    };
    tokio::join!(connecting, accepting)
}

#[case]
fn both_sides_exchange_messages_on_tokio(site: &Site) {
    on_one_thread().block_on(async {
        let (client, server) = awaited_pair(site, &options()).await;
        let message = client.queue_pair().protection_domain().allocate(3).unwrap();
        let work = client.post_send(message).unwrap();
        let received = server.next_received(PATIENCE).await.unwrap();
        assert_eq!(received.result().unwrap().bytes, 3);
        let sent = client.next_sent(PATIENCE).await.unwrap();
        assert_eq!(sent.work, work);
        sent.result().unwrap();
        let (closed, ended) = tokio::join!(client.close(PATIENCE), server.closed(PATIENCE));
        closed.unwrap();
        ended.unwrap();
    });
}

/// Both queue pairs in one domain with one completion queue.
#[case]
fn a_shared_protection_domain_and_queues_are_used(site: &Site) {
    let context = site.verbs();
    let domain = context.create_protection_domain().unwrap();
    let queue = context.create_completion_queue(64).unwrap();
    let options = QueuePair::options(QpType::RC)
        .protection_domain(&domain)
        .send_cq(&queue)
        .recv_cq(&queue);
    let (client, server) = pair(site, &options);
    client.post_send(domain.allocate(5).unwrap()).unwrap();
    let done = [(); 2].map(|()| polled(&queue));
    assert!(done.iter().all(|one| one.result().is_ok()), "{done:?}");
    drop((client, server));
}

/// The server receives from a shared queue, and the client's parameters show that.
#[case]
fn a_shared_receive_queue_is_posted_to(site: &Site) {
    let context = site.verbs();
    let domain = context.create_protection_domain().unwrap();
    let shared = SrqOptions {
        max_wr: 8,
        max_sge: 1,
    }
    .create(&domain)
    .unwrap();
    let sharing = options().protection_domain(&domain);
    let sharing = sharing.shared_receive_queue(&shared);
    let (client, server) = pair(site, &sharing);
    let reported = client.peer().is_some_and(|peer| peer.srq);
    assert_eq!(reported, site.soft == Soft::Rxe);
    let work = server.post_receive(domain.allocate(8).unwrap()).unwrap();
    client.post_send(domain.allocate(6).unwrap()).unwrap();
    let received = server.next_received(PATIENCE).unwrap();
    assert_eq!(received.work, work);
    assert_eq!(received.result().unwrap().bytes, 6);
}

#[case]
fn memory_is_read_and_written(site: &Site) {
    let (client, server) = pair(site, &options());
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    let domain = server.queue_pair().protection_domain();
    let exposed = domain.expose(64, access).unwrap();
    let mut memory = client
        .queue_pair()
        .protection_domain()
        .allocate(64)
        .unwrap();
    memory.fill(3);
    client.post_write(memory, exposed.remote()).unwrap();
    let done = client.next_sent(PATIENCE).unwrap();
    let mut memory = done.sg_list.into_buffer().unwrap();
    memory.fill(0);
    client.post_read(memory, exposed.remote()).unwrap();
    let done = client.next_sent(PATIENCE).unwrap();
    assert_eq!(*done.sg_list.into_buffer().unwrap(), [3; 64]);
}

fn invalid(error: &rdmacm::Error) -> &io::Error {
    assert_eq!(error.stage(), Stage::QueuePair);
    match error.cause() {
        Cause::QueuePair(error) if error.kind() == io::ErrorKind::InvalidInput => error,
        other => panic!("{other:?}"),
    }
}

#[case]
fn objects_of_another_device_are_refused(site: &Site) {
    let (_listening, active) = listening(site, &options());
    let other = [Site::rxe, Site::siw]
        .map(|other| other(site.abi))
        .into_iter()
        .find(|other| other.device != site.device)
        .unwrap();
    let domain = other.verbs().create_protection_domain().unwrap();
    let options = options().protection_domain(&domain);
    let error = Endpoint::new(&active, &options).unwrap_err();
    assert!(invalid(&error).to_string().contains("does not lead there"));
}

/// An address to connect to has a source as well.
#[case]
fn a_result_to_connect_to_is_not_listened_on(site: &Site) {
    let (_listening, active) = listening(site, &options());
    let error = ListeningEndpoint::bind(&active, &options()).unwrap_err();
    assert_eq!(error.stage(), Stage::Listen);
    assert!(error.to_string().contains("is passive"), "{error}");
}

#[case]
fn a_request_is_refused(site: &Site) {
    let (listening, active) = listening(site, &options());
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let endpoint = Endpoint::new(&active, &options()).unwrap();
            let param = ConnParam::new().private_data(b"please").unwrap();
            endpoint.connect(param).unwrap_err()
        });
        let request = listening.accept(PATIENCE).unwrap();
        assert!(request.request().private_data().starts_with(b"please"));
        request.reject(b"no").unwrap();
        let error = asking.join().unwrap();
        assert!(error.is_rejected(), "{error}");
        assert!(error.private_data().starts_with(b"no"));
    });
}

#[case]
fn datagrams_are_refused(site: &Site) {
    let mut passive = info(site, free_port(), AddrInfoFlags::PASSIVE);
    passive.qp_type = QpType::UD;
    let error = ListeningEndpoint::bind(&passive, &options()).unwrap_err();
    assert!(invalid(&error).to_string().contains("reliable connections"));
    let active = info(site, free_port(), AddrInfoFlags::empty());
    passive.destination = active.destination;
    let error = Endpoint::new(&passive, &options()).unwrap_err();
    invalid(&error);
}
