//! Marks what is measured in a workload.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

use nix::unistd::{SysconfVar, sysconf};
use rdmacm_init::bench::Measured;

use crate::allocations;

/// Measures the sections of a workload.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    operations: u64,
    time: Duration,
    allocations: u64,
    live_bytes: i64,
    resident_bytes: i64,
}

impl Meter {
    /// Measures a section with this many operations.
    pub(crate) fn section<T>(&mut self, operations: u64, work: impl FnOnce() -> T) -> T {
        let resident = resident_bytes();
        mark_for_strace();
        let (calls, bytes) = (allocations::calls(), allocations::live_bytes());
        let start = Instant::now();
        let value = measured_section(work);
        self.time += start.elapsed();
        mark_for_strace();
        self.allocations += allocations::calls() - calls;
        self.live_bytes += allocations::live_bytes() - bytes;
        self.resident_bytes += resident_bytes() - resident;
        self.operations += operations;
        value
    }

    pub(crate) fn measured(&self) -> Measured {
        Measured {
            operations: self.operations,
            nanoseconds: u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX),
            allocations: self.allocations,
            live_bytes: self.live_bytes,
            resident_bytes: self.resident_bytes,
        }
    }
}

/// How much of the process is in memory, by `/proc/self/statm`; 0 if that cannot be read. Makes the
/// same calls as that of the C programs: a device that has waited for longer takes longer to begin.
fn resident_bytes() -> i64 {
    let mut text = [0; 128];
    let file = File::open("/proc/self/statm");
    let read = file.and_then(|mut file| file.read(&mut text)).unwrap_or(0);
    let text = std::str::from_utf8(&text[..read]).unwrap_or_default();
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<i64>().ok());
    let page_size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    pages.unwrap_or(0) * page_size.unwrap_or(0)
}

/// A system call that nothing else makes: the calls between two of them are the section's.
fn mark_for_strace() {
    std::hint::black_box(parent_id());
}

/// callgrind writes down what it has counted when a function of this name is called.
#[inline(never)]
pub(crate) fn workload_end(measured: &Measured) {
    std::hint::black_box(measured);
}

/// callgrind counts instructions in functions of this name.
#[inline(never)]
fn measured_section<T>(work: impl FnOnce() -> T) -> T {
    let value = work();
    // Keeps `work` from being called last, by a jump out of this function.
    std::hint::black_box(());
    value
}
