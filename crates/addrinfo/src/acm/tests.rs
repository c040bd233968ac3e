//! Questions to daemons of every sort.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket,
};
use tempfile::TempDir;

use super::daemon::{AcmDaemon, Action};
use super::testing::{header, ip, path, reply};
use super::{Acm, Failure, Limit, LimitEnd, Reply, Request};

mod fuzz;

fn rundir() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn question(host: u8) -> Request<'static> {
    Request {
        source: None,
        destination: ([10, 1, 0, host], 7471).into(),
        paths: &[],
        no_delay: false,
    }
}

/// The caller's deadline ends it.
fn within(duration: Duration) -> Limit {
    let end = LimitEnd {
        until: Instant::now() + duration,
        is_full_timeout: false,
    };
    Limit {
        end: end.into(),
        ..Limit::new(duration, None)
    }
}

fn minute() -> Limit {
    within(Duration::from_secs(60))
}

/// Long enough to ask, even if the machine pauses.
const SOON: Duration = Duration::from_secs(2);

fn soon() -> Limit {
    within(SOON)
}

fn ask(acm: &Acm) -> Result<Reply, Failure> {
    acm.ask(&question(7), &minute())
}

/// The daemon is remembered to be absent. Extends that beyond any pause of the machine, and returns
/// until when.
fn remember_for_an_hour(acm: &Acm) -> Option<Instant> {
    let mut known = acm.daemon.known();
    assert!(known.absent_until.is_some());
    known.absent_until = Some(Instant::now() + Duration::from_secs(3600));
    known.absent_until
}

/// One path, and where it leads.
fn answer(destination: u8) -> Vec<u8> {
    reply(&[path(0x2b, destination), ip(1, &[10, 1, 0, 3])])
}

#[track_caller]
fn leads_to(answer: &Result<Reply, Failure>, destination: u8) {
    let reply = answer.as_ref().unwrap();
    assert_eq!(reply.paths.len(), 1);
    assert_eq!(reply.paths[0].record.dgid.0, [destination; 16]);
    assert_eq!(reply.source, Some([10, 1, 0, 3].into()));
}

/// Does the first of these about the first request, and so on; silent after.
fn script(acts: Vec<Vec<Action>>) -> impl FnMut(&[u8]) -> Vec<Action> + Send + 'static {
    let mut acts = acts.into_iter();
    move |_| acts.next().unwrap_or_default()
}

#[test]
fn one_connection_serves_questions_one_after_another() {
    type Start = fn(&Path, Vec<Vec<Action>>) -> AcmDaemon;
    let unix: Start = |rundir, acts| AcmDaemon::unix(rundir, script(acts));
    let tcp: Start = |rundir, acts| AcmDaemon::tcp(rundir, script(acts));
    for start in [unix, tcp] {
        let rundir = rundir();
        let acts = [1, 2].map(|destination| vec![Action::Send(answer(destination))]);
        let daemon = start(rundir.path(), acts.into());
        let acm = Acm::with_rundir(rundir.path());
        leads_to(&ask(&acm), 1);
        leads_to(&ask(&acm.clone()), 2);
        assert_eq!(daemon.connections(), 1);
        let request = question(7).to_bytes();
        assert_eq!(daemon.requests(2), [request.clone(), request]);
    }
}

/// The daemon of these tests and the guest suite's.
#[test]
fn an_answered_request_is_received() {
    let rundir = rundir();
    let daemon = AcmDaemon::unix(rundir.path(), |_| vec![Action::Send(answer(1))]);
    let acm = Acm::with_rundir(rundir.path());
    for asked in 1..=5000 {
        leads_to(&ask(&acm), 1);
        assert_eq!(daemon.requests(0).len(), asked);
    }
}

#[test]
fn a_reply_may_come_in_pieces() {
    let rundir = rundir();
    let pieces = |size| {
        let reply = answer(1);
        let pieces = reply.chunks(size).map(<[u8]>::to_vec);
        pieces.map(Action::Send).collect()
    };
    let acts = [1, 5, 16, 17, 88, 100].map(pieces).to_vec();
    let count = acts.len();
    let _daemon = AcmDaemon::unix(rundir.path(), script(acts));
    let acm = Acm::with_rundir(rundir.path());
    for _ in 0..count {
        leads_to(&ask(&acm), 1);
    }
}

#[test]
fn absence_is_remembered_for_a_while() {
    let rundir = rundir();
    let acm = Acm::with_rundir(rundir.path());
    assert_eq!(ask(&acm), Err(Failure::Absent(Errno::ENOENT)));
    let _daemon = AcmDaemon::unix(rundir.path(), |_| vec![Action::Send(answer(1))]);
    let until = remember_for_an_hour(&acm);
    assert_eq!(ask(&acm), Err(Failure::Skipped));
    // Otherwise it would never be asked again by who asks often.
    assert_eq!(acm.daemon.known().absent_until, until);
    acm.daemon.known().absent_until = Some(Instant::now());
    leads_to(&ask(&acm), 1);
}

#[test]
fn a_socket_without_a_listener_counts_as_absent() {
    let rundir = rundir();
    let listener = std::os::unix::net::UnixListener::bind(rundir.path().join("ibacm.sock"));
    drop(listener.unwrap());
    let acm = Acm::with_rundir(rundir.path());
    assert_eq!(ask(&acm), Err(Failure::Absent(Errno::ECONNREFUSED)));
}

#[test]
fn nothing_is_known_of_an_absent_one() {
    let acm = Acm::with_rundir("/nonexistent");
    assert_eq!(ask(&acm), Err(Failure::Absent(Errno::ENOENT)));
}

#[test]
fn silence_ends_with_the_callers_time() {
    let rundir = rundir();
    let half = answer(1)[..20].to_vec();
    let acts = vec![
        vec![],
        vec![Action::Send(half)],
        vec![Action::Send(answer(1))],
    ];
    let daemon = AcmDaemon::unix(rundir.path(), script(acts));
    let acm = Acm::with_rundir(rundir.path());
    for asked in 1..=2 {
        let started = Instant::now();
        let silent = acm.ask(&question(7), &soon());
        assert_eq!(silent, Err(Failure::Silent));
        assert!(started.elapsed() >= SOON);
        assert_eq!(daemon.requests(asked).len(), asked);
    }
    // An answer to an earlier question could still come over those.
    leads_to(&ask(&acm), 1);
    assert_eq!(daemon.connections(), 3);
    let past = within(Duration::ZERO);
    assert_eq!(acm.ask(&question(7), &past), Err(Failure::Silent));
}

#[test]
fn silence_beyond_patience_is_remembered() {
    let rundir = rundir();
    let daemon = AcmDaemon::unix(rundir.path(), script(vec![]));
    let acm = Acm::with_rundir(rundir.path()).timeout(SOON);
    let silent = acm.ask(&question(7), &acm.limit(None));
    assert_eq!(silent, Err(Failure::Silent));
    remember_for_an_hour(&acm);
    assert_eq!(ask(&acm), Err(Failure::Skipped));
    assert_eq!(daemon.requests(1).len(), 1);
    assert_eq!(daemon.connections(), 1);
}

#[test]
fn half_of_the_callers_time_is_the_most() {
    let acm = Acm::new();
    let now = Instant::now();
    let second = Duration::from_secs(1);
    let limit = acm.limit(Some(now + second)).end();
    assert!(!limit.is_full_timeout && limit.until < now + second);
    for deadline in [None, Some(now + 60 * second)] {
        let limit = acm.limit(deadline).end();
        assert!(limit.is_full_timeout && limit.until >= now + 2 * second);
        assert!(limit.until < now + 30 * second);
    }
    // No time at all is none.
    assert!(acm.limit(Some(now)).until() <= Instant::now());
    let limit = acm.timeout(Duration::MAX).limit(None).end();
    assert!(limit.is_full_timeout && limit.until > now + 1000 * second);
}

#[test]
fn a_queue_that_is_full_is_silence() {
    let rundir = rundir();
    let address = UnixAddr::new(&rundir.path().join("ibacm.sock")).unwrap();
    let make = |flags| socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
    let listener = make(SockFlag::empty());
    bind(std::os::fd::AsRawFd::as_raw_fd(&listener), &address).unwrap();
    listen(&listener, Backlog::new(0).unwrap()).unwrap();
    let mut waiting = Vec::new();
    loop {
        let next = make(SockFlag::SOCK_NONBLOCK);
        let queued = connect(std::os::fd::AsRawFd::as_raw_fd(&next), &address);
        waiting.push(next);
        if queued.is_err() {
            break;
        }
    }
    let silent = Acm::with_rundir(rundir.path()).ask(&question(7), &soon());
    assert_eq!(silent, Err(Failure::Silent));
}

#[test]
fn a_daemon_that_came_again_is_asked_again() {
    let rundir = rundir();
    let acm = Acm::with_rundir(rundir.path());
    for destination in [1, 2, 3] {
        let _daemon = AcmDaemon::unix(rundir.path(), move |_| {
            vec![Action::Send(answer(destination))]
        });
        leads_to(&ask(&acm), destination);
    }
}

#[test]
fn a_kept_connection_that_ends_is_tried_once_more() {
    let rundir = rundir();
    let acts = vec![
        vec![Action::Send(answer(1))],
        vec![Action::Close],
        vec![Action::Send(answer(2))],
    ];
    let daemon = AcmDaemon::unix(rundir.path(), script(acts));
    let acm = Acm::with_rundir(rundir.path());
    leads_to(&ask(&acm), 1);
    leads_to(&ask(&acm), 2);
    assert_eq!(daemon.requests(3).len(), 3);
    assert_eq!(daemon.connections(), 2);
}

#[test]
fn a_new_connection_that_ends_is_no_answer() {
    let rundir = rundir();
    let daemon = AcmDaemon::unix(rundir.path(), |_| vec![Action::Close]);
    let acm = Acm::with_rundir(rundir.path());
    for asked in 1..=3 {
        let ended = ask(&acm);
        assert_eq!(ended, Err(Failure::Ended { unanswered: true }));
        assert_eq!(daemon.requests(asked).len(), asked);
    }
}

#[test]
fn an_answer_that_breaks_off_is_no_answer() {
    let rundir = rundir();
    let cut = |length: usize| vec![Action::Send(answer(1)[..length].to_vec()), Action::Close];
    let lengths = [1, 15, 16, 17, 100];
    let _daemon = AcmDaemon::unix(rundir.path(), script(lengths.map(cut).to_vec()));
    let acm = Acm::with_rundir(rundir.path());
    for _ in lengths {
        let ended = ask(&acm);
        assert_eq!(ended, Err(Failure::Ended { unanswered: false }));
    }
}

#[test]
fn nonsense_costs_the_daemon_its_connection() {
    let rundir = rundir();
    let mut wrong_version = answer(1);
    wrong_version[0] = 2;
    let mut wrong_operation = answer(1);
    wrong_operation[1] = 0x82;
    let mut wrong_transaction = answer(1);
    wrong_transaction[8] = 1;
    let nonsense = [
        wrong_version,
        wrong_operation,
        wrong_transaction,
        header(15),
        header(17),
        header(16 + 9 * 72),
        vec![0xff; 592],
        vec![0; 592],
    ];
    let count = nonsense.len();
    let mut acts: Vec<_> = nonsense.map(|bytes| vec![Action::Send(bytes)]).into();
    acts.push(vec![Action::Send(answer(1))]);
    let daemon = AcmDaemon::unix(rundir.path(), script(acts));
    let acm = Acm::with_rundir(rundir.path());
    for number in 1..=count {
        let answer = ask(&acm);
        assert!(matches!(answer, Err(Failure::Nonsense(_))), "{answer:?}");
        assert_eq!(daemon.connections(), number);
    }
    leads_to(&ask(&acm), 1);
    assert_eq!(daemon.connections(), count + 1);
}

#[test]
fn a_refusal_keeps_the_connection() {
    let rundir = rundir();
    let refusal = |status| {
        let mut refusal = header(16);
        refusal[2] = status;
        vec![Action::Send(refusal)]
    };
    let daemon = AcmDaemon::unix(rundir.path(), script([3, 6, 255].map(refusal).to_vec()));
    let acm = Acm::with_rundir(rundir.path());
    for _ in 0..3 {
        assert_eq!(ask(&acm), Ok(Reply::default()));
    }
    assert_eq!(daemon.connections(), 1);
}

#[test]
fn what_comes_unasked_is_no_answer() {
    let rundir = rundir();
    let twice = [answer(1), answer(2)].concat();
    let acts = vec![
        vec![Action::Send(twice)],
        vec![Action::Send(answer(3)), Action::Send(answer(4))],
        vec![Action::Send(answer(5))],
    ];
    let daemon = AcmDaemon::unix(rundir.path(), script(acts));
    let acm = Acm::with_rundir(rundir.path());
    assert!(matches!(ask(&acm), Err(Failure::Nonsense(_))));
    leads_to(&ask(&acm), 3);
    assert_eq!(daemon.requests(2).len(), 2);
    leads_to(&ask(&acm), 5);
    assert_eq!(daemon.connections(), 3);
}

#[test]
fn a_question_that_waits_holds_up_no_other() {
    let rundir = rundir();
    let silent = question(66).to_bytes();
    let daemon = AcmDaemon::unix(rundir.path(), move |request| {
        if request == silent {
            Vec::new()
        } else {
            vec![Action::Send(answer(1))]
        }
    });
    let acm = Acm::with_rundir(rundir.path());
    thread::scope(|scope| {
        let waits = scope.spawn(|| acm.ask(&question(66), &minute()));
        assert_eq!(daemon.requests(1).len(), 1);
        leads_to(&ask(&acm), 1);
        leads_to(&ask(&acm), 1);
        assert!(!waits.is_finished());
        daemon.hang_up();
        let ended = waits.join().unwrap();
        assert_eq!(ended, Err(Failure::Ended { unanswered: true }));
    });
}
