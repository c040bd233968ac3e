//! The resources of a process, to compare before and after a test.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Once;
use std::thread;
use std::time::Instant;

use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;

use crate::allocation::live_bytes;
use crate::connector::asynchronous::on_threads;

/// The bytes that allocators, name caches and the like may keep.
const SLACK: isize = 256 * 1024;

/// The resources of this process.
#[derive(Debug)]
pub(crate) struct Belongings {
    /// The number of each kind: descriptors, kernel objects, and mappings of device
    /// memory.
    counts: BTreeMap<String, usize>,
    bytes: isize,
}

impl Belongings {
    /// Those of a process that has had a runtime: tokio keeps a pair of sockets for signals from the
    /// first one on.
    pub(crate) fn now() -> Self {
        static FIRST_RUNTIME: Once = Once::new();
        FIRST_RUNTIME.call_once(|| drop(on_threads()));
        let mut counts = BTreeMap::new();
        for kind in ["cm_id", "qp", "cq", "pd", "mr", "ctx", "srq"] {
            counts.insert(kind.to_owned(), objects(kind));
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mappings = maps.matches("/dev/infiniband/").count();
        counts.insert("mapping".to_owned(), mappings);
        for kind in descriptors() {
            *counts.entry(kind).or_default() += 1;
        }
        Self {
            counts,
            bytes: live_bytes(),
        }
    }

    /// The resources once a first run has left no more than this: memory that is
    /// allocated once is kept, and threads of earlier tests have ended.
    pub(crate) fn with_what_stays(self) -> Self {
        self.left(isize::MAX)
    }

    /// Checks that there are no more than these.
    pub(crate) fn are_left(&self) {
        self.left(SLACK);
    }

    /// Destructions that wait for a handshake run on threads of their own: this waits
    /// as long as the kernel's timeout.
    fn left(&self, slack: isize) -> Self {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = Self::now();
            if now.is_no_more_than(self, slack) {
                return now;
            }
            assert!(Instant::now() < until, "{self:?}, then {now:?}");
            thread::yield_now();
        }
    }

    fn is_no_more_than(&self, before: &Self, slack: isize) -> bool {
        let had = |kind: &String| before.counts.get(kind).copied().unwrap_or(0);
        let fits = |(kind, count): (&String, &usize)| *count <= had(kind);
        self.counts.iter().all(fits) && self.bytes - before.bytes < slack
    }
}

/// The target of each of this process's descriptors, without its number. A descriptor
/// that is closed meanwhile is left out.
fn descriptors() -> impl Iterator<Item = String> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let kinds = descriptors.filter_map(|one| std::fs::read_link(one.unwrap().path()).ok());
    kinds.map(|kind| {
        let kind = kind.to_string_lossy().into_owned();
        match kind.split_once(":[") {
            Some((kind, _number)) if kind != "anon_inode" => kind.to_owned(),
            _ => kind,
        }
    })
}

/// The number of the kernel's objects of a kind, whoever made them: it names the thread that did,
/// and none after that thread has ended.
fn objects(kind: &str) -> usize {
    let arguments = ["resource", "show", kind];
    let shown = Command::new("rdma").args(arguments).output().unwrap();
    assert!(shown.status.success(), "rdma {arguments:?}: {shown:?}");
    String::from_utf8(shown.stdout).unwrap().lines().count()
}

/// Also those that a thread has made which has ended since.
#[case(alone)]
fn objects_of_other_threads_are_counted(site: &Site) {
    let both = || {
        let (channel, id) = site.id();
        // The kernel lists the ids of a device.
        id.bind(site.v4(0)).unwrap();
        (site.queue_pair(), id, channel)
    };
    let until = Instant::now() + PATIENCE;
    loop {
        let before = Belongings::now();
        let made = thread::scope(|scope| scope.spawn(both).join().unwrap());
        let now = Belongings::now();
        let has_more = |kind: &&str| now.counts[*kind] > before.counts[*kind];
        let mut kinds = ["cm_id", "qp", "cq", "pd", "ctx"].iter();
        let are_counted = kinds.all(has_more);
        drop(made);
        if are_counted {
            assert!(!now.is_no_more_than(&before, isize::MAX));
            return before.are_left();
        }
        // What earlier tests left to the kernel's timeouts may have gone meanwhile.
        assert!(Instant::now() < until, "{before:?}, then {now:?}");
    }
}
