//! Both libraries, asked the same while the same daemon answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdmacm_addrinfo::{Acm, AddrInfo, AddrInfoFlags, Directory, Reason};
use rdmacm_core::{Family, PathData, PortSpace};
use rdmacm_tests::{AcmDaemon, Action, PATIENCE, Site};

use super::C_PROGRAM;
use super::list::{Line, agree, ours, printed};
use super::scripts::{Daemon, Script, Theirs};
use crate::command::built;

/// What ibacm is waited for: a script in which it is silent takes that long.
const SILENCE: Duration = Duration::from_secs(3);

/// What librdmacm's side says, and how it ends.
struct Said {
    lists: Vec<Line>,
    end: ExitStatus,
}

/// Plays a script to both and compares.
pub(super) fn judge(script: &Script, site: &Site) {
    let actions = Arc::new(Mutex::new(script.actions.clone()));
    let daemon = start(script.daemon, &actions);
    match &script.theirs {
        Theirs::Agrees => {
            let theirs = c_library(script, daemon.as_ref());
            assert!(theirs.end.success(), "{}", theirs.end);
            let found = resolve(script, daemon.as_ref());
            compare(&theirs.lists, &found, script, site);
        }
        Theirs::Differs { instead, why } => {
            let theirs = c_library(script, daemon.as_ref());
            let found = resolve(script, daemon.as_ref());
            let same = theirs.end.success() && agree(&theirs.lists, &ours(&found));
            assert!(!same, "librdmacm agrees after all: {why}");
            actions.lock().unwrap().clone_from(instead);
            let theirs = c_library(script, daemon.as_ref());
            compare(&theirs.lists, &found, script, site);
        }
        Theirs::Dies {
            signal,
            instead,
            why,
        } => {
            let theirs = c_library(script, daemon.as_ref());
            let found = resolve(script, daemon.as_ref());
            assert_eq!(theirs.end.signal(), Some(*signal), "{why}");
            actions.lock().unwrap().clone_from(instead);
            let theirs = c_library(script, daemon.as_ref());
            compare(&theirs.lists, &found, script, site);
        }
        Theirs::Hangs => {
            let daemon = daemon.as_ref().unwrap();
            let mut theirs = start_c(script);
            assert_eq!(daemon.requests(1).len(), 1);
            let found = resolve(script, Some(daemon));
            assert_eq!(daemon.requests(2).len(), 2);
            assert!(theirs.try_wait().unwrap().is_none());
            daemon.hang_up();
            let theirs = finish(theirs);
            compare(&theirs.lists, &found, script, site);
        }
    }
    // Whoever asked asked the same.
    let heard = daemon.map_or_else(Vec::new, |daemon| daemon.requests(0));
    assert_eq!(heard.is_empty(), script.is_unasked(), "{heard:02x?}");
    assert!(heard.iter().all(|one| *one == heard[0]), "{heard:02x?}");
    if let Some(expected) = &script.asked {
        assert_eq!(heard[0][16..], expected[..], "{heard:02x?}");
    }
}

fn start(daemon: Daemon, actions: &Arc<Mutex<Vec<Action>>>) -> Option<AcmDaemon> {
    let rundir = Path::new("/run");
    let actions = Arc::clone(actions);
    let play = move |_: &[u8]| actions.lock().unwrap().clone();
    match daemon {
        Daemon::Absent => None,
        Daemon::Unix => Some(AcmDaemon::unix(rundir, play)),
        Daemon::Tcp => Some(AcmDaemon::tcp(rundir, play)),
    }
}

fn start_c(script: &Script) -> Child {
    let mut program = Command::new(built(C_PROGRAM));
    program.args(script.question.arguments());
    if script.twice {
        program.arg("again");
    }
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    program.spawn().unwrap()
}

fn finish(mut program: Child) -> Said {
    let mut text = String::new();
    let mut output = program.stdout.take().unwrap();
    output.read_to_string(&mut text).unwrap();
    Said {
        lists: printed(&text),
        end: program.wait().unwrap(),
    }
}

/// A second resolution begins after the daemon has ended the connection.
fn c_library(script: &Script, daemon: Option<&AcmDaemon>) -> Said {
    let before = daemon.map_or(0, |daemon| daemon.requests(0).len());
    let mut program = start_c(script);
    if !script.twice {
        return finish(program);
    }
    let mut output = BufReader::new(program.stdout.take().unwrap());
    let mut text = String::new();
    while output.read_line(&mut text).unwrap() > 1 {}
    if let Some(daemon) = daemon {
        assert_eq!(daemon.requests(before + 1).len(), before + 1);
    }
    let _ = program.stdin.take().unwrap().write_all(b"\n");
    output.read_to_string(&mut text).unwrap();
    Said {
        lists: printed(&text),
        end: program.wait().unwrap(),
    }
}

/// All that is found, in the order it is found in.
fn resolve(script: &Script, daemon: Option<&AcmDaemon>) -> Vec<AddrInfo> {
    let directory = match script.daemon {
        // As it is by itself.
        Daemon::Absent => Directory::new(),
        _ => Directory::new().acm(Acm::new().timeout(script.patience(SILENCE))),
    };
    let before = daemon.map_or(0, |daemon| daemon.requests(0).len());
    let mut found = ask(&directory, script);
    if script.twice {
        if let Some(daemon) = daemon {
            assert_eq!(daemon.requests(before + 1).len(), before + 1);
        }
        found.extend(ask(&directory, script));
    }
    found
}

fn ask(directory: &Directory, script: &Script) -> Vec<AddrInfo> {
    let question = &script.question;
    let hints = question.hints().deadline(script.deadline());
    let (node, service) = (question.node.as_deref(), question.service);
    let started = Instant::now();
    let found = directory.resolve(node, service, &hints);
    assert!(started.elapsed() < PATIENCE);
    found.unwrap()
}

#[track_caller]
fn compare(theirs: &[Line], found: &[AddrInfo], script: &Script, site: &Site) {
    // Our two lists are one after the other, as librdmacm's.
    let lists = if script.twice { 2 } else { 1 };
    let each = found.len() / lists;
    let lists = found.chunks(each.max(1));
    let flat: Vec<_> = lists.clone().flat_map(ours).collect();
    assert!(agree(theirs, &flat), "C:    {theirs:#?}\nours: {flat:#?}");
    for list in lists {
        reached(list, script, site);
    }
}

/// What the kernel reaches comes first; native addresses it does not reach on
/// these devices; and a route that it takes is the one that it was given.
fn reached(list: &[AddrInfo], script: &Script, site: &Site) {
    assert!(
        list.is_sorted_by_key(|info| !info.is_reachable()),
        "{list:?}"
    );
    let (native, ip): (Vec<_>, Vec<_>) = list.iter().partition(|info| info.family == Family::Ib);
    for info in native {
        let unreachable = info.reach.as_ref().unwrap_err();
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
            .reach
            .as_ref()
            .unwrap_or_else(|reason| panic!("{reason}"));
        let given = info
            .route
            .iter()
            .find(|path| path.flags == PathData::USABLE);
        let taken = route.path_records.first().map(|path| path.record.dgid);
        if question.flags.contains(AddrInfoFlags::NOROUTE) || info.destination.is_none() {
            assert_eq!(taken, None);
        } else if let Some(given) = given {
            assert_eq!(taken, Some(given.record.dgid));
        } else if site.soft == rdmacm_tests::Soft::Rxe {
            assert!(taken.is_some_and(|taken| taken != super::question::FAR));
        }
    }
}
