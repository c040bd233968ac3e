//! Runs both libraries with the same question while the same daemon answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rdmacm_addrinfo::{Acm, AddrInfo, AddrInfoFlags, AddrInfoResolver, Reason};
use rdmacm_core::{Family, PathData, PortSpace};
use rdmacm_tests::{AcmDaemon, Action, PATIENCE, Site};

use super::C_PROGRAM;
use super::list::{Line, agree, ours, printed};
use super::scripts::{Daemon, Librdmacm, SOURCE_OF_NOBODY, Script};
use crate::command::built;

/// The timeout for ibacm's answer; a script without an answer takes this long.
const SILENCE: Duration = Duration::from_secs(3);

/// librdmacm's output, and how its process ends.
struct Said {
    lists: Vec<Line>,
    end: ExitStatus,
}

/// Runs a script with both libraries and compares the results.
pub(super) fn judge(script: &Script, site: &Site) {
    let actions = Arc::new(Mutex::new(script.actions.clone()));
    let daemon = start(script.daemon, &actions);
    match &script.librdmacm {
        Librdmacm::Agrees => {
            let librdmacm = c_library(script, daemon.as_ref());
            assert!(librdmacm.end.success(), "{}", librdmacm.end);
            let found = resolve(script, daemon.as_ref());
            compare(&librdmacm.lists, &found, script, site);
        }
        Librdmacm::Differs { instead, why } => {
            let librdmacm = c_library(script, daemon.as_ref());
            let found = resolve(script, daemon.as_ref());
            let same = librdmacm.end.success() && agree(&librdmacm.lists, &ours(&found));
            assert!(!same, "librdmacm agrees after all: {why}");
            actions.lock().unwrap().clone_from(instead);
            let librdmacm = c_library(script, daemon.as_ref());
            compare(&librdmacm.lists, &found, script, site);
        }
        Librdmacm::Dies {
            signal,
            instead,
            why,
        } => {
            let librdmacm = c_library(script, daemon.as_ref());
            let found = resolve(script, daemon.as_ref());
            assert_eq!(librdmacm.end.signal(), Some(*signal), "{why}");
            actions.lock().unwrap().clone_from(instead);
            let librdmacm = c_library(script, daemon.as_ref());
            compare(&librdmacm.lists, &found, script, site);
        }
        Librdmacm::Hangs => {
            let daemon = daemon.as_ref().unwrap();
            let mut librdmacm = start_c(script);
            assert_eq!(daemon.requests(1).len(), 1);
            let found = resolve(script, Some(daemon));
            assert_eq!(daemon.requests(2).len(), 2);
            assert!(librdmacm.0.try_wait().unwrap().is_none());
            daemon.hang_up();
            let librdmacm = librdmacm.finish();
            compare(&librdmacm.lists, &found, script, site);
        }
    }
    // All requests are equal.
    let requests = daemon.map_or_else(Vec::new, |daemon| daemon.requests(0));
    assert_eq!(
        requests.is_empty(),
        script.sends_no_request(),
        "{requests:02x?}"
    );
    assert!(
        requests.iter().all(|one| *one == requests[0]),
        "{requests:02x?}"
    );
    if let Some(expected) = &script.expected_request {
        assert_eq!(requests[0][16..], expected[..], "{requests:02x?}");
    }
}

fn start(daemon: Daemon, actions: &Arc<Mutex<Vec<Action>>>) -> Option<AcmDaemon> {
    let rundir = Path::new("/run");
    let actions = Arc::clone(actions);
    let answer = move |_: &[u8]| actions.lock().unwrap().clone();
    match daemon {
        Daemon::Absent => None,
        Daemon::Unix => Some(AcmDaemon::unix(rundir, answer)),
        Daemon::Tcp => Some(AcmDaemon::tcp(rundir, answer)),
    }
}

/// librdmacm's process, killed when dropped.
struct Program(Child);

fn start_c(script: &Script) -> Program {
    let mut program = Command::new(built(C_PROGRAM));
    program.args(script.question.arguments());
    if script.twice {
        program.arg("again");
    }
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    Program(program.spawn().unwrap())
}

impl Program {
    /// Does something that ends at the latest with the process, which is killed after a while.
    fn until_killed<T>(&self, work: impl FnOnce() -> T) -> T {
        let process = Pid::from_raw(self.0.id().try_into().unwrap());
        let (done, is_done) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                if is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    kill(process, Signal::SIGKILL).unwrap();
                }
            });
            // Dropped when the work is done, also if it panics.
            let _done = done;
            work()
        })
    }

    fn finish(mut self) -> Said {
        let mut output = self.0.stdout.take().unwrap();
        let text = self.until_killed(|| std::io::read_to_string(&mut output));
        self.said(&text.unwrap())
    }

    /// The second resolution begins after the daemon has ended the connection of the first.
    fn finish_twice(mut self, is_ended: impl FnOnce()) -> Said {
        let mut output = BufReader::new(self.0.stdout.take().unwrap());
        let mut input = self.0.stdin.take().unwrap();
        let text = self.until_killed(|| {
            let mut text = String::new();
            while output.read_line(&mut text).unwrap() > 1 {}
            is_ended();
            let _ = input.write_all(b"\n");
            output.read_to_string(&mut text).unwrap();
            text
        });
        self.said(&text)
    }

    /// What it has printed, once its output has ended.
    fn said(&mut self, text: &str) -> Said {
        let end = self.0.wait().unwrap();
        // By this test: no script expects that.
        assert_ne!(end.signal(), Some(libc::SIGKILL), "librdmacm hangs");
        Said {
            lists: printed(text),
            end,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended, unless the test fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn c_library(script: &Script, daemon: Option<&AcmDaemon>) -> Said {
    let before = daemon.map_or(0, |daemon| daemon.requests(0).len());
    let program = start_c(script);
    if !script.twice {
        return program.finish();
    }
    program.finish_twice(|| {
        if let Some(daemon) = daemon {
            assert_eq!(daemon.requests(before + 1).len(), before + 1);
        }
    })
}

/// Returns all entries in their order.
fn resolve(script: &Script, daemon: Option<&AcmDaemon>) -> Vec<AddrInfo> {
    let resolver = match script.daemon {
        // Without the option.
        Daemon::Absent => AddrInfoResolver::new(),
        _ => AddrInfoResolver::new().acm(Acm::new().timeout(script.patience(SILENCE))),
    };
    let before = daemon.map_or(0, |daemon| daemon.requests(0).len());
    let mut found = ask(&resolver, script);
    if script.twice {
        if let Some(daemon) = daemon {
            assert_eq!(daemon.requests(before + 1).len(), before + 1);
        }
        found.extend(ask(&resolver, script));
    }
    found
}

fn ask(resolver: &AddrInfoResolver, script: &Script) -> Vec<AddrInfo> {
    let question = &script.question;
    let hints = question.hints().deadline(script.deadline());
    let (node, service) = (question.node.as_deref(), question.service);
    let started = Instant::now();
    let found = resolver.resolve(node, service, &hints);
    assert!(started.elapsed() < PATIENCE);
    found.unwrap()
}

#[track_caller]
fn compare(librdmacm: &[Line], found: &[AddrInfo], script: &Script, site: &Site) {
    // This library's two lists follow one another, as in librdmacm's output.
    let lists = if script.twice { 2 } else { 1 };
    let each = found.len() / lists;
    let lists = found.chunks(each.max(1));
    let flat: Vec<_> = lists.clone().flat_map(ours).collect();
    assert!(
        agree(librdmacm, &flat),
        "C:    {librdmacm:#?}\nours: {flat:#?}"
    );
    for list in lists {
        reached(list, script, site);
    }
}

/// Sorts reachable addresses first, and native addresses, which these devices do not
/// reach, last. A route that the kernel accepts is the route that was given.
fn reached(list: &[AddrInfo], script: &Script, site: &Site) {
    assert!(
        list.is_sorted_by_key(|info| !info.is_reachable()),
        "{list:?}"
    );
    let (native, ip): (Vec<_>, Vec<_>) = list.iter().partition(|info| info.family == Family::Ib);
    for info in native {
        let unreachable = info.route.as_ref().unwrap_err();
        let refused = matches!(
            unreachable.reason,
            Reason::Refused(_) | Reason::OnlyInfiniband
        );
        assert!(refused, "{unreachable}");
    }
    let question = &script.question;
    for info in ip
        .into_iter()
        .filter(|info| info.port_space == PortSpace::TCP)
    {
        let route = info
            .route
            .as_ref()
            .unwrap_or_else(|reason| panic!("{reason}"));
        let given = info
            .paths
            .iter()
            .find(|path| path.flags == PathData::USABLE);
        let taken = route.path_records.first().map(|path| path.record.dgid);
        if question.flags.contains(AddrInfoFlags::NOROUTE) || info.destination.is_none() {
            assert_eq!(taken, None);
        } else if let Some(given) = given.filter(|_| script.name == SOURCE_OF_NOBODY) {
            // It begins at a source that the kernel refuses.
            assert_ne!(taken, Some(given.record.dgid));
        } else if let Some(given) = given {
            assert_eq!(taken, Some(given.record.dgid));
        } else if site.soft == rdmacm_tests::Soft::Rxe {
            assert!(taken.is_some_and(|taken| taken != super::question::FAR));
        }
    }
}
