//! Forked processes that inherit what a node watches: each test runs in a process of its own.
#![expect(unsafe_code, reason = "forks")]

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike as _;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, alarm, fork, pause};
use rdmacm::{Connector, Listener, Node, RdmaDatagram};
use rdmacm_test_helpers::WatchedThread;
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft};
use rdmacm_tests_macros::case;

use crate::child::{self, ends, site};
use crate::streams::Pair;

pub(crate) const TASKS: &[(&str, fn())] = &[
    ("sleeps_beside_a_child", sleeps_beside_a_child),
    ("a_child_drops_a_stream", a_child_drops_a_stream),
    ("a_child_drops_datagrams", a_child_drops_datagrams),
    ("a_child_waits_on_its_own", a_child_waits_on_its_own),
    (
        "a_child_drops_a_node_of_a_runtime",
        a_child_drops_a_node_of_a_runtime,
    ),
];

#[case]
fn a_node_sleeps_though_a_child_keeps_a_device_open(site: &Site) {
    child::run_at("sleeps_beside_a_child", site);
}

#[case]
fn a_child_leaves_the_streams_of_its_parent_alone(site: &Site) {
    child::run_at("a_child_drops_a_stream", site);
    if site.soft == Soft::Rxe {
        child::run_at("a_child_drops_datagrams", site);
    }
}

#[case]
fn a_child_leaves_the_runtime_of_its_parent_alone(site: &Site) {
    child::run_at("a_child_drops_a_node_of_a_runtime", site);
}

#[case]
fn a_wait_in_a_child_ends_though_a_thread_of_its_parent_waits(site: &Site) {
    child::run_at("a_child_waits_on_its_own", site);
}

/// Runs `work` in a child, which ends then.
fn in_child(work: impl FnOnce()) -> Pid {
    // SAFETY: the other threads of this process are idle, if there are any.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            work();
            // SAFETY: the child ends at once.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => child,
    }
}

fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    [usage.user_time(), usage.system_time()]
        .map(|time| Duration::from_micros(time.num_microseconds().unsigned_abs()))
        .iter()
        .sum()
}

/// The thread that reads the events for all others is not in the child.
fn a_child_waits_on_its_own() {
    let listener = Listener::bind(site().v4(0)).unwrap();
    let stop = listener.stop_handle();
    std::thread::scope(|scope| {
        let (tell, thread) = std::sync::mpsc::channel();
        let listener = &listener;
        scope.spawn(move || {
            tell.send(WatchedThread::current()).unwrap();
            listener.accept(None).unwrap_err()
        });
        thread.recv().unwrap().wait_until_asleep();
        let child = in_child(|| {
            // Ends a child that hangs.
            alarm::set(30);
            listener.accept(SECOND).unwrap_err();
        });
        let ended = waitpid(child, None);
        stop.stop();
        assert_eq!(ended, Ok(WaitStatus::Exited(child, 0)));
    });
}

/// The descriptors of a device that the parent has closed are open in the child, and readable.
fn sleeps_beside_a_child() {
    let site = site();
    let node = Node::open().unwrap();
    let listener = Listener::options()
        .with_node(&node)
        .bind(site.v4(0))
        .unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    let pair = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| connector.connect().unwrap());
        let incoming = listener.accept(PATIENCE).unwrap();
        let server = incoming.accept().unwrap();
        (connecting.join().unwrap(), server)
    });
    let child = in_child(|| {
        loop {
            pause();
        }
    });
    drop(pair);
    // The kernel charges a pause of the machine to the thread that runs.
    let waits = [(); 3].map(|()| {
        let before = processor_time();
        let accepted = listener.accept(SECOND);
        (accepted, processor_time().saturating_sub(before))
    });
    kill(child, Signal::SIGKILL).unwrap();
    waitpid(child, None).unwrap();
    let taken = waits.map(|(accepted, taken)| {
        let error = accepted.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        taken
    });
    assert!(taken.iter().any(|taken| *taken < SECOND / 2), "{taken:?}");
}

/// What the parent's runtime watches belongs to both.
fn a_child_drops_a_node_of_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let node = rdmacm::tokio::Node::open().unwrap();
        let listener = rdmacm::tokio::Listener::options().with_node(&node);
        let listener = listener.bind(site().v4(0)).unwrap();
        let address = listener.local_addr();
        let mut inherited = Some((node, listener));
        let child = in_child(|| drop(inherited.take()));
        assert!(ends(child));
        let (_node, listener) = inherited.unwrap();
        let connecting = std::thread::spawn(move || {
            let connector = Connector::new(address).deadline(PATIENCE);
            connector.connect().unwrap_err()
        });
        let began = Instant::now();
        let incoming = listener.accept(PATIENCE).await.unwrap();
        // A deadline looks for events, too.
        assert!(began.elapsed() < PATIENCE / 2);
        incoming.reject(b"no").unwrap();
        assert!(connecting.join().unwrap().is_rejected());
    });
}

/// Whether there is nothing yet; any other failure is one of the test.
fn would_block<T>(outcome: io::Result<T>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(error) if error.kind() == ErrorKind::WouldBlock => true,
        Err(error) => panic!("{error}"),
    }
}

fn a_child_drops_a_stream() {
    let Pair {
        mut client,
        mut server,
    } = Pair::new(&site());
    server.set_nonblocking(true).unwrap();
    let mut byte = [0];
    assert!(would_block(server.read(&mut byte)));
    let mut inherited = Some(server);
    let child = in_child(|| drop(inherited.take()));
    assert!(ends(child));
    let mut server = inherited.unwrap();
    client.write_all(b"x").unwrap();
    while would_block(server.read(&mut byte)) {
        let mut descriptors = [PollFd::new(server.as_fd(), PollFlags::POLLIN)];
        let timeout = u16::try_from(PATIENCE.as_millis()).unwrap();
        assert_eq!(poll(&mut descriptors, timeout).unwrap(), 1);
    }
    assert_eq!(byte, *b"x");
}

fn a_child_drops_datagrams() {
    let site = site();
    let address = SocketAddr::from((site.v4, 0));
    let mut inherited = Some(RdmaDatagram::bind(address).unwrap());
    let server_address = inherited.as_ref().unwrap().local_addr();
    // Over UDP, as it is the first one.
    let client = RdmaDatagram::bind(address).unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    client.send_to(b"hello", server_address).unwrap();
    let mut bytes = [0; 16];
    let child = in_child(|| {
        let server = inherited.take().unwrap();
        // Twice: what comes over UDP and to the queue pair is taken in turn.
        for _ in 0..2 {
            assert!(server.try_recv_from(&mut bytes).is_err());
        }
    });
    assert!(ends(child));
    let server = inherited.unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let (length, _) = server.recv_from(&mut bytes).unwrap();
    assert_eq!(bytes[..length], *b"hello");
}
