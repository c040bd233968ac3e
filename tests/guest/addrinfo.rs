//! Names and addresses, resolved on a real kernel.

use rdmacm_addrinfo::{AddrInfo, AddrInfoResolver, Hints, Result, Unreachable};
use rdmacm_core::EventChannel;
use rdmacm_tests::{PATIENCE, Site};

pub(crate) mod deadlines;
pub(crate) mod infiniband;
pub(crate) mod link_local;
pub(crate) mod name_server;
pub(crate) mod names;
pub(crate) mod passive;
pub(crate) mod private_etc;
pub(crate) mod qp_types;
pub(crate) mod reachable;
pub(crate) mod resolve_event;
pub(crate) mod sources;
pub(crate) mod unreachable;

/// Hints for reliable connections, with a deadline that a busy machine meets.
fn rc() -> Hints {
    Hints::rc().deadline(PATIENCE)
}

/// Resolves with the site's address ABI.
fn resolve<'name>(
    site: &Site,
    node: impl Into<Option<&'name str>>,
    service: impl Into<Option<&'name str>>,
    hints: &Hints,
) -> Result<Vec<AddrInfo>> {
    let dialect = site.abi;
    let open = move || EventChannel::options().address_abi(dialect).open();
    AddrInfoResolver::new()
        .channels(open)
        .resolve(node, service, hints)
}

/// The only candidate.
#[track_caller]
fn only(found: Result<Vec<AddrInfo>>) -> AddrInfo {
    let mut list = found.unwrap();
    assert_eq!(list.len(), 1, "{list:?}");
    list.remove(0)
}

/// The reason why RDMA does not reach the only candidate.
#[track_caller]
fn refusal(found: Result<Vec<AddrInfo>>) -> Unreachable {
    only(found).route.unwrap_err()
}

/// Checks the step that failed, and a part of the error text.
#[track_caller]
fn assert_explained(unreachable: &Unreachable, step: rdmacm_addrinfo::Step, words: &str) {
    let text = unreachable.to_string();
    assert_eq!(unreachable.step, step, "{text}");
    assert!(text.contains(words), "{text}");
}
