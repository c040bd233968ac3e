//! Every interface meets its deadline, and an attempt leaks nothing.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdmacm::core::{ConnParam, Error, EventChannel, EventKind, IdHandle, PortSpace};
use rdmacm::{BlockingExecutor, BlockingTask, Cause, Connector, Node, Stage};
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft, expect};
use tokio::time::MissedTickBehavior;

use crate::connector::asynchronous::on_one_thread;
use crate::link::run;
use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

/// Shorter than the kernel's own limits, the least of which is [`TCP_HANDSHAKE`].
const DEADLINE: Duration = Duration::from_secs(4);

/// How long the kernel waits at least for an answer to TCP's first packet and its two repetitions.
const TCP_HANDSHAKE: Duration = Duration::from_secs(7);

/// It is the deadline that has ended the wait, and not the kernel: the machine may be late by 2.5 s.
fn is_on_time(took: Duration) -> bool {
    took >= DEADLINE && took + SECOND / 2 < TCP_HANDSHAKE
}

/// A neighbour with a known link address that does not exist: nothing answers.
pub(crate) fn absent_peer(site: &Site) -> Ipv4Addr {
    static ABSENT: AtomicU8 = AtomicU8::new(0);
    let low = ABSENT.fetch_add(1, Ordering::Relaxed);
    let [first, second, third, _] = site.v4.octets();
    // An address that no other test uses.
    let ip = Ipv4Addr::new(first, second, third, 100 + low % 150);
    run(&format!(
        "ip neigh replace {ip} lladdr 02:00:00:00:00:{low:02x} dev {} nud permanent",
        site.netdev
    ));
    ip
}

/// The number of the kernel's ids for this destination.
fn ids_to(ip: Ipv4Addr) -> usize {
    let shown = Command::new("rdma")
        .args(["resource", "show", "cm_id"])
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let destination = format!("dst-addr {ip}:");
    shown.matches(&destination).count()
}

/// Makes TCP repeat its first packet only twice, so that a handshake fails after
/// [`TCP_HANDSHAKE`]. The default takes 127 s, for which siw's id would outlive the deadline.
pub(crate) fn prepare() -> std::io::Result<()> {
    std::fs::write("/proc/sys/net/ipv4/tcp_syn_retries", "2")
}

/// On rxe nothing is left at once. On siw the TCP handshake goes on in the kernel, and
/// the id is destroyed when it fails. It has begun after `started`.
fn nothing_is_left(site: &Site, ip: Ipv4Addr, started: Instant) {
    if site.soft == Soft::Rxe {
        assert_eq!(ids_to(ip), 0);
        return;
    }
    let left = ids_to(ip);
    let may_have_failed = started.elapsed() >= TCP_HANDSHAKE;
    assert!(
        left == 1 || (left == 0 && may_have_failed),
        "the kernel is still at it, with one id: {left}"
    );
    let until = Instant::now() + PATIENCE;
    while ids_to(ip) != 0 {
        assert!(
            Instant::now() < until,
            "beyond the bound of TCP's handshake"
        );
        // Other tests need the processor to be on time.
        thread::sleep(SECOND / 10);
    }
}

#[case(quiet)]
fn a_neighbour_that_does_not_answer(site: &Site) {
    let to = Connector::new((site.silent, 7)).deadline(DEADLINE);
    let started = Instant::now();
    let error = to.connect_with(QueuePairs::new(site)).unwrap_err();
    assert!(is_on_time(started.elapsed()), "{error}");
    assert_eq!(error.stage(), Stage::ResolveAddress);
    assert!(error.is_timeout(), "{error}");
}

/// With the events API the caller waits in a loop of its own. Only siw's CONNECT
/// blocks, so it runs on a thread.
#[case(quiet)]
fn a_peer_that_does_not_answer_in_events(site: &Site) {
    let ip = absent_peer(site);
    let channel = EventChannel::open().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.resolve_addr(None, (ip, 7), PATIENCE).unwrap();
    expect(&channel, EventKind::AddrResolved);
    id.resolve_route(PATIENCE).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let queue_pair = QueuePairs::new(site).one();
    let started = Instant::now();
    let until = started + DEADLINE;
    let connecting = {
        let (id, queue_pair): (IdHandle, _) = (id.handle(), queue_pair.clone());
        thread::spawn(move || id.with_queue_pair(&queue_pair).connect(ConnParam::new()))
    };
    assert_eq!(
        channel.next_event(until).unwrap_err(),
        Error::DeadlinePassed
    );
    drop(id);
    assert!(is_on_time(started.elapsed()));
    if site.soft == Soft::Rxe {
        connecting.join().unwrap().unwrap();
    }
    nothing_is_left(site, ip, started);
}

#[case(quiet)]
fn a_peer_that_does_not_answer_while_blocking(site: &Site) {
    let ip = absent_peer(site);
    let started = Instant::now();
    let connector = Connector::new((ip, 7)).deadline(DEADLINE);
    let error = connector.connect_with(QueuePairs::new(site)).unwrap_err();
    assert!(is_on_time(started.elapsed()), "{error}");
    assert_eq!(error.stage(), Stage::Connect);
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    assert_eq!(error.device(), Some(site.device));
    nothing_is_left(site, ip, started);
}

#[case(quiet)]
fn a_peer_that_does_not_answer_on_tokio(site: &Site) {
    let ip = absent_peer(site);
    on_one_thread().block_on(async {
        let started = Instant::now();
        let connector = rdmacm::tokio::Connector::new((ip, 7)).deadline(DEADLINE);
        let connecting = connector.connect_with(QueuePairs::new(site));
        // Meanwhile the runtime's only thread runs other tasks.
        let mut ticks = tokio::time::interval(DEADLINE / 10);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticked = 0;
        let ticking = async {
            loop {
                ticks.tick().await;
                ticked += 1;
            }
        };
        let error = tokio::select! {
            connected = connecting => connected.unwrap_err(),
            () = ticking => unreachable!("it ticks for ever"),
        };
        assert!(is_on_time(started.elapsed()), "{error}");
        assert!(ticked >= 5, "{ticked}");
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        nothing_is_left(site, ip, started);
    });
}

/// The first task, siw's CONNECT, takes long; later ones run at once.
#[derive(Debug, Default)]
struct Faster(AtomicBool);

impl BlockingExecutor for Faster {
    fn spawn(&self, task: BlockingTask) {
        let thread = thread::spawn(task);
        if self.0.swap(true, Ordering::Relaxed) {
            thread.join().unwrap();
        }
    }
}

/// The caller then holds the last reference to the queue pair.
#[case(quiet)]
fn a_disconnect_before_the_wait(site: &Site) {
    let ip = absent_peer(site);
    let node = Node::options().executor(Arc::new(Faster::default())).open();
    let node = node.unwrap();
    let started = Instant::now();
    let connector = Connector::new((ip, 7)).with_node(&node).deadline(DEADLINE);
    let error = connector.connect_with(QueuePairs::new(site)).unwrap_err();
    assert!(is_on_time(started.elapsed()), "{error}");
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    nothing_is_left(site, ip, started);
}

/// A peer that sends a request and never completes the handshake.
#[case(quiet, needs(CmResponse))]
fn an_accepted_peer_that_never_establishes(site: &Site) {
    let listener = rdmacm::Listener::bind(site.v4(0)).unwrap();
    let channel = EventChannel::open().unwrap();
    let id = site.routed(&channel, listener.local_addr());
    let queue_pairs = QueuePairs::new(site);
    let queue_pair = queue_pairs.one();
    id.with_queue_pair(&queue_pair)
        .connect(ConnParam::new())
        .unwrap();
    let incoming = listener.accept(PATIENCE).unwrap().deadline(DEADLINE);
    let started = Instant::now();
    let error = incoming.accept_with(queue_pairs).unwrap_err();
    assert!(is_on_time(started.elapsed()), "{error}");
    assert_eq!(error.stage(), Stage::Accept);
    assert!(matches!(error.cause(), Cause::Deadline));
}

/// The reply completes the handshake.
#[case(needs(TcpHandshake))]
fn an_accepted_peer_is_there(site: &Site) {
    let listener = rdmacm::Listener::bind(site.v4(0)).unwrap();
    let channel = EventChannel::open().unwrap();
    let id = site.routed(&channel, listener.local_addr());
    let queue_pairs = QueuePairs::new(site);
    let queue_pair = queue_pairs.one();
    id.with_queue_pair(&queue_pair)
        .connect(ConnParam::new())
        .unwrap();
    let incoming = listener.accept(PATIENCE).unwrap().deadline(DEADLINE);
    drop(incoming.accept_with(queue_pairs).unwrap());
}

/// A peer that does not answer a disconnect. (On siw the kernel closes the connection
/// by itself.)
#[case(quiet)]
fn a_peer_that_does_not_disconnect(site: &Site) {
    let listener = rdmacm::Listener::bind(site.v4(0)).unwrap();
    let channel = EventChannel::open().unwrap();
    let id = site.routed(&channel, listener.local_addr());
    let queue_pairs = QueuePairs::new(site);
    let queue_pair = queue_pairs.one();
    id.with_queue_pair(&queue_pair)
        .connect(ConnParam::new())
        .unwrap();
    let server = thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming = listener.accept(PATIENCE).unwrap();
            incoming.accept_with(queue_pairs.clone()).unwrap()
        });
        let answer = channel.next_event(PATIENCE).unwrap();
        if answer.kind() == EventKind::ConnectResponse {
            id.with_queue_pair(&queue_pair).establish(&answer).unwrap();
        }
        accepting.join().unwrap()
    });
    let started = Instant::now();
    let closed = server.close(DEADLINE);
    if site.soft == Soft::Rxe {
        let error = closed.unwrap_err();
        assert!(is_on_time(started.elapsed()), "{error}");
        assert!(matches!(error.cause(), Cause::Deadline));
        assert_eq!(error.stage(), Stage::Close);
    } else {
        closed.unwrap();
    }
    expect(&channel, EventKind::Disconnected);
}
