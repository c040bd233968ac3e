//! The numbers of the commands.

numbers! {
    /// A command of `/dev/infiniband/rdma_cm`.
    ///
    /// The kernel answers EINVAL to a number beyond its table and ENOSYS to
    /// [`GET_OPTION`](Self::GET_OPTION), the one hole in it.
    pub struct CommandNumber(u32) in kernel "rdma/rdma_user_cm.h" {
        /// Creates an id. [`CreateId`](crate::CreateId).
        CREATE_ID = 0 => "RDMA_USER_CM_CMD_CREATE_ID",
        /// Destroys an id. [`DestroyId`](crate::DestroyId).
        DESTROY_ID = 1 => "RDMA_USER_CM_CMD_DESTROY_ID",
        /// Binds to an IP address. [`BindIp`](crate::BindIp).
        BIND_IP = 2 => "RDMA_USER_CM_CMD_BIND_IP",
        /// Resolves an IP address. [`ResolveIp`](crate::ResolveIp).
        RESOLVE_IP = 3 => "RDMA_USER_CM_CMD_RESOLVE_IP",
        /// Resolves the route. [`ResolveRoute`](crate::ResolveRoute).
        RESOLVE_ROUTE = 4 => "RDMA_USER_CM_CMD_RESOLVE_ROUTE",
        /// Reads IP addresses and paths. [`QueryRoute`](crate::QueryRoute).
        QUERY_ROUTE = 5 => "RDMA_USER_CM_CMD_QUERY_ROUTE",
        /// Requests a connection. [`Connect`](crate::Connect).
        CONNECT = 6 => "RDMA_USER_CM_CMD_CONNECT",
        /// Listens. [`Listen`](crate::Listen).
        LISTEN = 7 => "RDMA_USER_CM_CMD_LISTEN",
        /// Accepts a request or a response. [`Accept`](crate::Accept).
        ACCEPT = 8 => "RDMA_USER_CM_CMD_ACCEPT",
        /// Rejects a request or a response. [`Reject`](crate::Reject).
        REJECT = 9 => "RDMA_USER_CM_CMD_REJECT",
        /// Disconnects. [`Disconnect`](crate::Disconnect).
        DISCONNECT = 10 => "RDMA_USER_CM_CMD_DISCONNECT",
        /// Reads the attributes a queue pair needs next.
        /// [`InitQpAttr`](crate::InitQpAttr).
        INIT_QP_ATTR = 11 => "RDMA_USER_CM_CMD_INIT_QP_ATTR",
        /// Takes the next event. [`GetEvent`](crate::GetEvent).
        GET_EVENT = 12 => "RDMA_USER_CM_CMD_GET_EVENT",
        /// Never implemented: every kernel answers ENOSYS.
        GET_OPTION = 13 => "RDMA_USER_CM_CMD_GET_OPTION",
        /// Sets an option. [`SetOption`](crate::SetOption).
        SET_OPTION = 14 => "RDMA_USER_CM_CMD_SET_OPTION",
        /// Reports an event of the queue pair. [`Notify`](crate::Notify).
        NOTIFY = 15 => "RDMA_USER_CM_CMD_NOTIFY",
        /// Joins an IP multicast group.
        /// [`JoinIpMulticast`](crate::JoinIpMulticast).
        JOIN_IP_MCAST = 16 => "RDMA_USER_CM_CMD_JOIN_IP_MCAST",
        /// Leaves a multicast group. [`LeaveMulticast`](crate::LeaveMulticast).
        LEAVE_MCAST = 17 => "RDMA_USER_CM_CMD_LEAVE_MCAST",
        /// Moves an id here from another open file.
        /// [`MigrateId`](crate::MigrateId).
        MIGRATE_ID = 18 => "RDMA_USER_CM_CMD_MIGRATE_ID",
        /// Reads addresses, GIDs, paths or services. [`Query`](crate::Query).
        QUERY = 19 => "RDMA_USER_CM_CMD_QUERY",
        /// Binds to an address of any family. [`Bind`](crate::Bind).
        BIND = 20 => "RDMA_USER_CM_CMD_BIND",
        /// Resolves an address of any family.
        /// [`ResolveAddr`](crate::ResolveAddr).
        RESOLVE_ADDR = 21 => "RDMA_USER_CM_CMD_RESOLVE_ADDR",
        /// Joins a multicast group of any family.
        /// [`JoinMulticast`](crate::JoinMulticast).
        JOIN_MCAST = 22 => "RDMA_USER_CM_CMD_JOIN_MCAST",
        /// Resolves an InfiniBand service. Needs Linux 6.18 or newer.
        /// [`ResolveIbService`](crate::ResolveIbService).
        RESOLVE_IB_SERVICE = 23 => "RDMA_USER_CM_CMD_RESOLVE_IB_SERVICE" since (7, 2),
        /// Queues an event of one's own. Needs Linux 6.18 or newer.
        /// [`WriteCmEvent`](crate::WriteCmEvent).
        WRITE_CM_EVENT = 24 => "RDMA_USER_CM_CMD_WRITE_CM_EVENT" since (7, 2),
    }
}
