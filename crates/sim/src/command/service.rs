//! Resolving services.

use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::ResolveIbService;
use rdmacm_core::Transport;

use super::{Kernel, Outcome};
use crate::id::State;
use crate::timer::{Outcome as Resolution, Timer};

/// How long the kernel waits for the subnet administrator.
const TIMEOUT: Duration = Duration::from_secs(2);

/// `ucma_resolve_ib_service` and `rdma_resolve_ib_service`.
pub(super) fn resolve(kernel: &mut Kernel<'_>, request: &ResolveIbService) -> Outcome {
    let id = kernel.find(request.id)?;
    let (attached, serial) = (id.attached, id.serial);
    if attached.is_none() || id.state != State::AddrBound {
        return Err(Errno::EINVAL);
    }
    if kernel.host()?.transport(attached) != Some(Transport::InfiniBand) {
        return Err(Errno::EOPNOTSUPP);
    }
    kernel.find(request.id)?.state = State::AddrInfoQuery;
    let (delay, records) = kernel.state.subnet.services(&request.service, TIMEOUT);
    let key = kernel.key(request.id, serial);
    Timer::resolve(
        &mut kernel.state.clock,
        delay,
        key,
        Resolution::Services(records),
    );
    Ok(())
}
