//! What a queue pair reports to the connection manager.

/// An asynchronous event of a queue pair that the connection manager may have
/// missed, for [`IdHandle::notify`](crate::IdHandle::notify).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notification {
    /// Data arrived before the connection was established: the peer's last
    /// message of the handshake was lost.
    #[doc(alias = "IBV_EVENT_COMM_EST")]
    CommunicationEstablished,
    /// The connection migrated to its alternate path. Only for a connection that
    /// has one: on RoCE, which has none, the kernel then uses an empty path, and
    /// the connection manager's messages do not reach the peer.
    #[doc(alias = "IBV_EVENT_PATH_MIG")]
    PathMigrated,
}
