//! Names and services to RDMA addresses, sources and routes.
