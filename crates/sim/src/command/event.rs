//! Reading and writing events.

use std::mem::offset_of;

use nix::errno::Errno;
use rdmacm_abi::{EventNumber, EventParam, EventResponse, WriteCmEvent};
use rdmacm_core::ucma::Call;

use super::{Kernel, Outcome, answer};

/// `ucma_get_event` of a file that does not wait.
pub(super) fn get(kernel: &mut Kernel<'_>, call: &mut Call<'_>) -> Outcome {
    let file = kernel.machine.files.get_mut(&kernel.file);
    let file = file.ok_or(Errno::ENXIO)?;
    // The kernel asks for no more room than programs had before there was ECE.
    let least = offset_of!(EventResponse, reserved);
    if call.response().len() < least {
        return Err(Errno::ENOSPC);
    }
    let queued = file.events.pop_front().ok_or(Errno::EAGAIN)?;
    file.tell();
    if let Some(id) = kernel.machine.ids.get_mut(&queued.id) {
        id.events_reported += 1;
    }
    answer(call, &queued.response, least)
}

/// `ucma_write_cm_event`. Unlike events of the kernel's own, one for an id
/// without a uid is refused.
pub(super) fn write(kernel: &mut Kernel<'_>, request: &WriteCmEvent) -> Outcome {
    if ![EventNumber::USER, EventNumber::INTERNAL].contains(&request.event) {
        return Err(Errno::EINVAL);
    }
    if kernel.machine.find(kernel.file, request.id)?.uid == 0 {
        return Err(Errno::EINVAL);
    }
    let param = EventParam::from_arg(request.param.arg());
    kernel
        .machine
        .post(request.id, request.event, request.status(), &param);
    Ok(())
}
