//! Reading and writing events.

use std::mem::offset_of;

use nix::errno::Errno;
use rdmacm_abi::{EventNumber, EventParam, EventResponse, WriteCmEvent};
use rdmacm_core::ucma::Call;

use super::{Kernel, Outcome, respond};
use crate::host_state::EventDetails;

/// `ucma_get_event` of a file that does not block.
pub(super) fn get(kernel: &mut Kernel<'_>, call: &mut Call<'_>) -> Outcome {
    let file = kernel.file;
    let host = kernel.host()?;
    let queue = host.files.get_mut(&file).ok_or(Errno::ENXIO)?;
    // The size of the response before it had ECE.
    let minimum = offset_of!(EventResponse, reserved);
    if call.response().len() < minimum {
        return Err(Errno::ENOSPC);
    }
    let queued = queue.events.pop_front().ok_or(Errno::EAGAIN)?;
    queue.update_readiness();
    if let Some(id) = host.ids.get_mut(&queued.id) {
        id.events_reported += 1;
        id.backlog += u32::from(queued.child.is_some());
    }
    let group = queued.group.and_then(|group| host.groups.get_mut(&group));
    if let Some(group) = group {
        group.events_reported += 1;
    }
    respond(call, &queued.response, minimum)
}

/// `ucma_write_cm_event`. Unlike events of the kernel's own, one for an id without a
/// uid is refused.
pub(super) fn write(kernel: &mut Kernel<'_>, request: &WriteCmEvent) -> Outcome {
    if ![EventNumber::USER, EventNumber::INTERNAL].contains(&request.event) {
        return Err(Errno::EINVAL);
    }
    if kernel.find(request.id)?.uid == 0 {
        return Err(Errno::EINVAL);
    }
    let details = EventDetails {
        param: Some(Box::new(EventParam::from_arg(request.param.arg()))),
        ..EventDetails::with_status(request.status())
    };
    kernel.host()?.post(request.id, request.event, details);
    Ok(())
}
