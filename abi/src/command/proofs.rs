//! What each command makes the kernel do with user memory.
//!
//! # Safety
//!
//! Read from `drivers/infiniband/core/ucma.c` of Linux 6.1 and 7.3. Common to
//! all of them: a handler copies its request with one `copy_from_user` of at
//! most the request structure's size of 7.2, and what it writes it writes
//! with one `copy_to_user`.
#![expect(unsafe_code, reason = "the implementers of `Command` carry its proof")]

use core::mem::offset_of;

use crate::{
    Accept, Bind, BindIp, Command, CommandNumber, Connect, CreateId, CreateIdResponse, DestroyId,
    DestroyIdResponse, Disconnect, EventResponse, GetEvent, InitQpAttr, JoinIpMulticast,
    JoinMulticast, LeaveMulticast, Listen, MigrateId, MigrateIdResponse, NoResponse, Notify,
    Pointer, QpAttr, Query, QueryAddr, QueryAddrResponse, QueryGid, QueryIbService,
    QueryIbServiceResponse, QueryPath, QueryPathResponse, QueryRoute, QueryRouteResponse, Reject,
    ResolveAddr, ResolveIbService, ResolveIp, ResolveRoute, SetOption, WriteCmEvent,
};

/// The commands that neither read nor write through a pointer.
macro_rules! without_pointer {
    ($($request:ident = $number:ident;)+) => {$(
        // SAFETY:
        // - The handler copies `size_of::<$request>()` bytes, or fewer where
        //   the structure has grown since, and reads nothing else.
        // - It has no `copy_to_user`; a field named `response` it ignores.
        // - It looks up no descriptor.
        unsafe impl Command for $request {
            const NUMBER: CommandNumber = CommandNumber::$number;
            type Response = NoResponse;
        }

        const _: () = check::<$request>();
    )+};
}

/// The commands that write a response of one size, since they exist.
macro_rules! with_response {
    ($($request:ident = $number:ident -> $response:ident;)+) => {$(
        // SAFETY:
        // - The handler copies `size_of::<$request>()` bytes and reads
        //   nothing else.
        // - It copies `size_of::<$response>()` bytes to the pointer in the
        //   field `response`, and writes nothing else.
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

without_pointer! {
    BindIp = BIND_IP;
    ResolveIp = RESOLVE_IP;
    ResolveRoute = RESOLVE_ROUTE;
    Connect = CONNECT;
    Listen = LISTEN;
    Accept = ACCEPT;
    Reject = REJECT;
    Disconnect = DISCONNECT;
    Notify = NOTIFY;
    Bind = BIND;
    ResolveAddr = RESOLVE_ADDR;
    ResolveIbService = RESOLVE_IB_SERVICE;
    WriteCmEvent = WRITE_CM_EVENT;
}

with_response! {
    CreateId = CREATE_ID -> CreateIdResponse;
    DestroyId = DESTROY_ID -> DestroyIdResponse;
    InitQpAttr = INIT_QP_ATTR -> QpAttr;
    JoinIpMulticast = JOIN_IP_MCAST -> CreateIdResponse;
    LeaveMulticast = LEAVE_MCAST -> DestroyIdResponse;
    JoinMulticast = JOIN_MCAST -> CreateIdResponse;
}

/// Where the pointer is in all the forms of QUERY.
const QUERY_POINTER: Pointer = Pointer::Response {
    offset: offset_of!(Query, response),
};

// SAFETY:
// - The handler copies `size_of::<GetEvent>()` bytes and reads nothing else.
// - It copies the smaller of the header's response size and its own event
//   structure's to the pointer in the field `response`, and writes nothing
//   else. The event structure of 7.2 is `EventResponse`, older ones are
//   shorter.
// - It looks up no descriptor.
unsafe impl Command for GetEvent {
    const NUMBER: CommandNumber = CommandNumber::GET_EVENT;
    // Up to the ECE fields, which came with 5.8.
    const MIN_RESPONSE: usize = offset_of!(EventResponse, reserved);
    const POINTER: Pointer = Pointer::Response {
        offset: offset_of!(GetEvent, response),
    };
    type Response = EventResponse;
}

// SAFETY:
// - The handler copies `size_of::<SetOption>()` bytes; it reads nothing else
//   but the option's value, as many bytes as the field `size` says, from the
//   pointer in the field `value`.
// - It has no `copy_to_user` and looks up no descriptor.
unsafe impl Command for SetOption {
    const NUMBER: CommandNumber = CommandNumber::SET_OPTION;
    const POINTER: Pointer = Pointer::OptionValue {
        offset: offset_of!(SetOption, value),
        size_offset: offset_of!(SetOption, size),
    };
    type Response = NoResponse;
}

// SAFETY:
// - The handler copies `size_of::<MigrateId>()` bytes and reads nothing else.
// - It copies `size_of::<MigrateIdResponse>()` bytes to the pointer in the
//   field `response`, and writes nothing else. It does not look at the
//   header's response size, and needs not: that many bytes are always there.
// - The one descriptor it looks up is that in the field `fd`.
unsafe impl Command for MigrateId {
    const NUMBER: CommandNumber = CommandNumber::MIGRATE_ID;
    const POINTER: Pointer = Pointer::Response {
        offset: offset_of!(MigrateId, response),
    };
    const FD: Option<usize> = Some(offset_of!(MigrateId, fd));
    type Response = MigrateIdResponse;
}

// SAFETY:
// - The handler copies `size_of::<Query>()` bytes, all there is, and reads
//   nothing else.
// - The option is ADDR: no constructor makes another, and a program that
//   makes one from bytes changes what is copied, not how much. Each option's
//   handler copies at most as many bytes as the header's response size says
//   to the pointer in the field `response`, and writes nothing else.
// - It looks up no descriptor.
unsafe impl Command for QueryAddr {
    const NUMBER: CommandNumber = CommandNumber::QUERY;
    // Up to the device index, which came with 5.8.
    const MIN_RESPONSE: usize = offset_of!(QueryAddrResponse, device_index);
    const POINTER: Pointer = QUERY_POINTER;
    type Response = QueryAddrResponse;
}

// SAFETY: as for `QueryAddr`, of which this is another option.
unsafe impl Command for QueryGid {
    const NUMBER: CommandNumber = CommandNumber::QUERY;
    const MIN_RESPONSE: usize = offset_of!(QueryAddrResponse, device_index);
    const POINTER: Pointer = QUERY_POINTER;
    type Response = QueryAddrResponse;
}

// SAFETY: as for `QueryAddr`, of which this is another option. The handler
// writes the count and as many whole records as there are and as fit.
unsafe impl<const N: usize> Command for QueryPath<N> {
    const NUMBER: CommandNumber = CommandNumber::QUERY;
    const MIN_RESPONSE: usize = offset_of!(QueryPathResponse<N>, paths);
    const POINTER: Pointer = QUERY_POINTER;
    type Response = QueryPathResponse<N>;
}

// SAFETY: as for `QueryAddr`, of which this is another option. The handler
// writes the count and as many whole records as there are and as fit; nothing
// at all if none fits.
unsafe impl<const N: usize> Command for QueryIbService<N> {
    const NUMBER: CommandNumber = CommandNumber::QUERY;
    const MIN_RESPONSE: usize = offset_of!(QueryIbServiceResponse<N>, records);
    const POINTER: Pointer = QUERY_POINTER;
    type Response = QueryIbServiceResponse<N>;
}

// SAFETY:
// - The handler copies `size_of::<Query>()` bytes, all there is, and reads
//   nothing else.
// - It copies the smaller of the header's response size and its own
//   structure's to the pointer in the field `response`, and writes nothing
//   else. The structure of 7.2 is `QueryRouteResponse`, older ones are
//   shorter.
// - It looks up no descriptor.
unsafe impl Command for QueryRoute {
    const NUMBER: CommandNumber = CommandNumber::QUERY_ROUTE;
    // Up to the device index, which came with 5.8.
    const MIN_RESPONSE: usize = offset_of!(QueryRouteResponse, device_index);
    const POINTER: Pointer = QUERY_POINTER;
    type Response = QueryRouteResponse;
}

const _: () = {
    check::<GetEvent>();
    check::<SetOption>();
    check::<MigrateId>();
    check::<QueryAddr>();
    check::<QueryGid>();
    check::<QueryPath<1>>();
    check::<QueryIbService<1>>();
    check::<QueryRoute>();
};

/// The offsets lie in the request and the sizes fit what has to hold them.
const fn check<C: Command>() {
    let size = size_of::<C>();
    assert!(size <= u16::MAX as usize);
    assert!(
        align_of::<C>() <= 8,
        "a request is as aligned as the header before it"
    );
    assert!(size_of::<C::Response>() <= u16::MAX as usize);
    assert!(C::MIN_RESPONSE <= size_of::<C::Response>());
    match C::POINTER {
        Pointer::None => assert!(size_of::<C::Response>() == 0),
        Pointer::Response { offset } => {
            assert!(offset + 8 <= size && offset % 8 == 0);
            assert!(size_of::<C::Response>() > 0);
        }
        Pointer::OptionValue {
            offset,
            size_offset,
        } => {
            assert!(offset + 8 <= size && offset % 8 == 0);
            assert!(size_offset + 4 <= size && size_offset % 4 == 0);
            assert!(size_of::<C::Response>() == 0);
        }
    }
    if let Some(offset) = C::FD {
        assert!(offset + 4 <= size && offset % 4 == 0);
    }
}
