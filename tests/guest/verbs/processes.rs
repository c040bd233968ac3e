//! Forked processes, and threads with other credentials, that use open devices: each
//! test runs in a process of its own.
#![expect(unsafe_code, reason = "forks, and changes one thread's credentials")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::unistd::{ForkResult, fork};
use rdmacm_tests::Site;
use rdmacm_verbs::{CompletionQueue, QueuePair, SendOperation, SendRequest};

use crate::child::{self, NOBODY, ends, site};
use crate::data::{brought, pattern, received, room, roomy, sent, sge};
use crate::freed_memory::FreedBlocks;
use crate::link::Link;
use rdmacm_tests_macros::case;

pub(crate) const TASKS: &[(&str, fn())] = &[
    ("verbs_forked", forked),
    ("verbs_forked_during_commands", forked_during_commands),
    ("verbs_forked_before_a_removal", forked_before_a_removal),
    ("verbs_one_threads_credentials", one_threads_credentials),
    ("verbs_without_memory", without_memory),
];

const LENGTH: usize = 3000;

#[case]
fn a_child_process_sees_a_closed_device(site: &Site) {
    child::run_at("verbs_forked", site);
}

#[case]
fn a_child_process_waits_for_no_thread_of_its_parent(site: &Site) {
    child::run_at("verbs_forked_during_commands", site);
}

#[case(alone)]
fn a_child_process_leaves_the_announced_removal_to_its_parent(site: &Site) {
    child::run_at("verbs_forked_before_a_removal", site);
}

#[case]
fn an_object_that_one_thread_cannot_destroy_is_not_freed_by_another(site: &Site) {
    child::run_at("verbs_one_threads_credentials", site);
}

// It changes the memory limit of the whole guest.
#[case(alone)]
fn a_context_closes_without_memory(site: &Site) {
    child::run_at("verbs_without_memory", site);
}

/// Everything that touches the driver's memory, which a child does not have; then all
/// handles are dropped.
fn use_inherited(queue_pair: QueuePair, queue: &CompletionQueue) {
    let domain = queue_pair.protection_domain();
    assert!(queue_pair.context().is_closed());
    assert!(queue.arm(false).unwrap_err().is_context_closed());
    let message = SendRequest::inline(SendOperation::Send, b"");
    assert!(
        queue_pair
            .post_send(message)
            .unwrap_err()
            .error
            .is_context_closed()
    );
    let refused = queue_pair.post_receive(rdmacm_verbs::SgList::NONE);
    assert!(refused.unwrap_err().error.is_context_closed());
    assert!(domain.allocate(8).unwrap_err().is_context_closed());
    assert!(queue.has_completions() && queue.may_have_completions());
    assert!(queue.poll().unwrap_err().is_context_closed());
    drop(queue_pair);
}

fn forked() {
    let site = site();
    let pair = roomy(&site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    server.post_receive(room(server, LENGTH)).unwrap();
    let queue = server.recv_cq().clone();
    let watch = queue.watch();
    assert!(!watch.may_have_completions());
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            assert!(watch.may_have_completions());
            assert_eq!(format!("{watch:?}"), "CompletionWatch { .. }");
            use_inherited(pair.server.queue_pair, &queue);
            drop(queue);
            std::process::exit(0);
        }
        ForkResult::Parent { child } => assert!(ends(child)),
    }
    let message = sge(client, &pattern(LENGTH, 1));
    let message = SendRequest::new(SendOperation::Send, message);
    client.post_send(message).unwrap();
    assert!(sent(client).result().is_ok());
    assert!(brought(received(server), LENGTH) == pattern(LENGTH, 1));
}

/// The threads that are in a command are not in the child.
fn forked_during_commands() {
    let queue_pair = site().queue_pair();
    let context = queue_pair.context().clone();
    let is_done = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    context.port(1).unwrap();
                }
            });
        }
        let mut queue_pair = Some(queue_pair);
        let all_end = (0..50).all(|_| {
            // SAFETY: the child takes no lock that another thread may hold.
            match unsafe { fork() }.unwrap() {
                ForkResult::Child => {
                    drop(queue_pair.take());
                    context.close();
                    assert!(context.port(1).unwrap_err().is_context_closed());
                    // SAFETY: the child ends at once.
                    unsafe { libc::_exit(0) }
                }
                ForkResult::Parent { child } => ends(child),
            }
        });
        is_done.store(true, Ordering::Relaxed);
        all_end
    });
    assert!(ended);
}

fn forked_before_a_removal() {
    let site = site();
    let link = Link::new(&site);
    let context = link.site(&site).verbs();
    // The kernel removes it after it has announced the removal (`device_del`).
    let directory = link.verbs_node().canonicalize().unwrap();
    // Opens the socket of the announcements, which the child shares.
    context.check_removal();
    // SAFETY: this process has one thread.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            while directory.exists() {
                thread::sleep(Duration::from_millis(1));
            }
            context.check_removal();
            // SAFETY: the child ends at once.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => child,
    };
    thread::scope(|scope| {
        let removing = scope.spawn(|| link.remove_device());
        let has_ended = ends(child);
        context.check_removal();
        let heeded = context.is_closed();
        // Lets the removal finish in any case.
        context.close();
        removing.join().unwrap();
        assert!(has_ended && heeded);
    });
}

/// Changes this thread only: the C library's `setuid` changes all threads.
fn give_up_credentials() {
    let user = NOBODY.as_raw();
    // SAFETY: it changes only the thread's user.
    let outcome = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    assert_eq!(outcome, 0);
}

fn one_threads_credentials() {
    let site = site();
    let freed = FreedBlocks::of_about(2 * LENGTH);
    let pair = roomy(&site);
    let (client, server) = (pair.client.queue_pair, pair.server.queue_pair);
    let context = server.context().clone();
    let mut part = server.protection_domain().allocate(freed.size()).unwrap();
    let rest = part.split_off(LENGTH);
    server.post_receive(part).unwrap();
    let dropping = thread::spawn(move || {
        give_up_credentials();
        drop(server);
    });
    dropping.join().unwrap();
    drop(rest);
    assert_eq!(freed.count(), 0);
    // The queue pair still exists and may write to its memory.
    let message = sge(&client, &pattern(LENGTH, 1));
    let message = SendRequest::new(SendOperation::Send, message);
    client.post_send(message).unwrap();
    drop(sent(&client));
    assert_eq!(freed.count(), 0);
    context.close();
    drop((context, pair.server.id));
    assert_eq!(freed.count(), 1);
}

/// The mappings of the driver's queues, or what has replaced them.
fn mapped(places: &[String]) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let ranges: Vec<_> = maps.lines().filter_map(range).collect();
    let place = |line: &String| range(line).unwrap();
    let is_there = |(start, end): (u64, u64)| ranges.iter().any(|(s, e)| *s <= start && end <= *e);
    places.iter().map(place).all(is_there)
}

fn range(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some((number(start)?, number(end)?))
}

fn without_memory() {
    const MODE: &str = "/proc/sys/vm/overcommit_memory";
    const LIMIT: &str = "/proc/sys/vm/overcommit_kbytes";
    let site = site();
    let queue_pair = site.queue_pair();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let is_drivers = |line: &&str| line.contains("uverbs");
    let places: Vec<_> = maps.lines().filter(is_drivers).map(str::to_owned).collect();
    assert!(places.len() >= 3, "{maps}");
    let before = [MODE, LIMIT].map(|one| fs::read_to_string(one).unwrap());
    fs::write(LIMIT, "1").unwrap();
    // No more memory of the size of a mapping is available.
    fs::write(MODE, "2").unwrap();
    let closed = catch_unwind(AssertUnwindSafe(|| queue_pair.context().close()));
    // Other tests need memory.
    fs::write(MODE, &before[0]).unwrap();
    fs::write(LIMIT, &before[1]).unwrap();
    closed.unwrap();
    assert!(mapped(&places));
    assert!(queue_pair.recv_cq().poll().unwrap_err().is_context_closed());
}
