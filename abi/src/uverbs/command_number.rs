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
        /// Makes a completion queue. [`CreateCq`](super::CreateCq).
        CREATE_CQ = 18 => "IB_USER_VERBS_CMD_CREATE_CQ",
        /// Destroys a completion queue. [`DestroyCq`](super::DestroyCq).
        DESTROY_CQ = 20 => "IB_USER_VERBS_CMD_DESTROY_CQ",
        /// Makes a queue pair. [`CreateQp`](super::CreateQp).
        CREATE_QP = 24 => "IB_USER_VERBS_CMD_CREATE_QP",
        /// Reads a queue pair's attributes. [`QueryQp`](super::QueryQp).
        QUERY_QP = 25 => "IB_USER_VERBS_CMD_QUERY_QP",
        /// Changes a queue pair's attributes. [`ModifyQp`](super::ModifyQp).
        MODIFY_QP = 26 => "IB_USER_VERBS_CMD_MODIFY_QP",
        /// Destroys a queue pair. [`DestroyQp`](super::DestroyQp).
        DESTROY_QP = 27 => "IB_USER_VERBS_CMD_DESTROY_QP",
    }
}
