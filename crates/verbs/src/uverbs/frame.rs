//! Frames of commands.

use std::io;

use rdmacm_abi::uverbs::{Command, Header, MAX_REQUEST};
use rdmacm_abi::{Frame, Pointer};
use zerocopy::IntoBytes;

/// The frame of any command.
pub(super) type UverbsFrame<'response> = Frame<'response, { size_of::<Header>() + MAX_REQUEST }>;

/// The frame of this request. The address that the kernel takes from the request is
/// overwritten, so that no value of the caller reaches the kernel.
pub(super) fn frame<'response, C: Command>(
    request: &C,
    response: &'response mut C::Response,
) -> io::Result<UverbsFrame<'response>> {
    fill(request, response).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn fill<'response, C: Command>(
    request: &C,
    response: &'response mut C::Response,
) -> Option<UverbsFrame<'response>> {
    let mut frame = Frame::new(Header::of::<C>().as_bytes(), request.as_bytes())?;
    match C::POINTER {
        Pointer::None => {}
        Pointer::Response { offset } => frame.set_response(offset, response.as_mut_bytes())?,
        // No verbs command has one.
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
        let place = (&raw const response).addr() as u64;
        let frame = frame(&request, &mut response).unwrap();
        assert_eq!(frame.bytes().len(), 16);
        assert_eq!(frame.bytes()[..8], [3, 0, 0, 0, 4, 0, 1, 0]);
        assert_eq!(frame.bytes()[8..], place.to_ne_bytes());
    }

    #[test]
    fn a_command_without_a_response_is_written_as_it_is() {
        let request = DeallocPd { handle: 7 };
        let mut response = NoResponse;
        let frame = frame(&request, &mut response).unwrap();
        assert_eq!(frame.bytes(), [4, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn a_driver_has_room_for_its_words() {
        let request = Siw(CreateQp::new_zeroed());
        let mut response = siw::QpResponse::new_zeroed();
        let frame = frame(&request, &mut response).unwrap();
        assert_eq!(frame.bytes().len(), 64);
        assert_eq!(frame.bytes()[4..8], [16, 0, 16, 0]);
    }
}
