//! A command as it is written: header and request, address filled in.

use std::io;
use std::marker::PhantomData;

use rdmacm_abi::Pointer;
use rdmacm_abi::uverbs::{Header, MAX_REQUEST};
use zerocopy::IntoBytes;

use super::Call;

/// The bytes of one `write(2)`. It holds the address of the response and is of
/// use only while that is borrowed.
pub(super) struct Frame<'response> {
    bytes: [u8; size_of::<Header>() + MAX_REQUEST],
    length: usize,
    _response: PhantomData<&'response mut [u8]>,
}

impl<'response> Frame<'response> {
    /// The place of the request from which the kernel takes an address is
    /// overwritten, so that none of the caller's own reaches it.
    pub(super) fn new(call: &'response mut Call<'_>) -> io::Result<Self> {
        let mut bytes = [0; size_of::<Header>() + MAX_REQUEST];
        let (header, body) = bytes.split_at_mut(size_of::<Header>());
        header.copy_from_slice(call.header.as_bytes());
        put(body, 0, call.request)?;
        match call.pointer {
            Pointer::None => {}
            Pointer::Response { offset } => {
                let address = call.response.as_mut_ptr().expose_provenance();
                put(body, offset, (address as u64).as_bytes())?;
            }
            // Which no verbs command has.
            Pointer::OptionValue { .. } => return Err(io::ErrorKind::InvalidInput.into()),
        }
        Ok(Self {
            bytes,
            length: size_of::<Header>() + call.request.len(),
            _response: PhantomData,
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

fn put(body: &mut [u8], offset: usize, value: &[u8]) -> io::Result<()> {
    body.get_mut(offset..)
        .and_then(|rest| rest.get_mut(..value.len()))
        .ok_or(io::ErrorKind::InvalidInput)?
        .copy_from_slice(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm_abi::NoResponse;
    use rdmacm_abi::uverbs::{AllocPd, AllocPdResponse, CreateQp, DeallocPd, Siw, siw};
    use zerocopy::FromZeros;

    #[test]
    fn the_callers_own_address_never_reaches_the_kernel() {
        let request = AllocPd {
            response: 0xdead_beef,
        };
        let mut response = AllocPdResponse::new_zeroed();
        let place = (&raw const response).addr() as u64;
        let mut call = Call::new(&request, &mut response);
        let frame = Frame::new(&mut call).unwrap();
        assert_eq!(frame.bytes().len(), 16);
        assert_eq!(frame.bytes()[..8], [3, 0, 0, 0, 4, 0, 1, 0]);
        assert_eq!(frame.bytes()[8..], place.to_ne_bytes());
    }

    #[test]
    fn a_command_without_a_response_is_written_as_it_is() {
        let request = DeallocPd { handle: 7 };
        let mut response = NoResponse;
        let mut call = Call::new(&request, &mut response);
        let frame = Frame::new(&mut call).unwrap();
        assert_eq!(frame.bytes(), [4, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn a_driver_has_room_for_its_words() {
        let request = Siw(CreateQp::new_zeroed());
        let mut response = siw::QpResponse::new_zeroed();
        let mut call = Call::new(&request, &mut response);
        let frame = Frame::new(&mut call).unwrap();
        assert_eq!(frame.bytes().len(), 64);
        assert_eq!(frame.bytes()[4..8], [16, 0, 16, 0]);
    }
}
