//! How much private data there is room for.

use rdmacm_abi::QpType;

use crate::error::{Error, Result};

/// What the widest transport carries. iWARP's length field has a byte, and
/// lengths from 252 on overflow in siw.
pub(super) const MOST: usize = IWARP;
const IWARP: usize = 251;

/// The message of the connection manager that carries private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CmMessage {
    /// A connect request, or a question for a datagram service.
    Request,
    /// The answer that accepts.
    Accept,
    /// The answer that rejects.
    Reject,
}

/// Where an id is, as far as its messages' room goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// iWARP, whose messages tell their length.
    IWarp,
    /// InfiniBand and RoCE by IP address, which takes 36 bytes of a request.
    IbByIp,
    /// InfiniBand by its own address.
    IbByGid,
}

impl CmMessage {
    /// The room for private data, in bytes. Source: the kernel's `cm.h` and
    /// `cma.c`, IBTA Vol 1 §12.6 and §12.11.
    fn limit(self, qp_type: QpType, place: Place) -> usize {
        let datagrams = qp_type == QpType::UD;
        match (self, place) {
            (_, Place::IWarp) => IWARP,
            (Self::Request, Place::IbByIp) if datagrams => 180,
            (Self::Request, Place::IbByGid) if datagrams => 216,
            (Self::Request, Place::IbByIp) => 56,
            (Self::Request, Place::IbByGid) => 92,
            (Self::Accept | Self::Reject, _) if datagrams => 136,
            (Self::Accept, _) => 196,
            (Self::Reject, _) => 148,
        }
    }

    /// Refuses data there is no room for. Where the id is costs questions, so it
    /// is asked only for data that do not fit everywhere.
    pub(crate) fn check(
        self,
        qp_type: QpType,
        data: &[u8],
        place: impl FnOnce() -> Result<Place>,
    ) -> Result<()> {
        if data.len() <= self.limit(qp_type, Place::IbByIp) {
            return Ok(());
        }
        let limit = self.limit(qp_type, place()?);
        if data.len() <= limit {
            Ok(())
        } else {
            Err(Error::private_data(data.len(), limit))
        }
    }
}

pub(super) fn check_any(data: &[u8]) -> Result<()> {
    if data.len() <= MOST {
        Ok(())
    } else {
        Err(Error::private_data(data.len(), MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: CmMessage, qp_type: QpType, length: usize, place: Place) -> Result<()> {
        message.check(qp_type, &[0; 256][..length], || Ok(place))
    }

    #[test]
    fn every_message_has_its_room() {
        for (message, qp_type, place, room) in [
            (CmMessage::Request, QpType::RC, Place::IbByIp, 56),
            (CmMessage::Request, QpType::RC, Place::IbByGid, 92),
            (CmMessage::Request, QpType::RC, Place::IWarp, 251),
            (CmMessage::Request, QpType::UD, Place::IbByIp, 180),
            (CmMessage::Request, QpType::UD, Place::IbByGid, 216),
            (CmMessage::Accept, QpType::RC, Place::IbByIp, 196),
            (CmMessage::Accept, QpType::RC, Place::IWarp, 251),
            (CmMessage::Accept, QpType::UD, Place::IbByIp, 136),
            (CmMessage::Reject, QpType::RC, Place::IbByIp, 148),
            (CmMessage::Reject, QpType::RC, Place::IWarp, 251),
            (CmMessage::Reject, QpType::UD, Place::IbByIp, 136),
        ] {
            assert_eq!(check(message, qp_type, room, place), Ok(()));
            let refused = check(message, qp_type, room + 1, place);
            assert_eq!(refused, Err(Error::private_data(room + 1, room)));
        }
    }

    #[test]
    fn nobody_asks_where_an_id_is_for_data_that_fit_everywhere() {
        let unasked = || unreachable!("56 bytes fit everywhere");
        assert_eq!(
            CmMessage::Request.check(QpType::RC, &[0; 56], unasked),
            Ok(())
        );
    }
}
