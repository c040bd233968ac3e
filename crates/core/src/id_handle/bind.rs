//! Binding.

use rdmacm_abi::{Bind, BindIp, NoResponse};

use super::{IdHandle, ip_slot};
use crate::address::{CmAddr, to_storage};
use crate::error::Result;
use crate::operation::Operation;
use crate::ucma::Attachment;

impl IdHandle {
    /// Binds the id to a local address, and to the RDMA device that serves it.
    ///
    /// A wildcard or loopback address binds to no device. For port 0 the kernel chooses
    /// a port from `net.ipv4.ip_local_port_range`. A link-local IPv6 address needs a
    /// scope id. After a refused bind, use a new id: the kernel mostly keeps the address, which
    /// [`local_addr`](Self::local_addr) then returns, and its network interface, if one has it, on
    /// which it looks for each later address of this id.
    /// Source: `rdma_bind_addr(3)`, the kernel's `cma.c` and `addr.c`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command): `EADDRNOTAVAIL` for an address
    /// this machine does not have, and for a port in use if one of the two addresses is a
    /// wildcard; `EADDRINUSE` for an address and port in use; `ENODEV` for an address that no RDMA
    /// device serves, for a GID of RoCE or iWARP, and after a refused bind of the id; `EACCES` for
    /// a port below 1024 without `CAP_NET_BIND_SERVICE`; `EPROTONOSUPPORT` for a service id of
    /// another port space; `EINVAL` for an id that is bound already, and for a link-local address
    /// without a scope id.
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) for an InfiniBand address with
    /// [`AddressAbi::IpOnly`](crate::AddressAbi::IpOnly).
    #[doc(alias = "rdma_bind_addr")]
    pub fn bind(&self, address: impl Into<CmAddr>) -> Result<()> {
        let address = address.into();
        let operation = Operation::Bind(address);
        let id = self.enter()?;
        id.note_address(&address);
        id.invalidating(|| {
            id.with_address_abi_for(
                &address,
                || {
                    let request = Bind::new(id.kernel_id(), to_storage(&address));
                    id.send(|| operation, request, &mut NoResponse, Attachment::None)
                },
                || {
                    let request = BindIp::new(id.kernel_id(), ip_slot(operation, &address)?);
                    id.send(|| operation, request, &mut NoResponse, Attachment::None)
                },
            )
        })
    }
}
