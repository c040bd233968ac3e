//! Commands as they are written.

use core::marker::PhantomData;

use zerocopy::IntoBytes;

/// Bytes of the header before each request, of both interfaces.
const HEADER: usize = 8;

/// The bytes of one `write(2)`: a header and a request with the addresses, sizes and
/// descriptors that the kernel takes from it. `N` is the largest size in bytes.
///
/// It borrows the buffers whose addresses it contains, the response exclusively, so
/// they stay valid while the frame exists. Offsets are in bytes from the start of the
/// request. A method returns `None`, and changes nothing, if a value does not fit.
///
/// ```
/// use rdmacm_abi::{Command, CreateId, CreateIdResponse, Frame, Header, PortSpace, QpType};
/// use zerocopy::{FromZeros, IntoBytes};
///
/// let request = CreateId::new(1, PortSpace::TCP, QpType::RC);
/// let mut response = CreateIdResponse::new_zeroed();
/// let header = Header::of::<CreateId>();
/// let mut frame = Frame::<64>::new(header.as_bytes(), request.as_bytes()).unwrap();
/// frame.set_response(8, response.as_mut_bytes()).unwrap();
/// assert_eq!(frame.bytes().len(), 8 + 24);
/// ```
#[derive(Debug)]
pub struct Frame<'buffers, const N: usize> {
    bytes: [u8; N],
    length: usize,
    buffers: PhantomData<&'buffers mut [u8]>,
}

impl<'buffers, const N: usize> Frame<'buffers, N> {
    /// A frame of this header, of 8 bytes, and request.
    #[must_use]
    pub fn new(header: &[u8], request: &[u8]) -> Option<Self> {
        let length = HEADER.checked_add(request.len())?;
        let mut bytes = [0; N];
        let (head, body) = bytes.get_mut(..length)?.split_at_mut_checked(HEADER)?;
        if header.len() != HEADER {
            return None;
        }
        head.copy_from_slice(header);
        body.copy_from_slice(request);
        Some(Self {
            bytes,
            length,
            buffers: PhantomData,
        })
    }

    /// Writes the address of the response, to which the kernel writes.
    #[must_use]
    pub fn set_response(&mut self, offset: usize, response: &'buffers mut [u8]) -> Option<()> {
        let address = response.as_mut_ptr().expose_provenance();
        self.put(offset, (address as u64).as_bytes())
    }

    /// Writes address and size of an option's value, which the kernel reads.
    #[must_use]
    pub fn set_value(
        &mut self,
        offset: usize,
        size_offset: usize,
        value: &'buffers [u8],
    ) -> Option<()> {
        let address = value.as_ptr().expose_provenance();
        let size = u32::try_from(value.len()).ok()?;
        self.slot(size_offset, size_of::<u32>())?;
        self.put(offset, (address as u64).as_bytes())?;
        self.put(size_offset, size.as_bytes())
    }

    /// Writes a file descriptor.
    #[must_use]
    pub fn set_descriptor(&mut self, offset: usize, fd: i32) -> Option<()> {
        self.put(offset, fd.as_bytes())
    }

    /// The bytes to write.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn put(&mut self, offset: usize, value: &[u8]) -> Option<()> {
        self.slot(offset, value.len())?.copy_from_slice(value);
        Some(())
    }

    fn slot(&mut self, offset: usize, length: usize) -> Option<&mut [u8]> {
        let start = HEADER.checked_add(offset)?;
        let request = self.bytes.get_mut(..self.length)?;
        request.get_mut(start..)?.get_mut(..length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [u8; 8] = [1; 8];

    #[test]
    fn a_frame_is_header_and_request() {
        let frame = Frame::<12>::new(&HEAD, &[2; 4]).unwrap();
        assert_eq!(frame.bytes(), [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert!(Frame::<12>::new(&HEAD, &[2; 5]).is_none());
        assert!(Frame::<12>::new(&HEAD[..7], &[2; 4]).is_none());
        assert!(Frame::<7>::new(&HEAD, &[]).is_none());
    }

    #[test]
    fn addresses_overwrite_the_request() {
        let (mut response, value) = ([0; 4], [7; 3]);
        let (to, from) = (response.as_ptr().addr(), value.as_ptr().addr());
        let mut frame = Frame::<64>::new(&HEAD, &[0xff; 24]).unwrap();
        frame.set_response(0, &mut response).unwrap();
        frame.set_value(8, 16, &value).unwrap();
        frame.set_descriptor(20, -1).unwrap();
        assert_eq!(frame.bytes()[8..16], (to as u64).to_ne_bytes());
        assert_eq!(frame.bytes()[16..24], (from as u64).to_ne_bytes());
        assert_eq!(frame.bytes()[24..28], 3_u32.to_ne_bytes());
        assert_eq!(frame.bytes()[28..32], (-1_i32).to_ne_bytes());
    }

    #[test]
    fn nothing_is_written_behind_the_request() {
        let (mut response, value) = ([0; 4], [7; 3]);
        let mut frame = Frame::<64>::new(&HEAD, &[0xff; 8]).unwrap();
        assert!(frame.set_response(1, &mut response).is_none());
        assert!(frame.set_value(0, 5, &value).is_none());
        assert!(frame.set_value(usize::MAX, 0, &value).is_none());
        assert!(frame.set_descriptor(usize::MAX - 4, 3).is_none());
        assert_eq!(frame.bytes()[..8], HEAD);
        assert!(frame.bytes().len() == 16 && frame.bytes()[12..] == [0xff; 4]);
    }
}
