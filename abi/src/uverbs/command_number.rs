//! The numbers of the commands.

numbers! {
    /// `enum ib_uverbs_write_cmds`: a command of `/dev/infiniband/uverbsN`,
    /// those of which this crate has the requests.
    ///
    /// The kernel answers EINVAL to a number beyond its table and EOPNOTSUPP
    /// to one that the device's driver lacks.
    #[doc(alias = "ib_uverbs_write_cmds")]
    pub struct CommandNumber(u32) in kernel "rdma/ib_user_verbs.h" {
        /// Makes an open file a context. [`GetContext`](super::GetContext).
        GET_CONTEXT = 0 => "IB_USER_VERBS_CMD_GET_CONTEXT",
        /// Reads the device's limits. [`QueryDevice`](super::QueryDevice).
        QUERY_DEVICE = 1 => "IB_USER_VERBS_CMD_QUERY_DEVICE",
        /// Reads a port's attributes. [`QueryPort`](super::QueryPort).
        QUERY_PORT = 2 => "IB_USER_VERBS_CMD_QUERY_PORT",
        /// Makes a protection domain. [`AllocPd`](super::AllocPd).
        ALLOC_PD = 3 => "IB_USER_VERBS_CMD_ALLOC_PD",
        /// Destroys a protection domain. [`DeallocPd`](super::DeallocPd).
        DEALLOC_PD = 4 => "IB_USER_VERBS_CMD_DEALLOC_PD",
        /// Makes an address handle. [`CreateAh`](super::CreateAh).
        CREATE_AH = 5 => "IB_USER_VERBS_CMD_CREATE_AH",
        /// Destroys an address handle. [`DestroyAh`](super::DestroyAh).
        DESTROY_AH = 8 => "IB_USER_VERBS_CMD_DESTROY_AH",
        /// Registers memory. [`RegMr`](super::RegMr).
        REG_MR = 9 => "IB_USER_VERBS_CMD_REG_MR",
        /// Changes a memory region. [`ReregMr`](super::ReregMr).
        REREG_MR = 11 => "IB_USER_VERBS_CMD_REREG_MR",
        /// Ends a memory region. [`DeregMr`](super::DeregMr).
        DEREG_MR = 13 => "IB_USER_VERBS_CMD_DEREG_MR",
        /// Makes a completion channel.
        /// [`CreateCompletionChannel`](super::CreateCompletionChannel).
        CREATE_COMP_CHANNEL = 17 => "IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL",
        /// Makes a completion queue. [`CreateCq`](super::CreateCq).
        CREATE_CQ = 18 => "IB_USER_VERBS_CMD_CREATE_CQ",
        /// Changes how many completions a queue holds.
        /// [`ResizeCq`](super::ResizeCq).
        RESIZE_CQ = 19 => "IB_USER_VERBS_CMD_RESIZE_CQ",
        /// Destroys a completion queue. [`DestroyCq`](super::DestroyCq).
        DESTROY_CQ = 20 => "IB_USER_VERBS_CMD_DESTROY_CQ",
        /// Arms a completion queue. [`ReqNotifyCq`](super::ReqNotifyCq).
        REQ_NOTIFY_CQ = 23 => "IB_USER_VERBS_CMD_REQ_NOTIFY_CQ",
        /// Makes a queue pair. [`CreateQp`](super::CreateQp).
        CREATE_QP = 24 => "IB_USER_VERBS_CMD_CREATE_QP",
        /// Reads a queue pair's attributes. [`QueryQp`](super::QueryQp).
        QUERY_QP = 25 => "IB_USER_VERBS_CMD_QUERY_QP",
        /// Changes a queue pair's attributes. [`ModifyQp`](super::ModifyQp).
        MODIFY_QP = 26 => "IB_USER_VERBS_CMD_MODIFY_QP",
        /// Destroys a queue pair. [`DestroyQp`](super::DestroyQp).
        DESTROY_QP = 27 => "IB_USER_VERBS_CMD_DESTROY_QP",
        /// Announces requests in the send queue (the doorbell). [`PostSend`](super::PostSend).
        POST_SEND = 28 => "IB_USER_VERBS_CMD_POST_SEND",
        /// Has a queue pair receive what is sent to a group.
        /// [`AttachMulticast`](super::AttachMulticast).
        ATTACH_MCAST = 30 => "IB_USER_VERBS_CMD_ATTACH_MCAST",
        /// Takes a queue pair out of a group.
        /// [`DetachMulticast`](super::DetachMulticast).
        DETACH_MCAST = 31 => "IB_USER_VERBS_CMD_DETACH_MCAST",
        /// Makes a shared receive queue. [`CreateSrq`](super::CreateSrq).
        CREATE_SRQ = 32 => "IB_USER_VERBS_CMD_CREATE_SRQ",
        /// Changes a shared receive queue's attributes.
        /// [`ModifySrq`](super::ModifySrq).
        MODIFY_SRQ = 33 => "IB_USER_VERBS_CMD_MODIFY_SRQ",
        /// Reads a shared receive queue's attributes.
        /// [`QuerySrq`](super::QuerySrq).
        QUERY_SRQ = 34 => "IB_USER_VERBS_CMD_QUERY_SRQ",
        /// Destroys a shared receive queue. [`DestroySrq`](super::DestroySrq).
        DESTROY_SRQ = 35 => "IB_USER_VERBS_CMD_DESTROY_SRQ",
    }
}
