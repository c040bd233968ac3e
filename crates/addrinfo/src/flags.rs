//! How to resolve.

use bitflags::bitflags;

bitflags! {
    /// How to resolve. Source: the manual page `rdma_getaddrinfo(3)`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct AddrInfoFlags: u32 {
        /// The result is for listening: it has a source and no destination.
        #[doc(alias = "RAI_PASSIVE")]
        const PASSIVE = 1;
        /// The node is a numeric address; no name server is asked.
        #[doc(alias = "RAI_NUMERICHOST")]
        const NUMERICHOST = 2;
        /// Routes are not resolved.
        #[doc(alias = "RAI_NOROUTE")]
        const NOROUTE = 4;
        /// The family of the hints counts. Here it always does; the flag only makes
        /// hints without a family an error.
        #[doc(alias = "RAI_FAMILY")]
        const FAMILY = 8;
        /// The service is an InfiniBand service, looked up at the subnet administrator,
        /// without a node. Excludes `DNS`. Needs Linux 6.18 or newer and an active
        /// InfiniBand port.
        #[doc(alias = "RAI_SA")]
        const SA = 0x10;
        /// Names are host names, as they are without this flag. Excludes `SA`.
        #[doc(alias = "RAI_DNS")]
        const DNS = 0x20;
    }
}
