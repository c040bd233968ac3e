//! Looking for services.

use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::ResolveIbService;

use super::{Kernel, Outcome};
use crate::id::State;
use crate::work::{self, Work};

/// What the kernel gives the administrator for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// `ucma_resolve_ib_service` and `rdma_resolve_ib_service`.
pub(super) fn resolve(kernel: &mut Kernel<'_>, request: &ResolveIbService) -> Outcome {
    let id = kernel.machine.find(kernel.file, request.id)?;
    if id.attached.is_none() || id.state != State::AddrBound {
        return Err(Errno::EINVAL);
    }
    id.state = State::AddrInfoQuery;
    let (delay, records) = kernel.subnet.services(&request.service, TIMEOUT);
    let place = (kernel.index, request.id);
    let outcome = work::Outcome::Services(records);
    Work::put_off(kernel.clock, delay, place, id, outcome);
    Ok(())
}
