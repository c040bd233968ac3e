//! Error numbers of commands and statuses of events, by the kernel's names.

/// Nobody listens.
pub(super) const ECONNREFUSED: i32 = 111;
/// The peer broke off.
pub(super) const ECONNRESET: i32 = 104;
/// Nobody answers.
pub(super) const ETIMEDOUT: i32 = 110;

/// `-ETIMEDOUT`
pub(super) const TIMED_OUT: i32 = -ETIMEDOUT;
/// `-ECONNRESET`
pub(super) const RESET: i32 = -ECONNRESET;
/// `IB_CM_REJ_INVALID_SERVICE_ID`: nobody listens.
pub(super) const INVALID_SERVICE: i32 = 8;
/// `IB_CM_REJ_STALE_CONN`: the queue pair's number belongs to a connection that
/// the peer has not forgotten.
pub(super) const STALE: i32 = 10;
/// `IB_CM_REJ_CONSUMER_DEFINED`: the program on the other side refused.
pub(super) const CONSUMER_DEFINED: i32 = 28;
