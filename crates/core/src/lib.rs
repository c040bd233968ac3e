//! Event channels, ids and every command of the Linux RDMA connection manager, without C.
