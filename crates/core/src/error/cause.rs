//! Likely causes of error numbers, one table for each moment.

use std::path::Path;

use crate::address::CmAddr;
use crate::operation::Operation;

/// The kernel asks for `CAP_NET_BIND_SERVICE` below this port, whatever the
/// sysctl for IP ports says.
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

/// Where the module shows up once it is loaded.
const MODULE: &str = "/sys/class/misc/rdma_cm";

/// Why the device node could not be opened.
pub(crate) fn open_cause(errno: i32) -> &'static str {
    match errno {
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ENOTDIR => missing_cause(),
        libc::EACCES | libc::EPERM => {
            "no permission: the node's mode should be 0666, and a container needs the device \
             passed in and allowed by its device rules"
        }
        libc::EMFILE | libc::ENFILE => "no file descriptor is left: raise the limit (ulimit -n)",
        _ => "the system would not open the connection manager's device",
    }
}

fn missing_cause() -> &'static str {
    if Path::new(MODULE).exists() {
        "the module is loaded but its device node is missing here: start udev, or pass the \
         node into the container"
    } else {
        "the module rdma_ucm is not loaded: modprobe rdma_ucm"
    }
}

/// Why the kernel refused a command, where the number tells.
pub(super) fn command_cause(operation: &Operation, errno: i32) -> Option<&'static str> {
    if errno == libc::EACCES {
        return Some(access_cause(operation));
    }
    any_command_cause(errno).or_else(|| match operation {
        Operation::CreateId(_) => create_cause(errno),
        Operation::Bind(address) => bind_cause(address, errno),
        Operation::ResolveAddr { destination, .. } => resolve_cause(destination, errno),
        Operation::ResolveRoute { .. } => route_cause(errno),
        Operation::Listen => listen_cause(errno),
        Operation::SetReuseAddr(_)
        | Operation::SetAfOnly(_)
        | Operation::SetAckTimeout(_)
        | Operation::SetIbPath => option_cause(operation, errno),
        _ => None,
    })
}

/// The kernel compares the credentials of `open(2)` with the caller's at every
/// command (`ib_safe_file_access`).
fn access_cause(operation: &Operation) -> &'static str {
    match operation {
        Operation::Bind(address) if (1..FIRST_UNPRIVILEGED_PORT).contains(&address.port()) => {
            "a port below 1024 needs CAP_NET_BIND_SERVICE in the initial user namespace"
        }
        _ => {
            "this process's credentials have changed since the channel was opened (setuid, \
             capset, fork, a descriptor from another process): open the channel after the change"
        }
    }
}

fn any_command_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::ENXIO => Some("the RDMA device of this id is gone: drop the id"),
        libc::ENOENT => Some("the kernel does not know this id"),
        _ => None,
    }
}

fn create_cause(errno: i32) -> Option<&'static str> {
    (errno == libc::EINVAL).then_some("the kernel does not know this port space")
}

fn bind_cause(address: &CmAddr, errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EADDRNOTAVAIL => {
            "no network interface here has this address, or a wildcard address on one side \
             shares its port"
        }
        libc::EADDRINUSE => "another id has this address and port",
        libc::ENODEV if needs_scope(address) => "no interface has this scope id",
        libc::ENODEV => "the address is this machine's, but no RDMA device serves it",
        libc::EINVAL if needs_scope(address) => {
            "a link-local address needs a scope id, as in fe80::1%eth0"
        }
        libc::EINVAL => "the id is bound already",
        _ => return None,
    })
}

fn resolve_cause(destination: &CmAddr, errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::ENETUNREACH => "no route leads there",
        libc::EHOSTUNREACH => "the route there ends at an unreachable host",
        libc::ENODEV if needs_scope(destination) => "no interface has this scope id",
        libc::ENODEV => "no RDMA device serves the interface that leads there",
        libc::EADDRNOTAVAIL => "no network interface here has the source address",
        libc::EINVAL if needs_scope(destination) => {
            "a link-local address needs a scope id, as in fe80::1%eth0"
        }
        libc::EINVAL if destination.is_loopback() => {
            "no RDMA device has a loopback address: use the address of the device's interface"
        }
        libc::EINVAL => "the id is resolving or has resolved already, or the families differ",
        _ => return None,
    })
}

fn route_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => Some("the id has no resolved address"),
        libc::ENODEV => Some(
            "no network interface carries the route; a loopback destination ends here, because \
             no RDMA device has a loopback address",
        ),
        _ => None,
    }
}

fn listen_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => Some("the id listens already or has begun to resolve an address"),
        libc::EADDRINUSE => Some(
            "the port is taken; iWARP listens on the TCP port of the same number too, and each \
             of several iWARP devices wants it",
        ),
        _ => None,
    }
}

fn option_cause(operation: &Operation, errno: i32) -> Option<&'static str> {
    match (operation, errno) {
        (_, libc::ENOSYS) => Some("this kernel does not know the option"),
        (Operation::SetReuseAddr(true), libc::EINVAL) => Some("the id listens already"),
        (Operation::SetReuseAddr(false), libc::EINVAL) => {
            Some("reuse can be taken back only before the id is bound")
        }
        (Operation::SetAfOnly(_), libc::EINVAL) => {
            Some("the option is for ids that have not begun to resolve or listen")
        }
        (Operation::SetAckTimeout(_), libc::EINVAL) => {
            Some("the option is for reliable connected ids (RC, XRC initiator)")
        }
        (Operation::SetIbPath, libc::EINVAL) => Some(
            "the id must have a resolved address and no route, and one record must be the \
             primary, bidirectional GMP path",
        ),
        _ => None,
    }
}

fn needs_scope(address: &CmAddr) -> bool {
    matches!(address, CmAddr::V6(v6) if v6.ip().is_unicast_link_local())
}
