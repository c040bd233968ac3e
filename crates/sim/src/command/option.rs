//! Setting options.

use nix::errno::Errno;
use rdmacm_abi::{EventNumber, IbOption, IdOption, OptionLevel, PathRecordData, QpType, SetOption};
use rdmacm_core::ucma::{Attachment, Call};
use zerocopy::FromBytes;

use super::{Kernel, Outcome};
use crate::host_state::EventDetails;
use crate::id::{Id, State};

/// `ucma_set_option`.
pub(super) fn set(kernel: &mut Kernel<'_>, request: &SetOption, call: &Call<'_>) -> Outcome {
    let id = kernel.find(request.id)?;
    let value = match call.attachment() {
        Attachment::OptionValue(value) => value,
        _ => &[],
    };
    match request.level {
        OptionLevel::ID => set_id_option(id, IdOption::new(request.name), value),
        OptionLevel::IB if request.name == IbOption::PATH.number() => {
            set_path(kernel, request.id, value)
        }
        _ => Err(Errno::ENOSYS),
    }
}

/// `ucma_set_option_id`.
fn set_id_option(id: &mut Id, option: IdOption, value: &[u8]) -> Outcome {
    match option {
        IdOption::TOS => {
            id.options.tos = Some(byte(value)?);
            Ok(())
        }
        IdOption::REUSEADDR => set_reuse_address(id, boolean(value)?),
        IdOption::AFONLY => set_af_only(id, boolean(value)?),
        IdOption::ACK_TIMEOUT => set_ack_timeout(id, byte(value)?),
        _ => Err(Errno::ENOSYS),
    }
}

fn byte(value: &[u8]) -> Result<u8, Errno> {
    match value {
        [byte] => Ok(*byte),
        _ => Err(Errno::EINVAL),
    }
}

fn boolean(value: &[u8]) -> Result<bool, Errno> {
    let bytes = <[u8; size_of::<i32>()]>::try_from(value).map_err(|_| Errno::EINVAL)?;
    Ok(bytes != [0; size_of::<i32>()])
}

/// `rdma_set_reuseaddr`.
fn set_reuse_address(id: &mut Id, is_reused: bool) -> Outcome {
    if id.state == State::Idle || is_reused && id.state != State::Listen {
        id.options.reuse_address = is_reused;
        return Ok(());
    }
    Err(Errno::EINVAL)
}

/// `rdma_set_afonly`.
fn set_af_only(id: &mut Id, af_only: bool) -> Outcome {
    if ![State::Idle, State::AddrBound].contains(&id.state) {
        return Err(Errno::EINVAL);
    }
    id.options.af_only = af_only;
    id.options.is_af_only_set = true;
    Ok(())
}

/// `rdma_set_ack_timeout`.
fn set_ack_timeout(id: &mut Id, timeout: u8) -> Outcome {
    if ![QpType::RC, QpType::XRC_INI].contains(&id.qp_type) {
        return Err(Errno::EINVAL);
    }
    // The kernel keeps five bits of it in what it sends.
    id.options.ack_timeout = Some(timeout);
    Ok(())
}

/// `ucma_set_ib_path` and `rdma_set_ib_path`: the first path that is usable, instead
/// of asking the subnet administrator.
fn set_path(kernel: &mut Kernel<'_>, number: u32, value: &[u8]) -> Outcome {
    let paths = <[PathRecordData]>::ref_from_bytes(value).map_err(|_| Errno::EINVAL)?;
    let usable = |path: &&PathRecordData| path.flags() == PathRecordData::USABLE;
    let path = paths.iter().find(usable).ok_or(Errno::EINVAL)?;
    let id = kernel.find_attached(number)?;
    if id.state != State::AddrResolved {
        return Err(Errno::EINVAL);
    }
    id.state = State::RouteResolved;
    id.path = Some(path.record);
    let event = EventNumber::ROUTE_RESOLVED;
    kernel.host()?.post(number, event, EventDetails::NONE);
    Ok(())
}
