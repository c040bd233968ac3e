//! Marks what is measured in a workload.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::allocations;

/// What a workload has measured of itself, all operations together. The C program prints
/// the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) operations: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) allocations: u64,
    /// Bytes on the heap that were kept for all operations.
    pub(crate) live_bytes: i64,
}

/// Measures the sections of a workload.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    operations: u64,
    time: Duration,
    allocations: u64,
    live_bytes: i64,
}

impl Meter {
    /// Measures a section with this many operations.
    pub(crate) fn section<T>(&mut self, operations: u64, work: impl FnOnce() -> T) -> T {
        let (calls, bytes) = (allocations::calls(), allocations::live_bytes());
        let start = Instant::now();
        let value = measured_section(work);
        self.time += start.elapsed();
        self.allocations += allocations::calls() - calls;
        self.live_bytes += allocations::live_bytes() - bytes;
        self.operations += operations;
        value
    }

    pub(crate) fn measured(&self) -> Measured {
        Measured {
            operations: self.operations,
            nanoseconds: u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX),
            allocations: self.allocations,
            live_bytes: self.live_bytes,
        }
    }
}

/// callgrind counts instructions in functions of this name.
#[inline(never)]
fn measured_section<T>(work: impl FnOnce() -> T) -> T {
    std::hint::black_box(work())
}
