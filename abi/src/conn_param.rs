//! Parameters of a connection.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::MAX_PRIVATE_DATA;

/// `struct rdma_ucm_conn_param`: what CONNECT and ACCEPT send, and what the
/// events of connected (RC, UC, XRC) ids carry.
#[doc(alias = "rdma_ucm_conn_param", alias = "rdma_conn_param")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ConnParam {
    /// The queue pair's number, 24 bits: the local one in a request, the
    /// peer's in an event.
    #[doc(alias = "qp_num")]
    pub qp_number: u32,
    /// The queue key; the kernel looks at it only if the source is `AF_IB`.
    pub qkey: u32,
    /// The private data, zeros after it.
    pub private_data: [u8; MAX_PRIVATE_DATA],
    /// Bytes of `private_data` that are used. In an event of InfiniBand or
    /// RoCE the fixed size of the message's field, on iWARP the exact length.
    pub private_data_len: u8,
    /// Whether the queue pair has a shared receive queue: 0 or 1.
    pub srq: u8,
    /// RDMA reads and atomics this side answers at a time.
    pub responder_resources: u8,
    /// RDMA reads and atomics this side has outstanding at a time.
    pub initiator_depth: u8,
    /// Whether end-to-end flow control is wanted: 0 or 1.
    pub flow_control: u8,
    /// Retries of a lost packet, 0 to 7.
    pub retry_count: u8,
    /// Retries when the receiver is not ready, 0 to 7; 7 is without limit.
    pub rnr_retry_count: u8,
    /// 1 where the structure holds something. CONNECT requires 1. In ACCEPT, 0
    /// on the active side means "ready to use" and no more.
    pub valid: u8,
}

impl ConnParam {
    /// All zero, not even valid: as ACCEPT expects it on the active side.
    pub const ZERO: Self = Self {
        qp_number: 0,
        qkey: 0,
        private_data: [0; MAX_PRIVATE_DATA],
        private_data_len: 0,
        srq: 0,
        responder_resources: 0,
        initiator_depth: 0,
        flow_control: 0,
        retry_count: 0,
        rnr_retry_count: 0,
        valid: 0,
    };

    /// Valid parameters for a queue pair, all else zero.
    #[must_use]
    pub const fn new(qp_number: u32) -> Self {
        Self {
            qp_number,
            valid: 1,
            ..Self::ZERO
        }
    }

    /// The same with `data` as its private data.
    ///
    /// # Errors
    ///
    /// [`PrivateDataTooLong`] above 255 bytes.
    pub fn with_private_data(self, data: &[u8]) -> Result<Self, PrivateDataTooLong> {
        let (private_data, private_data_len) = private_data(data)?;
        Ok(Self {
            private_data,
            private_data_len,
            ..self
        })
    }

    /// The used bytes of the private data.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.private_data[..usize::from(self.private_data_len)]
    }
}

/// The length of private data has a `u8`; every transport carries less still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateDataTooLong {
    /// Bytes there were.
    pub len: usize,
}

impl core::fmt::Display for PrivateDataTooLong {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} bytes of private data, at most 255 fit", self.len)
    }
}

impl core::error::Error for PrivateDataTooLong {}

/// A private data buffer and its length field.
pub(crate) fn private_data(
    data: &[u8],
) -> Result<([u8; MAX_PRIVATE_DATA], u8), PrivateDataTooLong> {
    let too_long = PrivateDataTooLong { len: data.len() };
    let len = u8::try_from(data.len()).map_err(|_| too_long)?;
    let mut buffer = [0; MAX_PRIVATE_DATA];
    buffer[..data.len()].copy_from_slice(data);
    Ok((buffer, len))
}
