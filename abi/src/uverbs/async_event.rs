//! Asynchronous events: what happened to an object unasked.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

numbers! {
    /// `enum ib_event_type`: what happened, and to which kind of object.
    #[doc(alias = "ib_event_type", alias = "ibv_event_type")]
    pub struct AsyncEventKind(u32) in user_space "infiniband/verbs.h" {
        /// A completion queue overflowed or failed.
        CQ_ERR = 0 => "IBV_EVENT_CQ_ERR",
        /// A queue pair failed and cannot even complete its requests.
        QP_FATAL = 1 => "IBV_EVENT_QP_FATAL",
        /// A queue pair's peer sent an invalid request.
        QP_REQ_ERR = 2 => "IBV_EVENT_QP_REQ_ERR",
        /// A queue pair's peer accessed memory without the right to.
        QP_ACCESS_ERR = 3 => "IBV_EVENT_QP_ACCESS_ERR",
        /// Data arrived on a queue pair before the peer's "ready to use" did.
        COMM_EST = 4 => "IBV_EVENT_COMM_EST",
        /// A queue pair's send queue has drained.
        SQ_DRAINED = 5 => "IBV_EVENT_SQ_DRAINED",
        /// A queue pair moved to its alternate path.
        PATH_MIG = 6 => "IBV_EVENT_PATH_MIG",
        /// A queue pair could not move to its alternate path.
        PATH_MIG_ERR = 7 => "IBV_EVENT_PATH_MIG_ERR",
        /// The device failed, or is about to go away.
        DEVICE_FATAL = 8 => "IBV_EVENT_DEVICE_FATAL",
        /// A port went up.
        PORT_ACTIVE = 9 => "IBV_EVENT_PORT_ACTIVE",
        /// A port went down.
        PORT_ERR = 10 => "IBV_EVENT_PORT_ERR",
        /// A port's LID changed.
        LID_CHANGE = 11 => "IBV_EVENT_LID_CHANGE",
        /// A port's table of partition keys changed.
        PKEY_CHANGE = 12 => "IBV_EVENT_PKEY_CHANGE",
        /// A port has another subnet manager.
        SM_CHANGE = 13 => "IBV_EVENT_SM_CHANGE",
        /// A shared receive queue failed.
        SRQ_ERR = 14 => "IBV_EVENT_SRQ_ERR",
        /// A shared receive queue has fewer requests left than its limit.
        SRQ_LIMIT_REACHED = 15 => "IBV_EVENT_SRQ_LIMIT_REACHED",
        /// A queue pair in error takes no more from its shared receive queue.
        QP_LAST_WQE_REACHED = 16 => "IBV_EVENT_QP_LAST_WQE_REACHED",
        /// A port's subnet manager wants everybody to register again.
        CLIENT_REREGISTER = 17 => "IBV_EVENT_CLIENT_REREGISTER",
        /// A port's table of GIDs changed.
        GID_CHANGE = 18 => "IBV_EVENT_GID_CHANGE",
        /// A work queue failed.
        WQ_FATAL = 19 => "IBV_EVENT_WQ_FATAL",
    }
}

/// `struct ib_uverbs_async_event_desc`: what is read from
/// [`GetContextResponse::async_fd`](super::GetContextResponse::async_fd),
/// several at a time if there is space. EIO once the device is gone.
#[doc(alias = "ib_uverbs_async_event_desc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AsyncEvent {
    /// The object: the user handle of a queue pair, completion queue or shared
    /// receive queue, or the number of a port, from 1. Nothing where it is the
    /// device.
    pub element: u64,
    /// What happened.
    #[doc(alias = "event_type")]
    pub kind: AsyncEventKind,
    /// Zero.
    pub reserved: Reserved<4>,
}
