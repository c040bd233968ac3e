//! Waiting for what the kernel does in interrupts.
//!
//! # Safety
//! One of the modules with `unsafe`: a system call without a safe wrapper.
#![expect(unsafe_code, reason = "a system call without a safe wrapper")]

/// `MEMBARRIER_CMD_GLOBAL`: returns when each processor has left whatever it did
/// without being interruptible (`synchronize_rcu`), some milliseconds later.
const GLOBAL: libc::c_int = 1;

/// Whether everything that processors did when this was called, and could not be
/// interrupted at, is over.
pub(super) fn wait_for_processors() -> bool {
    let (flags, processor): (libc::c_uint, libc::c_int) = (0, 0);
    // SAFETY: the call takes three numbers and touches no memory.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, flags, processor) };
    result == 0
}
