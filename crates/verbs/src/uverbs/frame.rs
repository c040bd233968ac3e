//! Frames of commands.

use std::io;

use rdmacm_abi::uverbs::{Header, MAX_REQUEST};
use rdmacm_abi::{Frame, Pointer};
use zerocopy::IntoBytes;

use super::Call;

/// The frame of a command, large enough for any.
pub(super) type UverbsFrame<'response> = Frame<'response, { size_of::<Header>() + MAX_REQUEST }>;

/// The frame of this call. The address that the kernel takes from the request is
/// overwritten, so that no value of the caller reaches the kernel.
#[inline]
pub(super) fn frame<'call>(call: &'call mut Call<'_>) -> io::Result<UverbsFrame<'call>> {
    fill(call).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[inline]
fn fill<'call>(call: &'call mut Call<'_>) -> Option<UverbsFrame<'call>> {
    let mut frame = Frame::new(call.header.as_bytes(), call.request)?;
    match call.pointer {
        Pointer::None => {}
        Pointer::Response { offset } => frame.set_response(offset, call.response)?,
        // No verbs command has an option value.
        Pointer::OptionValue { .. } => return None,
    }
    Some(frame)
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
        let address = (&raw const response).addr() as u64;
        let mut call = Call::new(&request, &mut response);
        let frame = frame(&mut call).unwrap();
        assert_eq!(frame.bytes().len(), 16);
        assert_eq!(frame.bytes()[..8], [3, 0, 0, 0, 4, 0, 1, 0]);
        assert_eq!(frame.bytes()[8..], address.to_ne_bytes());
    }

    #[test]
    fn a_command_without_a_response_is_written_as_it_is() {
        let request = DeallocPd { handle: 7 };
        let mut response = NoResponse;
        let mut call = Call::new(&request, &mut response);
        let frame = frame(&mut call).unwrap();
        assert_eq!(frame.bytes(), [4, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn fields_of_the_driver_fit() {
        let request = Siw(CreateQp::new_zeroed());
        let mut response = siw::QpResponse::new_zeroed();
        let mut call = Call::new(&request, &mut response);
        let frame = frame(&mut call).unwrap();
        assert_eq!(frame.bytes().len(), 64);
        assert_eq!(frame.bytes()[4..8], [16, 0, 16, 0]);
    }
}
