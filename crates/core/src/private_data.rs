//! Private data with a length.

use crate::error::{Error, Result};

/// Bytes of the length before the data.
const PREFIX: usize = 1;

/// The most data after the prefix that any transport carries, in bytes.
const MOST: usize = 250;

/// Private data with a length prefix, for two sides that both use it.
///
/// InfiniBand and RoCE transmit a field of fixed size, padded with zeros, so a receiver
/// cannot find the end of the sender's data. A prefix of one byte carries the length, and
/// leaves one byte less for data (55 of 56 bytes in a connect request on RoCE). A peer
/// that does not use the prefix receives it as data.
///
/// ```
/// use rdmacm_core::{ConnParam, PrivateData};
///
/// let hello = PrivateData::new(b"hello")?;
/// let param = ConnParam::new().private_data(hello.as_bytes())?;
///
/// let received = [&b"\x05hello"[..], &[0; 50]].concat();
/// assert_eq!(PrivateData::read(&received), Some(&b"hello"[..]));
/// # assert_ne!(param, ConnParam::new());
/// # Ok::<(), rdmacm_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateData(Vec<u8>);

impl PrivateData {
    /// Adds the prefix to the data.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`] for more than 250 bytes.
    pub fn new(data: &[u8]) -> Result<Self> {
        let length = u8::try_from(data.len())
            .ok()
            .filter(|_| data.len() <= MOST)
            .ok_or_else(|| Error::private_data(data.len(), MOST))?;
        let mut bytes = Vec::with_capacity(PREFIX + data.len());
        bytes.push(length);
        bytes.extend_from_slice(data);
        Ok(Self(bytes))
    }

    /// The bytes to send: the length, then the data.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The data in received private data; `None` if it is shorter than its prefix says,
    /// because the peer did not use one.
    #[must_use]
    pub fn read(received: &[u8]) -> Option<&[u8]> {
        let (length, rest) = received.split_first()?;
        rest.get(..usize::from(*length))
    }
}

impl AsRef<[u8]> for PrivateData {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn data_come_back_whatever_the_padding(
            data in proptest::collection::vec(any::<u8>(), 0..=250),
            padding in 0_usize..64,
        ) {
            let mut sent = PrivateData::new(&data).unwrap().as_bytes().to_vec();
            sent.resize(sent.len() + padding, 0);
            prop_assert_eq!(PrivateData::read(&sent), Some(&data[..]));
        }

        #[test]
        fn what_arrives_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            if let Some(data) = PrivateData::read(&bytes) {
                prop_assert!(data.len() < bytes.len());
            }
        }
    }

    #[test]
    fn the_length_precedes_the_data() {
        let data = PrivateData::new(b"hi").unwrap();
        assert_eq!(data.as_ref(), b"\x02hi");
    }

    #[test]
    fn a_length_beyond_what_came_is_none() {
        assert_eq!(PrivateData::read(&[]), None);
        assert_eq!(PrivateData::read(&[2, 7]), None);
        assert_eq!(PrivateData::read(&[0]), Some(&[][..]));
        assert!(PrivateData::new(&[0; 251]).is_err());
    }
}
