//! What a device has reported of a request.

use rdmacm_abi::uverbs::{ImmediateOrKey, WcFlags, WcOpcode, WcStatus, WorkCompletion};

use super::{CompletionInfo, DatagramSource, WorkKind};

/// What a device has reported of a request: as much of its completion as is of use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
    /// A successful request of a send queue.
    Sent { opcode: WcOpcode, bytes: u32 },
    /// A successful request of a receive queue.
    Received {
        /// The lowest bits, which have all flags that are of use.
        flags: u8,
        service_level: u8,
        path_bits: u8,
        pkey_index: u16,
        lid: u16,
        opcode: WcOpcode,
        bytes: u32,
        immediate_or_key: ImmediateOrKey,
        source_qp_number: u32,
    },
    /// A failed request.
    Failed {
        status: WcStatus,
        vendor_error: u32,
        kind: WorkKind,
    },
}

impl Report {
    /// What a device has reported of a request of this kind.
    pub(crate) fn of(kind: WorkKind, wc: &WorkCompletion) -> Self {
        if wc.status != WcStatus::SUCCESS {
            return Self::Failed {
                status: wc.status,
                vendor_error: wc.vendor_error,
                kind,
            };
        }
        match kind {
            WorkKind::Send(_) => Self::sent(wc),
            WorkKind::Receive => Self::received(wc),
        }
    }

    /// Of a successful request of a send queue.
    #[inline]
    pub(crate) fn sent(wc: &WorkCompletion) -> Self {
        Self::Sent {
            opcode: wc.opcode,
            bytes: wc.byte_len,
        }
    }

    /// Of a successful request of a receive queue.
    #[inline]
    pub(crate) fn received(wc: &WorkCompletion) -> Self {
        let [flags, ..] = wc.flags.bits().to_le_bytes();
        Self::Received {
            flags,
            service_level: wc.service_level,
            path_bits: wc.destination_path_bits,
            pkey_index: wc.pkey_index,
            lid: wc.source_lid,
            opcode: wc.opcode,
            bytes: wc.byte_len,
            immediate_or_key: wc.immediate_or_key,
            source_qp_number: wc.source_qp_number,
        }
    }

    /// What was done.
    ///
    /// # Errors
    /// How it failed: the status, the vendor's code, and the kind of the request.
    #[inline]
    pub(super) fn done(self) -> Result<CompletionInfo, (WcStatus, u32, WorkKind)> {
        Ok(match self {
            Self::Failed {
                status,
                vendor_error,
                kind,
            } => return Err((status, vendor_error, kind)),
            Self::Sent { opcode, bytes } => CompletionInfo {
                opcode,
                bytes,
                immediate: None,
                invalidated: None,
                source: DatagramSource::NONE,
            },
            Self::Received {
                flags,
                service_level,
                path_bits,
                pkey_index,
                lid,
                opcode,
                bytes,
                immediate_or_key,
                source_qp_number,
            } => {
                let flags = WcFlags::from_bits_retain(flags.into());
                let with = |flag| flags.contains(flag);
                CompletionInfo {
                    opcode,
                    bytes,
                    immediate: with(WcFlags::WITH_IMM).then(|| immediate_or_key.immediate().get()),
                    invalidated: with(WcFlags::WITH_INVALIDATE).then(|| immediate_or_key.key()),
                    source: DatagramSource {
                        qp_number: source_qp_number,
                        has_grh: with(WcFlags::GRH),
                        pkey_index,
                        lid,
                        path_bits,
                        service_level,
                    },
                }
            }
        })
    }
}
