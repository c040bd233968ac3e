//! Netlink messages and their attributes, read with every length checked.

use std::io;

/// `nlmsghdr`: length u32, type u16, flags u16, sequence u32, port u32.
const HEADER_BYTES: usize = 16;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x010;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `RDMA_NL_NLDEV`, in the upper bits of a message's type.
const NLDEV: u16 = 5 << 10;

/// The value of an attribute in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Number(u32),
    Text(&'a str),
}

/// A request with attributes.
pub(super) fn request(operation: u16, dump: bool, key: &[(u16, Value<'_>)]) -> Vec<u8> {
    let flags = NLM_F_REQUEST | if dump { NLM_F_DUMP } else { 0 };
    let mut bytes = vec![0; size_of::<u32>()];
    bytes.extend((NLDEV | operation).to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    for (attribute, value) in key {
        match value {
            Value::Number(number) => put(&mut bytes, *attribute, &number.to_ne_bytes(), &[]),
            // The kernel wants the NUL.
            Value::Text(text) => put(&mut bytes, *attribute, text.as_bytes(), &[0]),
        }
    }
    // Keys are a handful of words: the length is far below u32's range.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    for (place, byte) in bytes.iter_mut().zip(length.to_ne_bytes()) {
        *place = byte;
    }
    bytes
}

/// One attribute, padded to a whole number of words.
fn put(bytes: &mut Vec<u8>, attribute: u16, value: &[u8], end: &[u8]) {
    let length = 4 + value.len() + end.len();
    bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes.extend(end);
    bytes.resize(aligned(bytes.len()), 0);
}

/// One message of an answer.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// An object's attributes.
    Object(Attributes<'a>),
    /// The end of a dump.
    Done {
        /// Whether the list changed while it was being dumped.
        interrupted: bool,
    },
    /// An object of a list that changed while it was being dumped.
    Interrupted,
    /// The request failed with this errno, positive.
    Failed(i32),
}

/// The messages of one datagram.
#[derive(Debug)]
pub(super) struct Reply<'a>(&'a [u8]);

impl<'a> Reply<'a> {
    pub(super) fn messages(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self) -> Option<Message<'a>> {
        let length = read_u32(self.0, 0)? as usize;
        let kind = read_u16(self.0, 4)?;
        let flags = read_u16(self.0, 6)?;
        let payload = self.0.get(HEADER_BYTES..length)?;
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        let interrupted = flags & NLM_F_DUMP_INTR != 0;
        Some(match kind {
            // Both carry an error number, negative; a dump that fails says so
            // only in its end.
            NLMSG_DONE | NLMSG_ERROR => match read_i32(payload, 0)? {
                errno if errno < 0 => Message::Failed(errno.wrapping_neg()),
                _ => Message::Done { interrupted },
            },
            _ if interrupted => Message::Interrupted,
            _ => Message::Object(Attributes(payload)),
        })
    }
}

impl<'a> Iterator for Reply<'a> {
    type Item = io::Result<Message<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        Some(self.take().ok_or_else(|| {
            self.0 = &[];
            io::ErrorKind::InvalidData.into()
        }))
    }
}

/// The attributes of one object; broken ones end the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    fn find(self, wanted: u16) -> Option<&'a [u8]> {
        let mut rest = self.0;
        loop {
            let length = usize::from(read_u16(rest, 0)?);
            // The two top bits say "nested" and "network order".
            let kind = read_u16(rest, 2)? & 0x3fff;
            let payload = rest.get(4..length)?;
            if kind == wanted {
                return Some(payload);
            }
            rest = rest.get(aligned(length)..)?;
        }
    }

    pub(crate) fn u8(self, wanted: u16) -> Option<u8> {
        self.find(wanted)?.first().copied()
    }

    pub(crate) fn u32(self, wanted: u16) -> Option<u32> {
        read_u32(self.find(wanted)?, 0)
    }

    pub(crate) fn u64(self, wanted: u16) -> Option<u64> {
        let bytes = self.find(wanted)?.get(..8)?.try_into().ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    /// A string up to its NUL.
    pub(crate) fn string(self, wanted: u16) -> Option<String> {
        let text = self.find(wanted)?.split(|byte| *byte == 0).next()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(bytes))
}

fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    read_u32(bytes, at).map(|word| i32::from_ne_bytes(word.to_ne_bytes()))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(HEADER_BYTES + payload.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(4 + payload.len())
            .unwrap()
            .to_ne_bytes()
            .to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_dump_is_read_object_by_object() {
        let mut object = attribute(1, &7_u32.to_ne_bytes());
        object.extend(attribute(2, b"rxe0\0"));
        object.extend(attribute(6, &0x1122_u64.to_ne_bytes()));
        object.extend(attribute(12, &[4]));
        let mut bytes = message(NLDEV | 1, &object);
        bytes.extend(message(NLMSG_DONE, &0_u32.to_ne_bytes()));
        let mut reply = Reply::messages(&bytes);
        let Some(Ok(Message::Object(attributes))) = reply.next() else {
            panic!("an object comes first");
        };
        assert_eq!(attributes.u32(1), Some(7));
        assert_eq!(attributes.string(2).as_deref(), Some("rxe0"));
        assert_eq!(attributes.u64(6), Some(0x1122));
        assert_eq!(attributes.u8(12), Some(4));
        assert_eq!(attributes.u32(3), None);
        assert!(matches!(
            reply.next(),
            Some(Ok(Message::Done { interrupted: false }))
        ));
        assert!(reply.next().is_none());
    }

    #[test]
    fn an_error_message_gives_its_errno() {
        let bytes = message(NLMSG_ERROR, &(-libc::ENODEV).to_ne_bytes());
        assert!(matches!(
            Reply::messages(&bytes).next(),
            Some(Ok(Message::Failed(libc::ENODEV)))
        ));
    }

    #[test]
    fn the_end_of_a_failed_dump_has_its_errno() {
        let bytes = message(NLMSG_DONE, &(-libc::EINVAL).to_ne_bytes());
        assert!(matches!(
            Reply::messages(&bytes).next(),
            Some(Ok(Message::Failed(libc::EINVAL)))
        ));
    }

    #[test]
    fn a_dump_of_a_list_that_changed_is_known() {
        let mut bytes = message(NLDEV | 1, &attribute(1, &7_u32.to_ne_bytes()));
        bytes[6..8].copy_from_slice(&NLM_F_DUMP_INTR.to_ne_bytes());
        assert!(matches!(
            Reply::messages(&bytes).next(),
            Some(Ok(Message::Interrupted))
        ));
    }

    #[test]
    fn a_request_says_what_it_asks() {
        let bytes = request(5, true, &[(1, Value::Number(9))]);
        assert_eq!(bytes.len(), 24);
        assert_eq!(read_u32(&bytes, 0), Some(24));
        assert_eq!(read_u16(&bytes, 4), Some((5 << 10) | 5));
        assert_eq!(read_u16(&bytes, 6), Some(0x301));
        assert_eq!(Attributes(&bytes[HEADER_BYTES..]).u32(1), Some(9));
    }

    #[test]
    fn a_text_ends_in_a_nul_and_fills_whole_words() {
        let key = [(69, Value::Text("uverbs")), (1, Value::Number(9))];
        let bytes = request(15, false, &key);
        assert_eq!(bytes.len(), 16 + 12 + 8);
        assert_eq!(read_u32(&bytes, 0), Some(36));
        assert_eq!(bytes[16..20], [11_u16, 69].map(u16::to_ne_bytes).concat());
        assert_eq!(&bytes[20..28], b"uverbs\0\0");
        assert_eq!(Attributes(&bytes[16..]).u32(1), Some(9));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_and_always_end(bytes: Vec<u8>) {
            for message in Reply::messages(&bytes) {
                if let Ok(Message::Object(attributes)) = message {
                    attributes.string(2);
                    attributes.u64(6);
                }
            }
        }
    }
}
