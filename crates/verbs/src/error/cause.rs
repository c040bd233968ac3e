//! Likely causes of error numbers.

use rdmacm_core::DriverId;

use crate::operation::Operation;

/// Why the device node could not be opened.
pub(super) fn open_cause(errno: i32) -> &'static str {
    match errno {
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ENOTDIR => {
            "the device has a verbs node but it is missing here: start udev, or pass the node \
             into the container"
        }
        libc::EACCES => {
            "no permission: the node's mode should be 0666, and a container needs the device \
             passed in and allowed by its device rules"
        }
        libc::EPERM => {
            "no permission: the device is of another network namespace (`rdma system`), or a \
             container's device rules do not allow it"
        }
        libc::EMFILE | libc::ENFILE => "no file descriptor is left: raise the limit (ulimit -n)",
        _ => "the system would not open the device's verbs node",
    }
}

/// A list of drivers and versions.
pub(super) fn drivers(drivers: &[(DriverId, u32)]) -> String {
    let text = |(driver, version): &(DriverId, u32)| format!("{driver:?}, version {version}");
    let texts: Vec<_> = drivers.iter().map(text).collect();
    texts.join(", and ")
}

/// Why waiting failed.
pub(super) fn wait_cause(errno: i32) -> &'static str {
    match errno {
        libc::EMFILE | libc::ENFILE => "no file descriptor is left: raise the limit (ulimit -n)",
        libc::EPROTO => "the kernel returned an incomplete record",
        _ => "the system failed to create or poll the descriptors",
    }
}

/// The likely cause of a refused command.
pub(super) fn command_cause(operation: &Operation, errno: i32) -> Option<&'static str> {
    if (operation, errno) == (&Operation::ChangeAccess, libc::EACCES) {
        return Some(
            "the memory was not registered for writing, or this process's credentials have \
             changed since the context was opened",
        );
    }
    any_command_cause(errno).or_else(|| match operation {
        Operation::QueryPort(_) => {
            (errno == libc::EINVAL).then_some("the device has no port of this number")
        }
        Operation::CreateCompletionQueue { .. } => (errno == libc::EINVAL).then_some(
            "it must hold at least 1 completion and no more than the device's limit, and its \
             completion vector must exist",
        ),
        Operation::ResizeCompletionQueue { .. } => {
            (errno == libc::EOPNOTSUPP).then_some("the driver cannot resize completion queues")
        }
        Operation::Register { .. } => register_cause(errno),
        Operation::ChangeAccess => (errno == libc::EOPNOTSUPP).then_some(
            "the driver cannot change a registration: siw never can, rxe only since Linux 6.5",
        ),
        Operation::Send => (errno == libc::EINVAL || errno == libc::ENOTCONN)
            .then_some("the queue pair is not connected: not ready to send yet, or disconnected"),
        Operation::CreateQueuePair(_) => create_cause(errno),
        Operation::ModifyQueuePair { .. } => modify_cause(errno),
        _ => None,
    })
}

fn any_command_cause(errno: i32) -> Option<&'static str> {
    Some(match errno {
        // The kernel compares the credentials of `open(2)` with the caller's
        // at every command (`ib_safe_file_access`).
        libc::EACCES => {
            "this process's credentials have changed since the context was opened (setuid, \
             capset, fork, a descriptor from another process): open the context after the change"
        }
        libc::EIO => "the RDMA device is gone: drop the context",
        libc::EAGAIN => "the process's control group allows no more RDMA objects",
        libc::EMFILE | libc::ENFILE => "no file descriptor is left: raise the limit (ulimit -n)",
        _ => return None,
    })
}

fn register_cause(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::ENOMEM => {
            "the limit of locked memory is reached (ulimit -l, LimitMEMLOCK of systemd), or \
             memory is exhausted"
        }
        libc::EFAULT => "there is no memory at this address",
        libc::EINVAL => {
            "no bytes, or an invalid combination of access flags: REMOTE_WRITE and \
             REMOTE_ATOMIC need LOCAL_WRITE"
        }
        _ => return None,
    })
}

fn create_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => {
            Some("a size is beyond the device's limits, or the send queue has no entries")
        }
        libc::EOPNOTSUPP => {
            Some("the device has no queue pairs of this type: siw has reliable connections only")
        }
        _ => None,
    }
}

fn modify_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => Some(
            "its state does not allow this transition, attributes are missing or not allowed \
             in it, or a value is out of range",
        ),
        libc::EOPNOTSUPP => Some("the kernel's command does not support all of these attributes"),
        libc::EPERM => Some("a queue key with the top bit set needs CAP_NET_RAW"),
        _ => None,
    }
}
