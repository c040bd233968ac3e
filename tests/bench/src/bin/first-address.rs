//! Resolves one numeric address and ends: what a program pays from its start to its first
//! answer.
//!
//! callgrind measures the whole process. It has the entry of the command `rdmacm`, and is
//! built with the same settings: like any program, and statically with
//! `RUSTFLAGS=-Ctarget-feature=+crt-static` and `--target x86_64-unknown-linux-gnu`.
#![cfg_attr(target_env = "gnu", no_main)]

use rdmacm_addrinfo::{AddrInfo, Hints, resolve};

#[cfg(target_env = "gnu")]
#[path = "../../../../crates/cli/src/entry.rs"]
mod entry;

#[cfg(not(target_env = "gnu"))]
fn main() -> std::process::ExitCode {
    run().into()
}

/// Resolves the argument, and returns the exit code.
fn run() -> u8 {
    let mut arguments = std::env::args().skip(1);
    let Some(node) = arguments.next() else {
        return 2;
    };
    match resolve(&*node, "7471", &Hints::rc()) {
        Ok(found) if found.iter().any(AddrInfo::is_reachable) => 0,
        _ => 1,
    }
}
