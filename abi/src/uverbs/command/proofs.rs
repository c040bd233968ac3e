//! What each command makes the kernel do with user memory.
//!
//! # Safety
//!
//! Read from `drivers/infiniband/core/uverbs_main.c` and `uverbs_cmd.c` of
//! Linux 6.1 and 7.3. Common to all of them, whatever the driver:
//!
//! * `ib_uverbs_write` takes the written length from the header and refuses
//!   any other; after the header it copies the command's structure, and gives
//!   the driver what follows it: nothing, but for the two requests that
//!   say what their driver takes from there.
//! * A command with a response takes its address from the first 8 bytes of
//!   the request. The kernel's own answer and the driver's after it are
//!   written to that address, and together never exceed the size in the
//!   header, which is `size_of::<Response>()`: both copies are bounded by what
//!   is left of it (`uverbs_response`, `ib_udata::outlen`).
#![expect(unsafe_code, reason = "the implementers of `Command` carry its proof")]

use core::mem::offset_of;

use super::super::{
    AllocPd, AllocPdResponse, AttachMulticast, Command, CommandNumber, CreateAh,
    CreateCompletionChannel, CreateCompletionChannelResponse, CreateCq, CreateQp, CreateSrq,
    DeallocPd, DeregMr, DestroyAh, DestroyCq, DestroyCqResponse, DestroyQp, DestroyQpResponse,
    DestroySrq, DestroySrqResponse, DetachMulticast, GetContext, GetContextResponse, ModifyQp,
    ModifySrq, PostSend, PostSendResponse, QueryDevice, QueryDeviceResponse, QueryPort,
    QueryPortResponse, QueryQp, QueryQpResponse, QuerySrq, QuerySrqResponse, RegMr, RegMrResponse,
    ReqNotifyCq, ReregMr, ReregMrResponse, ResizeCq, Rxe, Siw, rxe, siw,
};
use crate::{NoResponse, Pointer};

/// The commands that write nothing.
macro_rules! without_response {
    ($($request:ident = $number:ident;)+) => {$(
        // SAFETY:
        // - The handler copies `size_of::<$request>()` bytes and reads
        //   nothing else.
        // - The kernel declares it without a response: it takes no address.
        // - It looks up no descriptor and registers no memory.
        unsafe impl Command for $request {
            const NUMBER: CommandNumber = CommandNumber::$number;
            type Response = NoResponse;
        }

        const _: () = check::<$request>();
    )+};
}

/// The commands whose response is the kernel's own.
macro_rules! with_response {
    ($($request:ident = $number:ident -> $response:ident;)+) => {$(
        // SAFETY:
        // - The handler copies `size_of::<$request>()` bytes and reads
        //   nothing else.
        // - It writes `size_of::<$response>()` bytes to the pointer in the
        //   field `response`, the request's first, and nothing else.
        // - It looks up no descriptor.
        // - The one memory it may register is that of `ReregMr`, whose field
        //   says so.
        unsafe impl Command for $request {
            const NUMBER: CommandNumber = CommandNumber::$number;
            const POINTER: Pointer = Pointer::Response {
                offset: offset_of!($request, response),
            };
            type Response = $response;
        }

        const _: () = check::<$request>();
    )+};
}

/// The commands to which a driver adds words of its own.
macro_rules! with_driver {
    ($($driver:ident<$request:ident> = $number:ident -> $response:ty;)+) => {$(
        // SAFETY:
        // - The handler copies `size_of::<$request>()` bytes, all there is,
        //   and neither it nor the driver reads anything else. A device of
        //   another driver, too, finds nothing after them.
        // - Handler and driver write to the pointer in the field `response`,
        //   the request's first and the wrapper's too, no more than
        //   `size_of::<$response>()` bytes together, by the header.
        // - The one descriptor it may look up is that of a completion channel,
        //   the one memory it may register is that of `RegMr`; their fields
        //   say so.
        unsafe impl Command for $driver<$request> {
            const NUMBER: CommandNumber = CommandNumber::$number;
            const POINTER: Pointer = Pointer::Response {
                offset: offset_of!($request, response),
            };
            type Response = $response;
        }

        const _: () = check::<$driver<$request>>();
    )+};
}

without_response! {
    DeallocPd = DEALLOC_PD;
    DestroyAh = DESTROY_AH;
    DeregMr = DEREG_MR;
    ReqNotifyCq = REQ_NOTIFY_CQ;
    ModifyQp = MODIFY_QP;
    AttachMulticast = ATTACH_MCAST;
    DetachMulticast = DETACH_MCAST;
}

with_response! {
    QueryDevice = QUERY_DEVICE -> QueryDeviceResponse;
    QueryPort = QUERY_PORT -> QueryPortResponse;
    AllocPd = ALLOC_PD -> AllocPdResponse;
    ReregMr = REREG_MR -> ReregMrResponse;
    CreateCompletionChannel = CREATE_COMP_CHANNEL -> CreateCompletionChannelResponse;
    DestroyCq = DESTROY_CQ -> DestroyCqResponse;
    QueryQp = QUERY_QP -> QueryQpResponse;
    DestroyQp = DESTROY_QP -> DestroyQpResponse;
    PostSend = POST_SEND -> PostSendResponse;
    QuerySrq = QUERY_SRQ -> QuerySrqResponse;
    DestroySrq = DESTROY_SRQ -> DestroySrqResponse;
}

with_driver! {
    Rxe<GetContext> = GET_CONTEXT -> GetContextResponse;
    Siw<GetContext> = GET_CONTEXT -> siw::ContextResponse;
    Rxe<CreateCq> = CREATE_CQ -> rxe::CqResponse;
    Siw<CreateCq> = CREATE_CQ -> siw::CqResponse;
    Rxe<CreateQp> = CREATE_QP -> rxe::QpResponse;
    Siw<CreateQp> = CREATE_QP -> siw::QpResponse;
    Rxe<CreateAh> = CREATE_AH -> rxe::AhResponse;
    Rxe<RegMr> = REG_MR -> RegMrResponse;
    Rxe<ResizeCq> = RESIZE_CQ -> rxe::ResizeResponse;
    Rxe<CreateSrq> = CREATE_SRQ -> rxe::SrqResponse;
    Siw<CreateSrq> = CREATE_SRQ -> siw::SrqResponse;
}

// SAFETY:
// - The handler copies the kernel's `RegMr`, the driver the rest, and neither
//   reads anything else. Another driver finds words it does not ask for.
// - Handler and driver write to the pointer in the field `response` of
//   `common`, which is the first of both, no more than
//   `size_of::<siw::MrResponse>()` bytes together, by the header.
// - It looks up no descriptor.
// - It registers the memory of `RegMr`, whose field says so.
unsafe impl Command for siw::RegMr {
    const NUMBER: CommandNumber = CommandNumber::REG_MR;
    const POINTER: Pointer = Pointer::Response {
        offset: offset_of!(siw::RegMr, common.response),
    };
    type Response = siw::MrResponse;
}

const _: () = check::<siw::RegMr>();

// SAFETY:
// - The handler copies `size_of::<ModifySrq>()` bytes and reads nothing else.
// - The kernel declares it without a response, and the driver that would write
//   to an address after the request, rxe, finds nothing there: EINVAL.
// - It looks up no descriptor and registers no memory.
unsafe impl Command for ModifySrq {
    const NUMBER: CommandNumber = CommandNumber::MODIFY_SRQ;
    type Response = NoResponse;
}

const _: () = check::<ModifySrq>();

// SAFETY:
// - The handler copies the kernel's `ModifySrq`, the driver the rest, and
//   neither reads anything else.
// - The kernel declares it without a response. The driver writes to the address
//   in its own word only to resize the queue, with `SrqAttrMask::MAX_WR`, which
//   no value has: the fields are private to the type's module, its one
//   constructor sets `SrqAttrMask::LIMIT` alone and the address to 0, and
//   without `FromBytes` no bytes become a value. No other driver knows the word.
// - It looks up no descriptor and registers no memory.
unsafe impl Command for rxe::ModifySrq {
    const NUMBER: CommandNumber = CommandNumber::MODIFY_SRQ;
    type Response = NoResponse;
}

const _: () = check::<rxe::ModifySrq>();

/// Bytes of the longest request, the header not counted: space for any
/// command.
pub const MAX_REQUEST: usize = size_of::<ModifyQp>();

/// The offsets lie in the request and the sizes fit what has to hold them.
const fn check<C: Command>() {
    let size = size_of::<C>();
    assert!(size <= MAX_REQUEST, "`MAX_REQUEST` must know the request");
    match C::POINTER {
        Pointer::None => assert!(size_of::<C::Response>() == 0),
        Pointer::Response { offset } => {
            // Where the kernel looks, whatever the request.
            assert!(offset == 0 && size >= 8);
            assert!(size_of::<C::Response>() > 0);
        }
        Pointer::OptionValue { .. } => assert!(size == 0, "verbs commands have no options"),
    }
}
