//! Error numbers of commands and statuses of events, by the kernel's names.

/// No listener.
pub(super) const ECONNREFUSED: i32 = 111;
/// The peer aborted the connection.
pub(super) const ECONNRESET: i32 = 104;
/// No answer.
pub(super) const ETIMEDOUT: i32 = 110;

/// `-ETIMEDOUT`
pub(super) const TIMED_OUT: i32 = -ETIMEDOUT;
/// `-ECONNRESET`
pub(super) const RESET: i32 = -ECONNRESET;
/// `IB_CM_REJ_INVALID_SERVICE_ID`: no listener.
pub(super) const INVALID_SERVICE: i32 = 8;
/// `IB_CM_REJ_STALE_CONN`: the peer still has a connection with this queue pair number.
pub(super) const STALE: i32 = 10;
/// `IB_CM_REJ_CONSUMER_DEFINED`: the peer's program rejected the request.
pub(super) const CONSUMER_DEFINED: i32 = 28;
