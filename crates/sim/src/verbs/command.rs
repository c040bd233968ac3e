//! Commands of an open context.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use rdmacm_abi::uverbs::{
    AllocPdResponse, CommandNumber, CreateCompletionChannelResponse, DeallocPd, DeregMr,
    GetContextResponse, PostSend, RegMr, RegMrResponse, siw,
};
use rdmacm_abi::{AccessFlags, QpState, Reserved};
use rdmacm_verbs::Call;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::channel::Channel;
use super::event_stream::EventStream;
use super::format::Format;
use super::memory::{Region, key};
use super::ring::RingMemory;
use super::{OpenContext, QpKey, Verbs, requester};
use crate::sim_state::SimState;

mod completion_queue;
mod query;
mod queue_pair;
mod shared_receive_queue;

/// Which context a command is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextKey {
    pub(super) host: usize,
    pub(super) device: usize,
    pub(super) serial: u64,
}

impl ContextKey {
    pub(super) fn queue_pair(self, number: u32) -> QpKey {
        QpKey {
            host: self.host,
            device: self.device,
            number,
        }
    }
}

/// Executes one command; returns the descriptor that its response names.
pub(super) fn execute(
    state: &mut SimState,
    context: ContextKey,
    call: &mut Call<'_>,
) -> Result<Option<OwnedFd>, Errno> {
    // The kernel disconnects the file of a device that was removed.
    let verbs = state
        .verbs(context.host, context.device)
        .ok_or(Errno::EIO)?;
    let of = context.serial;
    match call.number() {
        CommandNumber::GET_CONTEXT => return report_async_events(verbs, of, call).map(Some),
        CommandNumber::CREATE_COMP_CHANNEL => return create_channel(verbs, of, call).map(Some),
        CommandNumber::QUERY_DEVICE => query::device(state, context, call),
        CommandNumber::QUERY_PORT => query::port(state, context, call),
        CommandNumber::ALLOC_PD => alloc_pd(verbs, of, call),
        CommandNumber::DEALLOC_PD => dealloc_pd(verbs, of, call),
        CommandNumber::REG_MR => reg_mr(verbs, of, call),
        CommandNumber::DEREG_MR => dereg_mr(verbs, of, call),
        CommandNumber::CREATE_CQ => completion_queue::create(verbs, of, call),
        CommandNumber::RESIZE_CQ => completion_queue::resize(verbs, of, call),
        CommandNumber::REQ_NOTIFY_CQ => completion_queue::arm(verbs, of, call),
        CommandNumber::DESTROY_CQ => completion_queue::destroy(verbs, of, call),
        CommandNumber::CREATE_SRQ => shared_receive_queue::create(verbs, of, call),
        CommandNumber::MODIFY_SRQ => shared_receive_queue::modify(verbs, of, call),
        CommandNumber::QUERY_SRQ => shared_receive_queue::query(verbs, of, call),
        CommandNumber::DESTROY_SRQ => shared_receive_queue::destroy(verbs, of, call),
        CommandNumber::CREATE_QP => queue_pair::create(verbs, of, call),
        CommandNumber::MODIFY_QP => queue_pair::modify(state, context, call),
        CommandNumber::QUERY_QP => queue_pair::query(verbs, of, call),
        CommandNumber::DESTROY_QP => queue_pair::destroy(state, context, call),
        CommandNumber::POST_SEND => post_send(state, context, call),
        _ => Err(Errno::EOPNOTSUPP),
    }?;
    Ok(None)
}

/// Whether a command destroys an object.
pub(super) fn destroys(command: CommandNumber) -> bool {
    matches!(
        command,
        CommandNumber::DEALLOC_PD
            | CommandNumber::DEREG_MR
            | CommandNumber::DESTROY_CQ
            | CommandNumber::DESTROY_SRQ
            | CommandNumber::DESTROY_QP
    )
}

/// The request; `EFAULT` if it is shorter than what the kernel copies.
fn read<R: FromBytes>(call: &Call<'_>) -> Result<R, Errno> {
    let read = R::read_from_prefix(call.request());
    read.map(|(request, _)| request).map_err(|_| Errno::EFAULT)
}

/// Writes a response; `ENOSPC` if it does not fit.
fn respond<R: IntoBytes + Immutable>(call: &mut Call<'_>, response: &R) -> Result<(), Errno> {
    let (bytes, buffer) = (response.as_bytes(), call.response());
    let buffer = buffer.get_mut(..bytes.len()).ok_or(Errno::ENOSPC)?;
    buffer.copy_from_slice(bytes);
    Ok(())
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EINVAL as i32))
}

/// The number of a descriptor, for the response that names it.
pub(super) fn number(descriptor: &OwnedFd) -> Result<u32, Errno> {
    u32::try_from(descriptor.as_raw_fd()).map_err(|_| Errno::EBADF)
}

impl Verbs {
    /// Opens a context; returns the memory that the program maps.
    pub(super) fn open(&mut self, serial: u64) -> std::io::Result<Arc<File>> {
        let rings = RingMemory::new()?;
        let memory = File::options()
            .read(true)
            .write(true)
            .open("/proc/self/mem")?;
        let file = Arc::clone(rings.file());
        let context = OpenContext {
            rings,
            memory: Arc::new(memory),
            async_events: None,
        };
        self.contexts.insert(serial, context);
        Ok(file)
    }

    fn context(&mut self, serial: u64) -> Result<&mut OpenContext, Errno> {
        self.contexts.get_mut(&serial).ok_or(Errno::EINVAL)
    }

    /// Checks that a protection domain is this context's.
    fn check_domain(&self, context: u64, domain: u32) -> Result<(), Errno> {
        let is_own = self.domains.get(&domain) == Some(&context);
        is_own.then_some(()).ok_or(Errno::EINVAL)
    }
}

fn report_async_events(
    verbs: &mut Verbs,
    context: u64,
    call: &mut Call<'_>,
) -> Result<OwnedFd, Errno> {
    let format = verbs.format;
    let context = verbs.context(context)?;
    if context.async_events.is_some() {
        return Err(Errno::EINVAL);
    }
    let (events, _, descriptor) = EventStream::new().map_err(|error| errno(&error))?;
    let response = GetContextResponse {
        async_fd: number(&descriptor)?,
        completion_vectors: 1,
    };
    match format {
        Format::Rxe => respond(call, &response)?,
        Format::Siw => respond(
            call,
            &siw::ContextResponse {
                common: response,
                context: siw::Context {
                    device_id: 0,
                    padding: Reserved::ZERO,
                },
            },
        )?,
    }
    context.async_events = Some(events);
    Ok(descriptor)
}

fn create_channel(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<OwnedFd, Errno> {
    verbs.context(context)?;
    verbs.free_closed_channels();
    let (events, id, descriptor) = EventStream::new().map_err(|error| errno(&error))?;
    let fd = number(&descriptor)?;
    respond(call, &CreateCompletionChannelResponse { fd })?;
    verbs.channels.insert(id, Channel { context, events });
    Ok(descriptor)
}

fn alloc_pd(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let handle = verbs.next_handle()?;
    respond(call, &AllocPdResponse { handle })?;
    verbs.domains.insert(handle, context);
    Ok(())
}

fn dealloc_pd(verbs: &mut Verbs, context: u64, call: &Call<'_>) -> Result<(), Errno> {
    let DeallocPd { handle } = read(call)?;
    verbs.check_domain(context, handle)?;
    let mut regions = verbs.regions.values();
    let mut shared = verbs.shared_receive_queues.values();
    let mut queue_pairs = verbs.queue_pairs.values();
    let is_used = regions.any(|one| one.domain == handle)
        || shared.any(|one| one.domain == handle)
        || queue_pairs.any(|one| one.domain == handle);
    if is_used {
        return Err(Errno::EBUSY);
    }
    verbs.domains.remove(&handle);
    Ok(())
}

fn reg_mr(verbs: &mut Verbs, context: u64, call: &mut Call<'_>) -> Result<(), Errno> {
    let request: RegMr = read(call)?;
    // siw takes a part of the key from the program.
    let low = match verbs.format {
        Format::Rxe => 0,
        Format::Siw => read::<siw::RegMr>(call)?.key.key,
    };
    verbs.check_domain(context, request.pd)?;
    let access = request.access;
    let needs_local = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_ATOMIC;
    let is_local = access.contains(AccessFlags::LOCAL_WRITE);
    // `ib_check_mr_access`
    if access.intersects(needs_local) && !is_local {
        return Err(Errno::EINVAL);
    }
    request
        .start
        .checked_add(request.length)
        .ok_or(Errno::EINVAL)?;
    let handle = verbs.next_handle()?;
    let key = key(handle, low);
    let common = RegMrResponse {
        handle,
        lkey: key,
        rkey: key,
    };
    match verbs.format {
        Format::Rxe => respond(call, &common)?,
        Format::Siw => respond(
            call,
            &siw::MrResponse {
                common,
                tag: siw::MrTag {
                    stag: key,
                    padding: Reserved::ZERO,
                },
            },
        )?,
    }
    let region = Region {
        context,
        domain: request.pd,
        device_address: request.device_address,
        start: request.start,
        length: request.length,
        access,
        key,
        is_valid: true,
    };
    verbs.regions.insert(handle, region);
    Ok(())
}

fn dereg_mr(verbs: &mut Verbs, context: u64, call: &Call<'_>) -> Result<(), Errno> {
    let DeregMr { handle } = read(call)?;
    let region = verbs.regions.get(&handle);
    if region.is_none_or(|region| region.context != context) {
        return Err(Errno::EINVAL);
    }
    verbs.regions.remove(&handle);
    Ok(())
}

fn post_send(state: &mut SimState, context: ContextKey, call: &Call<'_>) -> Result<(), Errno> {
    let request: PostSend = read(call)?;
    let key = context.queue_pair(request.handle);
    let queue_pair = state.queue_pair(key).ok_or(Errno::EINVAL)?;
    if queue_pair.context != context.serial {
        return Err(Errno::EINVAL);
    }
    if !matches!(queue_pair.state, QpState::RTS | QpState::ERR) {
        return Err(match queue_pair.format {
            Format::Rxe => Errno::EINVAL,
            Format::Siw => Errno::ENOTCONN,
        });
    }
    requester::ring(state, key);
    Ok(())
}
