//! Setting options.

use nix::errno::Errno;
use rdmacm_abi::{EventNumber, EventParam, IbOption, OptionLevel, PathRecordData, SetOption};
use rdmacm_core::ucma::{Attachment, Call};
use zerocopy::FromBytes;

use super::{Kernel, Outcome};
use crate::id::State;

/// `ucma_set_option`, of which only the path is known here.
pub(super) fn set(kernel: &mut Kernel<'_>, request: &SetOption, call: &Call<'_>) -> Outcome {
    kernel.machine.find(kernel.file, request.id)?;
    let value = match call.attachment() {
        Attachment::OptionValue(value) => value,
        _ => &[],
    };
    match (request.level, request.name) {
        (OptionLevel::IB, name) if name == IbOption::PATH.number() => {
            set_path(kernel, request.id, value)
        }
        _ => Err(Errno::ENOSYS),
    }
}

/// `ucma_set_ib_path` and `rdma_set_ib_path`: the first path that is usable, in
/// place of asking the administrator.
fn set_path(kernel: &mut Kernel<'_>, number: u32, value: &[u8]) -> Outcome {
    let paths = <[PathRecordData]>::ref_from_bytes(value).map_err(|_| Errno::EINVAL)?;
    let usable = |path: &&PathRecordData| path.flags() == PathRecordData::USABLE;
    let path = paths.iter().find(usable).ok_or(Errno::EINVAL)?;
    let id = kernel.machine.find_attached(kernel.file, number)?;
    if id.state != State::AddrResolved {
        return Err(Errno::EINVAL);
    }
    id.state = State::RouteResolved;
    id.path = Some(path.record);
    let event = EventNumber::ROUTE_RESOLVED;
    kernel.machine.post(number, event, 0, &EventParam::ZERO);
    Ok(())
}
