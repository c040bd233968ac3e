//! Messages of the connection manager, and how much private data they carry.

use rdmacm_abi::QpType;

use crate::error::{Error, Result};

/// The most private data that any message carries, in bytes.
pub(super) const MAX: usize = IWARP;
/// iWARP's length field is a byte, and siw overflows from 252 on.
const IWARP: usize = 251;

/// A message of the connection manager that carries private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CmMessage {
    /// A connect request, or a datagram service's (SIDR) request.
    Request,
    /// The reply that accepts.
    Accept,
    /// The reply that rejects.
    Reject,
}

/// The format of an id's messages, which determines how much private data fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageFormat {
    /// iWARP, with a length field.
    IWarp,
    /// InfiniBand and RoCE with IP addresses, whose header takes 36 bytes of a request.
    IbByIp,
    /// InfiniBand with native addresses.
    IbByGid,
}

impl CmMessage {
    /// How much private data the message carries, in bytes. Source: the kernel's `cm.h` and
    /// `cma.c`, IBTA Vol 1 §12.6 and §12.11.
    fn limit(self, qp_type: QpType, format: MessageFormat) -> usize {
        let datagrams = qp_type == QpType::UD;
        match (self, format) {
            (_, MessageFormat::IWarp) => IWARP,
            (Self::Request, MessageFormat::IbByIp) if datagrams => 180,
            (Self::Request, MessageFormat::IbByGid) if datagrams => 216,
            (Self::Request, MessageFormat::IbByIp) => 56,
            (Self::Request, MessageFormat::IbByGid) => 92,
            (Self::Accept | Self::Reject, _) if datagrams => 136,
            (Self::Accept, _) => 196,
            (Self::Reject, _) => 148,
        }
    }

    /// Refuses private data that is too long. Determining the format takes queries, so
    /// `format` is called only for data that does not fit every format.
    pub(crate) fn check(
        self,
        qp_type: QpType,
        data: &[u8],
        format: impl FnOnce() -> Result<MessageFormat>,
    ) -> Result<()> {
        if data.len() <= self.limit(qp_type, MessageFormat::IbByIp) {
            return Ok(());
        }
        let limit = self.limit(qp_type, format()?);
        if data.len() <= limit {
            Ok(())
        } else {
            Err(Error::private_data(data.len(), limit))
        }
    }
}

/// Refuses private data that is too long for any message.
pub(super) fn check_any(data: &[u8]) -> Result<()> {
    if data.len() <= MAX {
        Ok(())
    } else {
        Err(Error::private_data(data.len(), MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        message: CmMessage,
        qp_type: QpType,
        length: usize,
        format: MessageFormat,
    ) -> Result<()> {
        message.check(qp_type, &[0; 256][..length], || Ok(format))
    }

    #[test]
    fn every_message_has_its_limit() {
        for (message, qp_type, format, limit) in [
            (CmMessage::Request, QpType::RC, MessageFormat::IbByIp, 56),
            (CmMessage::Request, QpType::RC, MessageFormat::IbByGid, 92),
            (CmMessage::Request, QpType::RC, MessageFormat::IWarp, 251),
            (CmMessage::Request, QpType::UD, MessageFormat::IbByIp, 180),
            (CmMessage::Request, QpType::UD, MessageFormat::IbByGid, 216),
            (CmMessage::Accept, QpType::RC, MessageFormat::IbByIp, 196),
            (CmMessage::Accept, QpType::RC, MessageFormat::IWarp, 251),
            (CmMessage::Accept, QpType::UD, MessageFormat::IbByIp, 136),
            (CmMessage::Reject, QpType::RC, MessageFormat::IbByIp, 148),
            (CmMessage::Reject, QpType::RC, MessageFormat::IWarp, 251),
            (CmMessage::Reject, QpType::UD, MessageFormat::IbByIp, 136),
        ] {
            assert_eq!(check(message, qp_type, limit, format), Ok(()));
            let refused = check(message, qp_type, limit + 1, format);
            assert_eq!(refused, Err(Error::private_data(limit + 1, limit)));
        }
    }

    #[test]
    fn the_format_is_not_queried_for_data_that_fits_every_format() {
        let format = || unreachable!("56 bytes fit every format");
        assert_eq!(
            CmMessage::Request.check(QpType::RC, &[0; 56], format),
            Ok(())
        );
    }
}
