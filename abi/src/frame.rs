//! Commands as they are written.

use core::marker::PhantomData;

use zerocopy::IntoBytes;

/// Bytes of the header before each request, of both interfaces.
const HEADER: usize = 8;

/// The bytes of one `write(2)`: a header and a request with the address that the kernel
/// takes from it. `N` is the largest size in bytes.
///
/// It borrows the response whose address it contains exclusively, so that stays valid
/// while the frame exists. Offsets are in bytes from the start of the
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
    #[inline]
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
    #[inline]
    pub fn set_response(&mut self, offset: usize, response: &'buffers mut [u8]) -> Option<()> {
        let address = response.as_mut_ptr().expose_provenance();
        self.put(offset, (address as u64).as_bytes())
    }

    /// The bytes to write.
    #[must_use]
    #[inline]
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
    fn the_address_overwrites_the_request() {
        let mut response = [0; 4];
        let to = response.as_ptr().addr();
        let mut frame = Frame::<64>::new(&HEAD, &[0xff; 16]).unwrap();
        frame.set_response(8, &mut response).unwrap();
        assert_eq!(frame.bytes()[8..16], [0xff; 8]);
        assert_eq!(frame.bytes()[16..24], (to as u64).to_ne_bytes());
    }

    #[test]
    fn nothing_is_written_after_the_request() {
        let (mut near, mut far) = ([0; 4], [0; 4]);
        let mut frame = Frame::<64>::new(&HEAD, &[0xff; 8]).unwrap();
        assert!(frame.set_response(1, &mut near).is_none());
        assert!(frame.set_response(usize::MAX - 4, &mut far).is_none());
        assert_eq!(frame.bytes()[..8], HEAD);
        assert_eq!(frame.bytes()[8..], [0xff; 8]);
    }
}
