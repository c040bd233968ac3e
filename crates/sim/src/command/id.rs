//! Making and destroying ids.

use nix::errno::Errno;
use rdmacm_abi::{CreateId, CreateIdResponse, DestroyId, DestroyIdResponse, PortSpace};
use rdmacm_core::ucma::Call;

use super::{Kernel, Outcome, answer};
use crate::id::Id;

/// `ucma_create_id`.
pub(super) fn create(kernel: &mut Kernel<'_>, request: &CreateId, call: &mut Call<'_>) -> Outcome {
    // The queue pair type is the caller's own affair (`ucma_get_qp_type`).
    let known = [
        PortSpace::TCP,
        PortSpace::UDP,
        PortSpace::IPOIB,
        PortSpace::IB,
    ];
    if !known.contains(&request.port_space) {
        return Err(Errno::EINVAL);
    }
    let machine = &mut *kernel.machine;
    // The lowest that is free, from 0.
    let number = (0..u32::MAX)
        .find(|number| !machine.ids.contains_key(number))
        .ok_or(Errno::ENOMEM)?;
    answer(
        call,
        &CreateIdResponse { id: number },
        size_of::<CreateIdResponse>(),
    )?;
    let serial = machine.next_serial();
    let id = Id::new(serial, request.uid, kernel.file, request.port_space);
    machine.ids.insert(number, id);
    Ok(())
}

/// `ucma_destroy_id`.
pub(super) fn destroy(
    kernel: &mut Kernel<'_>,
    request: &DestroyId,
    call: &mut Call<'_>,
) -> Outcome {
    if call.response().len() < size_of::<DestroyIdResponse>() {
        return Err(Errno::ENOSPC);
    }
    kernel.machine.find(kernel.file, request.id)?;
    let events_reported = kernel.machine.destroy(request.id);
    answer(call, &DestroyIdResponse { events_reported }, 0)
}
