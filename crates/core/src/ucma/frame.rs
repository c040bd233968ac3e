//! Frames of commands.

use std::io;
use std::os::fd::AsRawFd;

use rdmacm_abi::{Frame, Header, MAX_REQUEST, Pointer};
use zerocopy::IntoBytes;

use super::{Attachment, Call};

/// The frame of any command.
pub(super) type UcmaFrame<'call> = Frame<'call, { size_of::<Header>() + MAX_REQUEST }>;

/// The frame of this call. Every address, size and descriptor that the kernel takes
/// from the request is overwritten, so that no value of the caller reaches the kernel.
pub(super) fn frame<'call>(call: &'call mut Call<'_>) -> io::Result<UcmaFrame<'call>> {
    fill(call).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn fill<'call>(call: &'call mut Call<'_>) -> Option<UcmaFrame<'call>> {
    let mut frame = Frame::new(call.header.as_bytes(), call.request)?;
    match call.pointer {
        Pointer::None => {}
        Pointer::Response { offset } => frame.set_response(offset, call.response)?,
        Pointer::OptionValue {
            offset,
            size_offset,
        } => {
            let value = match call.attachment {
                Attachment::OptionValue(value) => value,
                _ => &[],
            };
            frame.set_value(offset, size_offset, value)?;
        }
    }
    if let Some(offset) = call.fd {
        frame.set_descriptor(offset, old_file(call.attachment))?;
    }
    Some(frame)
}

/// The descriptor of the file that an id leaves; one that is never open if that file
/// is a stand-in.
fn old_file(attachment: Attachment<'_>) -> i32 {
    match attachment {
        Attachment::OldChannel(ucma) => ucma.ucma_fd().map_or(-1, |fd| fd.as_raw_fd()),
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm_abi::{
        CreateId, CreateIdResponse, IdOption, MigrateId, NoResponse, PortSpace, QpType, SetOption,
    };
    use zerocopy::FromZeros;

    fn word(bytes: &[u8], at: usize) -> u64 {
        u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn the_callers_own_address_never_reaches_the_kernel() {
        let mut request = CreateId::new(7, PortSpace::TCP, QpType::RC);
        request.response = 0xdead_beef;
        let mut response = CreateIdResponse::new_zeroed();
        let address = (&raw const response).addr() as u64;
        let mut call = Call::new(&request, &mut response, Attachment::None);
        let frame = frame(&mut call).unwrap();
        assert_eq!(frame.bytes().len(), 8 + 24);
        assert_eq!(frame.bytes()[..8], [0, 0, 0, 0, 24, 0, 4, 0]);
        assert_eq!(word(frame.bytes(), 8), 7);
        assert_eq!(word(frame.bytes(), 16), address);
    }

    #[test]
    fn an_option_has_the_address_and_size_of_its_value() {
        let request = SetOption::id(3, IdOption::REUSEADDR);
        let value = 1_i32.to_ne_bytes();
        let attachment = Attachment::OptionValue(&value);
        let mut response = NoResponse;
        let mut call = Call::new(&request, &mut response, attachment);
        let frame = frame(&mut call).unwrap();
        assert_eq!(word(frame.bytes(), 8), value.as_ptr().addr() as u64);
        assert_eq!(frame.bytes()[28..32], 4_u32.to_ne_bytes());
    }

    #[test]
    fn an_option_without_a_value_has_no_address() {
        let mut request = SetOption::id(3, IdOption::TOS);
        (request.value, request.size) = (0xdead_beef, 4096);
        let mut response = NoResponse;
        let mut call = Call::new(&request, &mut response, Attachment::None);
        let frame = frame(&mut call).unwrap();
        assert_ne!(word(frame.bytes(), 8), 0xdead_beef);
        assert_eq!(frame.bytes()[28..32], [0; 4]);
    }

    #[test]
    fn a_migration_without_an_old_file_names_no_descriptor() {
        let request = MigrateId::new(3);
        let mut response = rdmacm_abi::MigrateIdResponse::new_zeroed();
        let mut call = Call::new(&request, &mut response, Attachment::None);
        let frame = frame(&mut call).unwrap();
        assert_eq!(frame.bytes()[8 + 12..8 + 16], (-1_i32).to_ne_bytes());
    }
}
