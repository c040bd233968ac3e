//! Netlink messages and their attributes, read with every length checked.

use std::io;

/// `nlmsghdr`: length u32, type u16, flags u16, sequence u32, port u32.
const HEADER_BYTES: usize = 16;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;
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

/// More than any request of this crate has: a header, an index and a short text.
const MOST_BYTES: usize = 64;

/// A request with attributes.
#[derive(Debug)]
pub(super) struct Request {
    bytes: [u8; MOST_BYTES],
    length: usize,
}

impl Request {
    /// `None` if the attributes are too long.
    pub(super) fn new(operation: u16, dump: bool, key: &[(u16, Value<'_>)]) -> Option<Self> {
        let flags = NLM_F_REQUEST | if dump { NLM_F_DUMP } else { 0 };
        let mut request = Self {
            bytes: [0; MOST_BYTES],
            length: size_of::<u32>(),
        };
        request.put(&(NLDEV | operation).to_ne_bytes())?;
        request.put(&flags.to_ne_bytes())?;
        request.put(&1_u32.to_ne_bytes())?;
        request.put(&0_u32.to_ne_bytes())?;
        for (attribute, value) in key {
            match value {
                Value::Number(number) => {
                    request.attribute(*attribute, &number.to_ne_bytes(), 0)?;
                }
                // The kernel wants the NUL.
                Value::Text(text) => request.attribute(*attribute, text.as_bytes(), 1)?,
            }
        }
        let length = u32::try_from(request.length).ok()?;
        *request.bytes.first_chunk_mut()? = length.to_ne_bytes();
        Some(request)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// One attribute with this many zeros after its value, padded to a whole number of
    /// words.
    fn attribute(&mut self, attribute: u16, value: &[u8], zeros: usize) -> Option<()> {
        let length = 4 + value.len() + zeros;
        let end = aligned(self.length + length);
        self.put(&u16::try_from(length).ok()?.to_ne_bytes())?;
        self.put(&attribute.to_ne_bytes())?;
        self.put(value)?;
        self.length = end;
        (end <= MOST_BYTES).then_some(())
    }

    fn put(&mut self, value: &[u8]) -> Option<()> {
        let end = self.length + value.len();
        self.bytes.get_mut(self.length..end)?.copy_from_slice(value);
        self.length = end;
        Some(())
    }
}

/// One message of an answer.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// An object's attributes.
    Object(Attributes<'a>),
    /// The end of a dump.
    Done,
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
        let payload = self.0.get(HEADER_BYTES..length)?;
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        Some(match kind {
            // Both carry an error number, negative; a dump that fails says so
            // only in its end.
            NLMSG_DONE | NLMSG_ERROR => match read_i32(payload, 0)? {
                errno if errno < 0 => Message::Failed(errno.wrapping_neg()),
                _ => Message::Done,
            },
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

/// The attributes of one object, with their numbers; broken ones end the list.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, Attribute<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let [length, more, low, high] = *self.0.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([length, more]));
        // The two top bits say "nested" and "network order".
        let kind = u16::from_ne_bytes([low, high]) & 0x3fff;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(aligned(length)..).unwrap_or_default();
        Some((kind, Attribute(value)))
    }
}

/// The value of one attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute<'a>(&'a [u8]);

impl<'a> Attribute<'a> {
    pub(crate) fn u8(self) -> Option<u8> {
        self.0.first().copied()
    }

    pub(crate) fn u32(self) -> Option<u32> {
        read_u32(self.0, 0)
    }

    pub(crate) fn u64(self) -> Option<u64> {
        self.0.first_chunk().copied().map(u64::from_ne_bytes)
    }

    /// A string up to its NUL.
    pub(crate) fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()).ok()
    }

    /// The bytes of a string up to its NUL.
    pub(crate) fn bytes(self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        self.0
            .get(..end.unwrap_or(self.0.len()))
            .unwrap_or_default()
    }
}

fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
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
        let Some(Ok(Message::Object(mut attributes))) = reply.next() else {
            panic!("an object comes first");
        };
        let mut next = || attributes.next().unwrap();
        let (kind, index) = next();
        assert_eq!((kind, index.u32(), index.u64()), (1, Some(7), None));
        let (kind, name) = next();
        assert_eq!((kind, name.text()), (2, Some("rxe0")));
        let (kind, guid) = next();
        assert_eq!((kind, guid.u64()), (6, Some(0x1122)));
        let (kind, state) = next();
        assert_eq!((kind, state.u8(), state.u32()), (12, Some(4), None));
        assert!(attributes.next().is_none());
        assert!(matches!(reply.next(), Some(Ok(Message::Done))));
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
    fn a_request_says_what_it_asks() {
        let request = Request::new(5, true, &[(1, Value::Number(9))]).unwrap();
        let bytes = request.bytes();
        assert_eq!(bytes.len(), 24);
        assert_eq!(read_u32(bytes, 0), Some(24));
        assert_eq!(read_u16(bytes, 4), Some((5 << 10) | 5));
        assert_eq!(read_u16(bytes, 6), Some(0x301));
        let (kind, index) = Attributes(&bytes[HEADER_BYTES..]).next().unwrap();
        assert_eq!((kind, index.u32()), (1, Some(9)));
    }

    #[test]
    fn a_text_ends_in_a_nul_and_fills_whole_words() {
        let key = [(69, Value::Text("uverbs")), (1, Value::Number(9))];
        let request = Request::new(15, false, &key).unwrap();
        let bytes = request.bytes();
        assert_eq!(bytes.len(), 16 + 12 + 8);
        assert_eq!(read_u32(bytes, 0), Some(36));
        assert_eq!(bytes[16..20], [11_u16, 69].map(u16::to_ne_bytes).concat());
        assert_eq!(&bytes[20..28], b"uverbs\0\0");
        let (kind, index) = Attributes(&bytes[28..]).next().unwrap();
        assert_eq!((kind, index.u32()), (1, Some(9)));
    }

    #[test]
    fn a_text_that_does_not_fit_makes_no_request() {
        let fits = "x".repeat(MOST_BYTES - HEADER_BYTES - 4 - 1);
        assert!(Request::new(15, false, &[(69, Value::Text(&fits))]).is_some());
        let too_long = fits + "x";
        assert!(Request::new(15, false, &[(69, Value::Text(&too_long))]).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_and_always_end(bytes: Vec<u8>) {
            for message in Reply::messages(&bytes) {
                if let Ok(Message::Object(attributes)) = message {
                    for (_, value) in attributes {
                        value.text();
                        value.u64();
                    }
                }
            }
        }
    }
}
