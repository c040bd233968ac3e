//! The Linux RDMA connection manager in pure Rust.
