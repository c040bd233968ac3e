//! Handshakes of iWARP, which last until the peer answers.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::unistd::Pid;
use rdmacm::core::{CommandNumber, EventChannel};
use rdmacm::{BlockingExecutor, BlockingTask, Cause, Connector, Listener, Node, Stage};
use rdmacm_tests::{Counting, PATIENCE, SECOND, Site, Soft, free_port};

use crate::child;
use crate::connector::deadlines::absent_peer;
use crate::packet_delay::LostPackets;
use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

pub(crate) const TASKS: &[(&str, fn())] = &[("connects_among_signals", connects_among_signals)];

/// Counts the tasks.
#[derive(Debug, Default)]
pub(crate) struct Counted(pub(crate) AtomicUsize);

impl BlockingExecutor for Counted {
    fn spawn(&self, task: BlockingTask) {
        self.0.fetch_add(1, Ordering::AcqRel);
        thread::spawn(task);
    }
}

/// Drops the first attempt while the kernel still runs its CONNECT.
#[case(quiet)]
fn a_connect_beyond_the_limit_waits(site: &Site) {
    let nobody: Ipv4Addr = absent_peer(site);
    let listener = Listener::bind(site.v4(0)).unwrap();
    let offload = Arc::new(Counted::default());
    let node = Node::options().executor(offload.clone()).max_handshakes(1);
    let node = node.open().unwrap();
    let queue_pairs = QueuePairs::new(site);
    // On a busy machine, an attempt may end before it begins its handshake.
    let begins_a_handshake = |_| {
        let asking = Connector::new((nobody, 7)).with_node(&node);
        let asking = asking.deadline(SECOND);
        let error = asking.connect_with(queue_pairs.clone()).unwrap_err();
        assert!(error.is_timeout(), "{error}");
        error.stage() == Stage::Connect && matches!(error.cause(), Cause::Deadline)
    };
    assert!((0..10).any(begins_a_handshake), "no attempt began one");
    let connector = || Connector::new(listener.local_addr()).with_node(&node);
    thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming = listener.accept(PATIENCE).unwrap();
            incoming.accept_with(queue_pairs.clone()).unwrap()
        });
        if site.soft == Soft::Siw {
            let before = offload.0.load(Ordering::Acquire);
            // Sooner than the kernel gives up the handshake.
            let hasty = connector().deadline(3 * SECOND);
            let error = hasty.connect_with(queue_pairs.clone()).unwrap_err();
            assert!(
                matches!(error.cause(), Cause::TooManyHandshakes(1)),
                "{error}"
            );
            assert_eq!(error.stage(), Stage::Connect);
            assert!(error.is_timeout());
            assert_eq!(offload.0.load(Ordering::Acquire), before, "a thread for it");
        }
        let patient = connector().deadline(PATIENCE);
        let connected = patient.connect_with(queue_pairs.clone()).unwrap();
        drop((accepting.join().unwrap(), connected));
    });
}

/// After two of TCP's retries.
#[case(quiet, needs(TcpHandshake))]
fn an_unanswered_handshake_is_cancelled(site: &Site) {
    let connector = Connector::new((absent_peer(site), 7)).deadline(PATIENCE);
    let error = connector.connect_with(QueuePairs::new(site)).unwrap_err();
    assert_eq!(error.stage(), Stage::Connect);
    assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT), "{error}");
    assert!(error.is_unreachable() && error.is_timeout(), "{error}");
    assert!(!error.is_closed() && !error.is_rejected(), "{error}");
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
}

#[case(alone)]
fn a_handshake_interrupted_by_a_signal_continues(site: &Site) {
    child::run_at("connects_among_signals", site);
}

/// Runs tasks on threads that receive signals, as those of a thread pool do.
#[derive(Debug)]
struct Interruptible;

impl BlockingExecutor for Interruptible {
    fn spawn(&self, task: BlockingTask) {
        thread::spawn(move || {
            SigSet::from(Signal::SIGUSR1).thread_unblock().unwrap();
            task();
        });
    }
}

extern "C" fn nothing(_: i32) {}

/// In a child. TCP's requests are lost while CONNECT is interrupted: if CONNECT is
/// interrupted once the connection is established, siw closes the listener.
fn connects_among_signals() {
    let site = child::site();
    let interrupted = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::empty(),
        SigSet::empty(),
    );
    #[expect(unsafe_code, reason = "a handler is what is tried")]
    // SAFETY: the handler does nothing.
    unsafe {
        sigaction(Signal::SIGUSR1, &interrupted).unwrap();
    }
    // Only connecting threads receive the signal.
    SigSet::from(Signal::SIGUSR1).thread_block().unwrap();
    let listener = Listener::bind(site.v4(free_port())).unwrap();
    let to = listener.local_addr();
    let lost = LostPackets::requests(&to.port().to_string());
    let device = Arc::new(Counting::new());
    let channel = EventChannel::options().ucma(device.clone());
    let node = Node::options().channel(channel);
    let node = node.executor(Arc::new(Interruptible)).open().unwrap();
    let queue_pairs = QueuePairs::new(&site);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming = listener.accept(PATIENCE).unwrap();
            incoming.accept_with(queue_pairs.clone()).unwrap()
        });
        // Until a CONNECT has returned, which only a signal causes so early.
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) && device.of(CommandNumber::CONNECT) == 0 {
                kill(Pid::this(), Signal::SIGUSR1).unwrap();
                thread::yield_now();
            }
            drop(lost);
        });
        let connector = Connector::new(to).with_node(&node).deadline(PATIENCE);
        let connected = connector.connect_with(queue_pairs.clone());
        over.store(true, Ordering::Release);
        drop((connected.unwrap(), accepting.join().unwrap()));
    });
    let commands = device.of(CommandNumber::CONNECT);
    let expected = if site.soft == Soft::Siw { 2 } else { 1 };
    assert!(commands >= expected, "{commands}");
}
