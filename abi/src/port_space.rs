//! Port spaces.

numbers! {
    /// `enum rdma_ucm_port_space`: what kind of service an id is for, and
    /// whose ports it uses (IBTA Vol 1 annex A11, bytes 4 and 5 of a service
    /// id).
    #[doc(alias = "rdma_port_space")]
    #[doc(alias = "rdma_ucm_port_space")]
    pub struct PortSpace(u16) in kernel "rdma/rdma_user_cm.h" {
        /// Datagrams compatible with IP over InfiniBand.
        IPOIB = 0x0002 => "RDMA_PS_IPOIB",
        /// Any InfiniBand service; the queue pair type is the caller's.
        IB = 0x013F => "RDMA_PS_IB",
        /// Reliable connections.
        TCP = 0x0106 => "RDMA_PS_TCP",
        /// Datagrams.
        UDP = 0x0111 => "RDMA_PS_UDP",
    }
}

/// The name, or the number where there is none.
impl core::fmt::Display for PortSpace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#06x}", self.0),
        }
    }
}
