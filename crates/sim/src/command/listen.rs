//! Listening.

use std::net::{Ipv4Addr, SocketAddrV4};

use nix::errno::Errno;
use rdmacm_abi::Listen;
use rdmacm_core::Transport;

use super::bind::bind_to;
use super::{Kernel, Outcome};
use crate::address::Address;
use crate::host_state::HostState;
use crate::id::{CmObject, State};
use crate::iwarp;

/// The default of `net.rdma_ucm.max_backlog`.
const MAX_BACKLOG: u32 = 1024;

/// `ucma_listen` and `rdma_listen`.
pub(super) fn listen(kernel: &mut Kernel<'_>, request: Listen) -> Outcome {
    let id = kernel.find(request.id)?;
    // The kernel sets it before it looks at the state.
    id.backlog = match request.backlog {
        0 => MAX_BACKLOG,
        backlog => backlog.min(MAX_BACKLOG),
    };
    if id.state != State::AddrBound {
        let any = Address::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        bind_to(kernel.host()?, request.id, any, None)?;
    }
    let host = kernel.host()?;
    check_reused_port(host, request.id)?;
    let id = host.ids.get(&request.id).ok_or(Errno::ENOENT)?;
    let transport = host.transport(id.attached);
    if transport.is_none_or(|transport| transport == Transport::IWarp) {
        iwarp::check_listen(host, id)?;
    }
    let id = kernel.find(request.id)?;
    id.state = State::Listen;
    if id.attached.is_some() {
        id.cm = CmObject::Listener;
    }
    Ok(())
}

/// A listener does not share its port.
fn check_reused_port(host: &mut HostState, number: u32) -> Outcome {
    let id = host.ids.get(&number).ok_or(Errno::ENOENT)?;
    if !id.options.reuse_address {
        return Ok(());
    }
    if let (Some(bound), Some(address)) = (id.bound, id.source) {
        host.check_port(number, bound, &address, false)?;
    }
    if let Some(id) = host.ids.get_mut(&number) {
        id.options.reuse_address = false;
    }
    Ok(())
}
