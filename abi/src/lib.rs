//! The Linux RDMA connection manager's user ABI: every ucma command, struct and number.
