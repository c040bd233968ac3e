//! Parameters of datagram services.

use super::ConnParam;
use crate::error::Result;

/// The queue key of every datagram id with IP addresses in
/// [`PortSpace::UDP`](crate::PortSpace::UDP): a queue pair receives only what is sent
/// with its own. Source: the kernel's `include/rdma/rdma_cm_ib.h`.
pub const RDMA_UDP_QKEY: u32 = 0x0123_4567;

/// The parameters with which an id requests a datagram service or offers one.
///
/// Connecting an unreliable datagram id requests the address of the peer's service
/// (SIDR): the request carries private data only, the reply names the queue
/// pair. Source: `rdma_connect(3)`, `rdma_accept(3)`, IBTA Vol 1 §12.11.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "rdma_ud_param")]
pub struct UdParam(ConnParam);

impl UdParam {
    /// The default parameters.
    #[must_use]
    pub fn new() -> Self {
        Self(ConnParam::new())
    }

    /// The number of the service's queue pair, for accepting.
    #[must_use]
    #[doc(alias = "qp_num")]
    pub fn qp_number(self, number: u32) -> Self {
        Self(self.0.qp_number(number))
    }

    /// The queue key to use, for accepting; the kernel takes it only on ids
    /// with InfiniBand addresses, all others use [`RDMA_UDP_QKEY`].
    #[must_use]
    pub fn qkey(mut self, qkey: u32) -> Self {
        self.0.qkey = qkey;
        self
    }

    /// Private data for the peer: at most 180 bytes of a request (216 with InfiniBand
    /// addresses, of which the first must be 0), 136 of a reply. The call that sends it checks the
    /// limit.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`](crate::Error::PrivateDataTooLong) for more
    /// than 251 bytes, the largest limit.
    #[doc(alias = "private_data_len")]
    pub fn private_data(self, data: &[u8]) -> Result<Self> {
        Ok(Self(self.0.private_data(data)?))
    }
}

impl Default for UdParam {
    fn default() -> Self {
        Self::new()
    }
}

impl From<UdParam> for ConnParam {
    fn from(param: UdParam) -> Self {
        param.0
    }
}

impl From<&UdParam> for ConnParam {
    fn from(param: &UdParam) -> Self {
        param.0.clone()
    }
}
