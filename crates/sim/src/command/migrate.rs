//! Moving ids from file to file.

use std::os::fd::AsRawFd;

use nix::errno::Errno;
use rdmacm_abi::{MigrateId, MigrateIdResponse};
use rdmacm_core::ucma::{Attachment, Call};

use super::{Kernel, Outcome, respond};

/// `ucma_migrate_id`, written to the new file. A file is found by its descriptor, as
/// in the kernel; ids move between the files of one host.
pub(super) fn migrate(
    kernel: &mut Kernel<'_>,
    request: &MigrateId,
    call: &mut Call<'_>,
) -> Outcome {
    let Attachment::OldChannel(old) = call.attachment() else {
        return Err(Errno::ENOENT);
    };
    let descriptor = old.readiness().as_raw_fd();
    let file = kernel.file;
    let host = kernel.host()?;
    let old = host
        .files
        .iter()
        .find(|(_, file)| file.descriptor() == descriptor)
        .map(|(serial, _)| *serial)
        .ok_or(Errno::EINVAL)?;
    let id = host.find(old, request.id)?;
    id.file = file;
    let events_reported = id.events_reported;
    let old = host.files.get_mut(&old).ok_or(Errno::ENOENT)?;
    let moved = old.remove(|event| event.id == request.id);
    let new = host.files.get_mut(&file).ok_or(Errno::ENOENT)?;
    new.events.extend(moved);
    new.update_readiness();
    respond(call, &MigrateIdResponse { events_reported }, 0)
}
