//! The Linux RDMA connection manager in pure Rust.
//!
//! This crate gathers the project's parts under one name, so that a program
//! depends on one crate:
//!
//! * [`addrinfo`]: from a name and a service to the addresses, devices and
//!   routes by which RDMA reaches it.
//! * [`core`]: event channels, ids and events, the kernel's commands one by one.
//!
//! ```no_run
//! use rdmacm::addrinfo::{Hints, resolve};
//!
//! for candidate in resolve("storage-7", "7471", &Hints::rc())? {
//!     println!("{candidate}");
//! }
//! # Ok::<(), rdmacm::addrinfo::Error>(())
//! ```

pub use rdmacm_addrinfo as addrinfo;
pub use rdmacm_core as core;

/// The README's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
