//! Likely causes of error numbers, one table for each moment.

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

/// Drivers and versions, as a list in words.
pub(super) fn known(drivers: &[(DriverId, u32)]) -> String {
    let words = |(driver, version): &(DriverId, u32)| format!("{driver:?}, version {version}");
    let words: Vec<_> = drivers.iter().map(words).collect();
    words.join(", and ")
}

/// Why waiting failed.
pub(super) fn wait_cause(errno: i32) -> &'static str {
    match errno {
        libc::EMFILE | libc::ENFILE => "no file descriptor is left: raise the limit (ulimit -n)",
        libc::EPROTO => "the kernel said half a thing",
        _ => "the system would not make or poll the descriptors that takes",
    }
}

/// Why the kernel refused a command, where the number tells.
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
        Operation::CreateCompletionQueue { .. } => (errno == libc::EINVAL)
            .then_some("it must hold at least 1 completion and no more than the device's limit"),
        Operation::ResizeCompletionQueue { .. } => {
            (errno == libc::EOPNOTSUPP).then_some("the driver's queues keep their size")
        }
        Operation::Register { .. } => register_cause(errno),
        Operation::ChangeAccess => (errno == libc::EOPNOTSUPP)
            .then_some("the driver cannot: siw, and rxe before Linux 6.4, have no such thing"),
        Operation::Send => (errno == libc::EINVAL || errno == libc::ENOTCONN)
            .then_some("the queue pair is not connected: it is not ready to send yet, or no more"),
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
             there is no more"
        }
        libc::EFAULT => "there is no memory at this address",
        libc::EINVAL => {
            "no bytes, or access flags that do not go together: what peers may change the \
             device must be allowed to write"
        }
        _ => return None,
    })
}

fn create_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => Some(
            "a size is beyond the device's limits, or there is no room for a single request to \
             send",
        ),
        libc::EOPNOTSUPP => {
            Some("the device has no queue pairs of this type: siw has reliable connections only")
        }
        _ => None,
    }
}

fn modify_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => Some(
            "its state does not allow this, the attributes are too many or too few for it, or a \
             value is out of range",
        ),
        libc::EOPNOTSUPP => Some("the kernel's command does not know all of these attributes"),
        libc::EPERM => Some("a queue key with the top bit set needs CAP_NET_RAW"),
        _ => None,
    }
}
