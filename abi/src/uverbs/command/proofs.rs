//! What each command makes the kernel do with user memory.
//!
//! # Safety
//!
//! Read from `drivers/infiniband/core/uverbs_main.c` and `uverbs_cmd.c` of
//! Linux 6.1 and 7.3. Common to all of them, whatever the driver:
//!
//! * `ib_uverbs_write` takes the written length from the header and refuses
//!   any other; behind the header it copies the command's structure, and gives
//!   the driver what is behind that: nothing, for the requests here.
//! * A command with a response takes its address from the first 8 bytes of
//!   the request. The kernel's own answer and the driver's behind it are
//!   written to that address, and together never exceed the size in the
//!   header, which is `size_of::<Response>()`: both copies are bounded by what
//!   is left of it (`uverbs_response`, `ib_udata::outlen`).
#![expect(unsafe_code, reason = "the implementers of `Command` carry its proof")]

use core::mem::offset_of;

use super::super::{
    AllocPd, AllocPdResponse, Command, CommandNumber, CreateCq, CreateQp, DeallocPd, DestroyCq,
    DestroyCqResponse, DestroyQp, DestroyQpResponse, GetContext, GetContextResponse, ModifyQp,
    QueryDevice, QueryDeviceResponse, QueryPort, QueryPortResponse, QueryQp, QueryQpResponse, Rxe,
    Siw, rxe, siw,
};
use crate::{NoResponse, Pointer};

/// The commands that write nothing.
macro_rules! without_response {
    ($($request:ident = $number:ident;)+) => {$(
        // SAFETY:
        // - The handler copies `size_of::<$request>()` bytes and reads
        //   nothing else.
        // - The kernel declares it without a response: it takes no address.
        // - It looks up no descriptor.
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
        //   another driver, too, finds nothing behind them.
        // - Handler and driver write to the pointer in the field `response`,
        //   the request's first and the wrapper's too, no more than
        //   `size_of::<$response>()` bytes together, as the header says.
        // - The one descriptor it may look up is that of a completion channel,
        //   whose field says so.
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
    ModifyQp = MODIFY_QP;
}

with_response! {
    QueryDevice = QUERY_DEVICE -> QueryDeviceResponse;
    QueryPort = QUERY_PORT -> QueryPortResponse;
    AllocPd = ALLOC_PD -> AllocPdResponse;
    DestroyCq = DESTROY_CQ -> DestroyCqResponse;
    QueryQp = QUERY_QP -> QueryQpResponse;
    DestroyQp = DESTROY_QP -> DestroyQpResponse;
}

with_driver! {
    Rxe<GetContext> = GET_CONTEXT -> GetContextResponse;
    Siw<GetContext> = GET_CONTEXT -> siw::ContextResponse;
    Rxe<CreateCq> = CREATE_CQ -> rxe::CqResponse;
    Siw<CreateCq> = CREATE_CQ -> siw::CqResponse;
    Rxe<CreateQp> = CREATE_QP -> rxe::QpResponse;
    Siw<CreateQp> = CREATE_QP -> siw::QpResponse;
}

/// Bytes of the longest request, the header not counted: room for any
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
