//! The messages that report writes.

/// The largest number of bytes that one data message reports.
pub const MAX_DATA: u32 = (1 << 29) - 1;

/// What a message of 32 bits says: the operation in its upper three bits, a number in the
/// other 29.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// This many bytes were written at the current position.
    #[doc(alias = "RS_OP_DATA")]
    Data(u32),
    /// The peer may send messages up to this count, and may have announced more memory.
    /// The count is absolute, modulo 2^16.
    #[doc(alias = "RS_OP_SGL")]
    Credits(u16),
    /// The entry with this index of the map table was written.
    #[doc(alias = "RS_OP_IOMAP_SGL")]
    Map(u32),
    /// The state of the stream changes.
    #[doc(alias = "RS_OP_CTRL")]
    Control(Control),
    /// A message that has no effect.
    Ignored,
    /// An operation that the protocol does not have.
    Reserved(u8),
}

/// A message without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// The peer closes both directions.
    #[doc(alias = "RS_CTRL_DISCONNECT")]
    Disconnect,
    /// The peer sends no more data.
    #[doc(alias = "RS_CTRL_SHUTDOWN")]
    Shutdown,
}

const DATA: u32 = 0;
/// Used by librdmacm for its own bookkeeping.
const WRITE: u32 = 2;
const CREDITS: u32 = 4;
const MAP: u32 = 6;
const CONTROL: u32 = 7;

const DISCONNECT: u32 = 0;
const SHUTDOWN: u32 = 2;

const NUMBER_BITS: u32 = 29;

impl Message {
    /// The message as a number; `None` for a number that does not fit, and for what is never
    /// sent.
    #[must_use]
    pub fn encode(self) -> Option<u32> {
        let (operation, number) = match self {
            Self::Data(bytes) => (DATA, bytes),
            Self::Credits(limit) => (CREDITS, limit.into()),
            Self::Map(index) => (MAP, index),
            Self::Control(Control::Disconnect) => (CONTROL, DISCONNECT),
            Self::Control(Control::Shutdown) => (CONTROL, SHUTDOWN),
            Self::Ignored | Self::Reserved(_) => return None,
        };
        (number <= MAX_DATA).then_some(operation << NUMBER_BITS | number)
    }

    /// The message of this number.
    #[must_use]
    pub fn decode(word: u32) -> Self {
        let number = word & MAX_DATA;
        match word >> NUMBER_BITS {
            DATA => Self::Data(number),
            // librdmacm does not cut its count to 16 bits.
            CREDITS => Self::Credits((number & 0xffff) as u16),
            MAP => Self::Map(number),
            CONTROL if number == DISCONNECT => Self::Control(Control::Disconnect),
            CONTROL if number == SHUTDOWN => Self::Control(Control::Shutdown),
            CONTROL | WRITE => Self::Ignored,
            operation => Self::Reserved((operation & 7) as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_numbers_of_librdmacm() {
        for (word, message) in [
            (0x0000_03e8, Message::Data(1000)),
            (0x8000_0180, Message::Credits(384)),
            (0xc000_0003, Message::Map(3)),
            (0xe000_0000, Message::Control(Control::Disconnect)),
            (0xe000_0002, Message::Control(Control::Shutdown)),
        ] {
            assert_eq!(Message::decode(word), message);
            assert_eq!(message.encode(), Some(word));
        }
    }

    #[test]
    fn a_count_of_credits_is_cut_to_16_bits() {
        assert_eq!(Message::decode(0x8001_fffd), Message::Credits(0xfffd));
    }

    #[test]
    fn unknown_controls_are_ignored_and_reserved_operations_are_not() {
        assert_eq!(Message::decode(0xe000_0001), Message::Ignored);
        assert_eq!(Message::decode(0xe123_4567), Message::Ignored);
        assert_eq!(Message::decode(0x4000_0001), Message::Ignored);
        for operation in [1, 3, 5] {
            let message = Message::decode(u32::from(operation) << 29 | 7);
            assert_eq!(message, Message::Reserved(operation));
            assert_eq!(message.encode(), None);
        }
    }

    #[test]
    fn a_number_that_does_not_fit_is_not_encoded() {
        assert_eq!(Message::Data(MAX_DATA).encode(), Some(MAX_DATA));
        assert_eq!(Message::Data(MAX_DATA + 1).encode(), None);
        assert_eq!(Message::Map(u32::MAX).encode(), None);
    }
}
