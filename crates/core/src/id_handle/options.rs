//! Options of an id. The kernel accepts each in certain states only.

use rdmacm_abi::{IbOption, IdOption, NoResponse, PathRecordData, SetOption};
use zerocopy::IntoBytes;

use super::IdHandle;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::path::PathData;
use crate::ucma::Attachment;

/// The largest exponent of a queue pair's timeout, which has 5 bits.
const MAX_ACK_TIMEOUT: u8 = 31;

impl IdHandle {
    /// Sets the type of service of routes resolved afterwards: the traffic class
    /// on RoCE, the class of service of the query to the subnet administrator on
    /// InfiniBand over IPv4. iWARP drivers may use it; siw ignores it.
    /// Source: `rdma_set_option(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::Command`] if the kernel refuses.
    #[doc(alias = "RDMA_OPTION_ID_TOS")]
    #[doc(alias = "rdma_set_option")]
    pub fn set_tos(&self, tos: u8) -> Result<()> {
        self.set(Operation::SetTos(tos), IdOption::TOS, &[tos])
    }

    /// Shares the address and port with other ids that allow it too, as long as none of
    /// them listens. Source: `rdma_set_option(3)`.
    ///
    /// # Errors
    /// [`Error::Command`]: `EINVAL` for an id that listens, and for `false` on an id that
    /// is bound.
    #[doc(alias = "RDMA_OPTION_ID_REUSEADDR")]
    #[doc(alias = "rdma_set_option")]
    pub fn set_reuse_addr(&self, on: bool) -> Result<()> {
        let value = i32::from(on).to_ne_bytes();
        self.set(Operation::SetReuseAddr(on), IdOption::REUSEADDR, &value)
    }

    /// Restricts an IPv6 wildcard address to IPv6, so that another id can use the port
    /// for IPv4. Source: `rdma_set_option(3)`.
    ///
    /// # Errors
    /// [`Error::Command`]: `EINVAL` for an id that has begun to resolve an
    /// address or to listen.
    #[doc(alias = "RDMA_OPTION_ID_AFONLY")]
    #[doc(alias = "rdma_set_option")]
    pub fn set_af_only(&self, on: bool) -> Result<()> {
        let value = i32::from(on).to_ne_bytes();
        self.set(Operation::SetAfOnly(on), IdOption::AFONLY, &value)
    }

    /// Sets how long the queue pair waits for an acknowledgement:
    /// 4.096 µs × 2^`exponent`, 0 without a limit. Takes effect when the queue pair moves
    /// to RTS. Set before the route is resolved on RoCE, it also determines how long
    /// [`connect`](Self::connect) waits for the peer. Source: `rdma_set_option(3)`, IBTA Vol 1
    /// §9.7.6.1.3.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for an exponent over 31. [`Error::Command`]:
    /// `EINVAL` for an id that is not for reliable connected queue pairs.
    #[doc(alias = "RDMA_OPTION_ID_ACK_TIMEOUT")]
    #[doc(alias = "rdma_set_option")]
    pub fn set_ack_timeout(&self, exponent: u8) -> Result<()> {
        let operation = Operation::SetAckTimeout(exponent);
        if exponent > MAX_ACK_TIMEOUT {
            return Err(Error::invalid(operation, "the exponent has 5 bits"));
        }
        self.set(operation, IdOption::ACK_TIMEOUT, &[exponent])
    }

    /// Sets the route instead of resolving it; a
    /// [`RouteResolved`](crate::EventKind::RouteResolved) event follows. The kernel uses
    /// the first record whose flags are exactly [`PathData::USABLE`]. Source: the kernel's
    /// `ucma_set_ib_path`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] without a record, and for values beyond the widths of their fields.
    /// [`Error::Command`]: `EINVAL` for an id
    /// whose address is not resolved or whose route is, and if no record has the flags;
    /// `ENODEV` on RoCE if no network interface carries the route.
    #[doc(alias = "RDMA_OPTION_IB_PATH")]
    #[doc(alias = "rdma_set_option")]
    pub fn set_ib_path(&self, paths: &[PathData]) -> Result<()> {
        let operation = Operation::SetIbPath;
        // The kernel reads the first usable record only.
        let usable = |path: &&PathData| path.flags == PathData::USABLE;
        let Some(path) = paths.iter().find(usable).or(paths.first()) else {
            return Err(Error::invalid(operation, "there is no path to set"));
        };
        let value = PathRecordData::from(path);
        if PathData::from(&value) != *path {
            let reason = "a field of the path has more bits than the record has for it";
            return Err(Error::invalid(operation, reason));
        }
        let id = self.enter()?;
        let request = SetOption::ib(id.kernel_id(), IbOption::PATH);
        let value = Attachment::OptionValue(value.as_bytes());
        id.set_given_path();
        id.invalidating(|| id.send(|| operation, request, &mut NoResponse, value))
    }

    fn set(&self, operation: Operation, option: IdOption, value: &[u8]) -> Result<()> {
        let id = self.enter()?;
        let request = SetOption::id(id.kernel_id(), option);
        let value = Attachment::OptionValue(value);
        id.send(|| operation, request, &mut NoResponse, value)
    }
}
