//! What a process has, before and after.

use std::process::Command;
use std::time::Instant;

use rdmacm_tests::PATIENCE;

use crate::allocation::live_bytes;

/// What is kept for later by allocators, names' caches and the like, in bytes.
const SLACK: isize = 256 * 1024;

/// What this process has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Belongings {
    descriptors: usize,
    /// Of each kind that the kernel counts.
    resources: Vec<(&'static str, usize)>,
    /// Of a device's memory.
    mappings: usize,
    bytes: isize,
}

impl Belongings {
    pub(super) fn now() -> Self {
        let kinds = ["cm_id", "qp", "cq", "pd", "mr", "ctx", "srq"];
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            resources: kinds.map(|kind| (kind, count(kind))).into(),
            mappings: maps.matches("/dev/infiniband/").count(),
            bytes: live_bytes(),
        }
    }

    /// The same, with the memory that is taken once and stays: as much as there is
    /// when the rest is as before.
    pub(super) fn with_what_stays(self) -> Self {
        let bytes = self.left(isize::MAX).bytes;
        Self { bytes, ..self }
    }

    /// It is as before.
    pub(super) fn are_left(&self) {
        self.left(SLACK);
    }

    /// Ends that had to wait for a handshake run on threads of their own: they
    /// are given the time the kernel takes.
    fn left(&self, slack: isize) -> Self {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = Self::now();
            let bytes = now.bytes - self.bytes;
            let same = Self {
                bytes: self.bytes,
                ..now
            };
            if same == *self && bytes < slack {
                return Self {
                    bytes: same.bytes + bytes,
                    ..same
                };
            }
            assert!(
                Instant::now() < until,
                "{self:?}, then {same:?} and {bytes}"
            );
            std::thread::yield_now();
        }
    }
}

/// How many of a kind the kernel has for this process.
fn count(kind: &str) -> usize {
    let shown = Command::new("rdma")
        .args(["resource", "show", kind])
        .output()
        .unwrap();
    let own = format!(" pid {} ", std::process::id());
    let shown = String::from_utf8(shown.stdout).unwrap();
    shown.lines().filter(|line| line.contains(&own)).count()
}
