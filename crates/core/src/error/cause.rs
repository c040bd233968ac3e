//! Likely causes of error numbers, a table for each operation.

use std::path::Path;

use crate::address::CmAddr;
use crate::errno::ENOTSUPP;
use crate::operation::Operation;

/// The kernel requires `CAP_NET_BIND_SERVICE` below this port, regardless of the sysctl
/// for IP ports.
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

/// Exists while the module is loaded.
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
        "the module is loaded but its device node is missing here: wait longer for udev, start \
         it, or pass the node into the container"
    } else {
        "the module rdma_ucm is not loaded, and asking for the device did not make the kernel load \
         it: modprobe rdma_ucm"
    }
}

/// Why the kernel refused a command, if it is known.
pub(super) fn command_cause(operation: &Operation, errno: i32) -> Option<&'static str> {
    any_command_cause(operation, errno).or_else(|| match operation {
        _ if errno == libc::EACCES => Some(access_cause(operation)),
        Operation::CreateId(_) => create_cause(errno),
        Operation::Bind(address) => bind_cause(address, errno),
        Operation::ResolveAddr {
            source,
            destination,
            ..
        } => resolve_cause(source.as_ref(), destination, errno),
        Operation::ResolveRoute { .. } => route_cause(errno),
        Operation::Listen => listen_cause(errno),
        Operation::Connect => connect_cause(errno),
        Operation::Accept => accept_cause(errno),
        Operation::Establish => establish_cause(errno),
        Operation::Reject => reject_cause(errno),
        Operation::Disconnect => disconnect_cause(errno),
        Operation::Notify(_) => notify_cause(errno),
        Operation::InitQpAttr(_) => attributes_cause(errno),
        Operation::Migrate => migrate_cause(errno),
        Operation::JoinMulticast(group) => join_cause(group, errno),
        Operation::ResolveIbService | Operation::QueryIbService => service_cause(errno),
        Operation::SetReuseAddr(_)
        | Operation::SetAfOnly(_)
        | Operation::SetAckTimeout(_)
        | Operation::SetIbPath => option_cause(operation, errno),
        _ => None,
    })
}

/// The kernel compares the credentials of `open(2)` with the caller's at every
/// command (`ib_safe_file_access`), and requires a capability for low ports.
fn access_cause(operation: &Operation) -> &'static str {
    let local = match operation {
        Operation::Bind(address) => Some(address),
        Operation::ResolveAddr { source, .. } => source.as_ref(),
        _ => None,
    };
    let port = local.map_or(0, CmAddr::port);
    match operation {
        _ if (1..FIRST_UNPRIVILEGED_PORT).contains(&port) => {
            "a port below 1024 needs CAP_NET_BIND_SERVICE in the initial user namespace (or this \
             process's credentials have changed since the channel was opened)"
        }
        Operation::ResolveAddr { .. } => {
            "a route prohibits it, or this process's credentials have changed since the channel \
             was opened (setuid, capset, fork, a descriptor from another process): open the \
             channel after the change"
        }
        _ => {
            "this process's credentials have changed since the channel was opened (setuid, \
             capset, fork, a descriptor from another process): open the channel after the change"
        }
    }
}

fn any_command_cause(operation: &Operation, errno: i32) -> Option<&'static str> {
    match errno {
        libc::ENXIO => Some("the RDMA device of this id is gone: drop the id"),
        libc::ENOENT if matches!(operation, Operation::Migrate) => {
            Some("one of the channels is not on the kernel's file")
        }
        // `ib_find_cached_pkey`
        libc::ENOENT if matches!(operation, Operation::Connect | Operation::InitQpAttr(_)) => {
            Some("the port's table lacks the partition key of the id or of its path")
        }
        libc::ENOENT => Some("the kernel does not know this id"),
        _ => None,
    }
}

fn create_cause(errno: i32) -> Option<&'static str> {
    (errno == libc::EINVAL).then_some("the kernel does not know this port space")
}

const NO_SCOPE: &str = "a link-local address needs a scope id, as in fe80::1%eth0";
const WRONG_SCOPE: &str =
    "no interface has this scope id, or no RDMA device serves the address there";

const NO_GID: &str =
    "no InfiniBand port of this machine has this GID; those of RoCE and iWARP do not count";
const NO_SUBNET: &str =
    "no InfiniBand port of this machine is active in the destination's subnet and partition";
const WRONG_SERVICE: &str = "the address's service id is not of the id's port space";

fn bind_cause(address: &CmAddr, errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EADDRNOTAVAIL if address.port() == 0 => {
            "no network interface here has this address, or no ephemeral port is left"
        }
        libc::EADDRNOTAVAIL => {
            "no network interface here has this address, or another id shares its port and one of \
             the two has a wildcard address"
        }
        libc::EADDRINUSE => "another id has this address and port",
        libc::ENODEV if is_infiniband(address) => NO_GID,
        libc::EPROTONOSUPPORT => WRONG_SERVICE,
        libc::ENODEV if address.is_link_local() => WRONG_SCOPE,
        libc::ENODEV => {
            "the address is this machine's, but no RDMA device serves it; or an earlier bind of \
             this id was refused, whose network interface the kernel keeps: use a new id"
        }
        libc::EINVAL if lacks_scope(address) => NO_SCOPE,
        libc::EINVAL => {
            "the id is bound already, or its port space is not for this interface (IPOIB) or \
             address (InfiniBand)"
        }
        _ => return None,
    })
}

fn resolve_cause(
    source: Option<&CmAddr>,
    destination: &CmAddr,
    errno: i32,
) -> Option<&'static str> {
    let local = |words, otherwise| source.map_or(otherwise, |_| words);
    Some(match errno {
        libc::ENETUNREACH => "no route leads there",
        libc::EHOSTUNREACH => "the route there ends at an unreachable host",
        libc::EADDRINUSE => "another id has the source address and port",
        libc::EADDRNOTAVAIL => local(
            "no network interface here has the source address, or its port is not available",
            "no ephemeral port is left",
        ),
        libc::ENODEV if is_infiniband(destination) => local(NO_GID, NO_SUBNET),
        libc::EPROTONOSUPPORT => WRONG_SERVICE,
        libc::ENODEV if destination.is_link_local() => WRONG_SCOPE,
        libc::ENODEV => local(
            "no RDMA device serves the source address, or the interface that leads there",
            "no RDMA device serves the interface that leads there",
        ),
        libc::EINVAL if lacks_scope(destination) || source.is_some_and(lacks_scope) => NO_SCOPE,
        libc::EINVAL if destination.is_loopback() || destination.is_unspecified() => {
            "no RDMA device has a loopback address: use the address of the device's interface"
        }
        libc::EINVAL => {
            "the id is resolving or has resolved already, is bound to an address of another \
             family, or its port space is not for this interface; or a blackhole route drops it"
        }
        _ => return None,
    })
}

const NO_INTERFACE: &str = "no network interface carries the route, or the destination is a loopback address, which no \
     RDMA device has, or a native InfiniBand address on a RoCE device";

fn route_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => Some(
            "the id has no resolved address, or its route is resolved or being resolved already",
        ),
        libc::ENODEV => Some(NO_INTERFACE),
        _ => None,
    }
}

fn listen_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => Some("the id listens already or has begun to resolve an address"),
        libc::EADDRINUSE => Some(
            "the port is taken by another listener or, on iWARP, by a TCP socket: each iWARP device \
             listens on the TCP port with the same number",
        ),
        libc::EADDRNOTAVAIL => Some(
            "another id shares the port and one of the two has a wildcard address, no ephemeral \
             port is left for an unbound id, or, on iWARP, this machine no longer has the address",
        ),
        _ => None,
    }
}

fn connect_cause(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EINVAL => {
            "the id's route is not resolved, or the id has tried already to connect; on iWARP \
             also: the device has no queue pair with this number, or the queue pair cannot connect"
        }
        libc::ECONNREFUSED => "no server listens on the port",
        libc::ETIMEDOUT => "the peer did not answer",
        libc::ENETUNREACH => "no route leads there",
        libc::EHOSTUNREACH => "the neighbour does not answer",
        libc::EADDRINUSE => {
            "a TCP socket already uses this id's source port: use a new id with another port"
        }
        libc::EADDRNOTAVAIL => {
            "TCP already has a connection from this id's source port to the peer, or this machine \
             no longer has the source address: use a new id"
        }
        libc::ENOMEM => "out of memory, or more reads and atomics than the device has",
        _ => return None,
    })
}

fn accept_cause(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EINVAL => {
            "the peer has gone, or the id brought no request or was accepted already; on iWARP \
             also: the device has no queue pair with this number, or the queue pair cannot connect"
        }
        libc::ECONNRESET => "the peer has gone",
        libc::ENOMEM => "out of memory, or more reads and atomics than the device has",
        _ => return None,
    })
}

fn establish_cause(errno: i32) -> Option<&'static str> {
    (errno == libc::EINVAL).then_some(
        "there is no response of a peer to complete: none has arrived, it was answered already, or \
         this is iWARP, where the kernel completes the handshake",
    )
}

fn reject_cause(errno: i32) -> Option<&'static str> {
    (errno == libc::EINVAL).then_some(
        "there is nothing to refuse: the id has no request, the request was answered already, or \
         the peer has gone",
    )
}

fn disconnect_cause(errno: i32) -> Option<&'static str> {
    (errno == libc::EINVAL).then_some("the id has not begun to connect")
}

fn notify_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EISCONN => Some("the connection is established already"),
        libc::EINVAL => Some("the handshake has not come that far"),
        _ => None,
    }
}

fn attributes_cause(errno: i32) -> Option<&'static str> {
    (errno == libc::EINVAL)
        .then_some("the id is attached to no device, or it is too early for this state")
}

fn migrate_cause(errno: i32) -> Option<&'static str> {
    (errno == libc::EINVAL)
        .then_some("the id is not on the channel from which it is to be migrated")
}

fn join_cause(group: &CmAddr, errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL if group.is_unspecified() => Some(
            "a wildcard asks the subnet administrator to choose a group, and only InfiniBand has \
             one; or the id is not for datagrams, is attached to no device, or has a route",
        ),
        libc::EINVAL => Some(
            "the id must be for datagrams and attached to a device, and not further than address \
             resolution: its route must not be resolved",
        ),
        libc::ENOSYS => Some("iWARP has no multicast"),
        ENOTSUPP => Some("RoCE v2 joins IPv4 groups alone"),
        _ => None,
    }
}

fn service_cause(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EOPNOTSUPP => Some("only InfiniBand has a subnet administrator to ask"),
        libc::EINVAL => Some("the id is attached to no device, or has asked or resolved already"),
        libc::ENODATA => Some("no service is resolved"),
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
        // Of RoCE alone.
        (Operation::SetIbPath, libc::ENODEV) => Some(NO_INTERFACE),
        _ => None,
    }
}

fn is_infiniband(address: &CmAddr) -> bool {
    matches!(address, CmAddr::Ib(_))
}

fn lacks_scope(address: &CmAddr) -> bool {
    address.is_link_local() && address.scope_id() == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv6Addr, SocketAddrV6};
    use std::time::Duration;

    fn link_local(scope_id: u32) -> CmAddr {
        let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        SocketAddrV6::new(ip, 0, 0, scope_id).into()
    }

    fn bind(address: CmAddr, errno: i32) -> &'static str {
        command_cause(&Operation::Bind(address), errno).unwrap()
    }

    #[test]
    fn a_scope_is_missed_only_where_it_is_missing() {
        assert_eq!(bind(link_local(0), libc::EINVAL), NO_SCOPE);
        assert!(bind(link_local(2), libc::EINVAL).contains("bound already"));
        assert_eq!(bind(link_local(2), libc::ENODEV), WRONG_SCOPE);
    }

    #[test]
    fn the_error_of_an_infiniband_address_without_infiniband_names_the_cause() {
        let address = CmAddr::Ib("[fe80::1]".parse().unwrap());
        let words = bind(address, libc::ENODEV);
        assert!(words.contains("no InfiniBand port"), "{words}");
        assert!(words.contains("RoCE and iWARP do not"), "{words}");
        let resolve = |source| Operation::ResolveAddr {
            source,
            destination: address,
            timeout: Duration::ZERO,
        };
        let words = |source, errno| command_cause(&resolve(source), errno).unwrap();
        assert!(words(None, libc::ENODEV).contains("subnet"));
        assert!(words(Some(address), libc::ENODEV).contains("this GID"));
        assert!(words(None, libc::EPROTONOSUPPORT).contains("port space"));
    }

    #[test]
    fn a_source_is_the_likely_cause_only_if_one_was_given() {
        let resolve = |source| Operation::ResolveAddr {
            source,
            destination: CmAddr::from(([10, 0, 0, 9], 7)),
            timeout: Duration::ZERO,
        };
        let words = |source| command_cause(&resolve(source), libc::EADDRNOTAVAIL).unwrap();
        assert!(words(None).contains("ephemeral port"));
        let source = CmAddr::from(([10, 0, 0, 3], 0));
        assert!(words(Some(source)).contains("source address"));
        let privileged = resolve(Some(source.with_port(700)));
        let words = command_cause(&privileged, libc::EACCES).unwrap();
        assert!(words.contains("CAP_NET_BIND_SERVICE"));
    }
}
