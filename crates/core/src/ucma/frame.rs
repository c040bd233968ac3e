//! A command as it is written: header and request, addresses filled in.

use std::io;
use std::os::fd::AsRawFd;

use rdmacm_abi::{Header, MAX_REQUEST, Pointer};
use zerocopy::IntoBytes;

use super::{Attachment, Call};

/// The bytes of one `write(2)`. It holds addresses of the call's buffers and is
/// of use only while the call is borrowed.
pub(super) struct Frame<'call, 'buffers> {
    bytes: [u8; size_of::<Header>() + MAX_REQUEST],
    length: usize,
    _call: &'call mut Call<'buffers>,
}

impl<'call, 'buffers> Frame<'call, 'buffers> {
    /// Every place of the request from which the kernel takes an address, a
    /// size or a descriptor is overwritten, so that none of the caller's own
    /// reaches it.
    pub(super) fn new(call: &'call mut Call<'buffers>) -> io::Result<Self> {
        let mut bytes = [0; size_of::<Header>() + MAX_REQUEST];
        let (header, body) = bytes.split_at_mut(size_of::<Header>());
        header.copy_from_slice(call.header.as_bytes());
        let length = size_of::<Header>() + call.request.len();
        body.get_mut(..call.request.len())
            .ok_or(io::ErrorKind::InvalidInput)?
            .copy_from_slice(call.request);
        match call.pointer {
            Pointer::None => {}
            Pointer::Response { offset } => {
                let address = call.response.as_mut_ptr().expose_provenance();
                put(body, offset, (address as u64).as_bytes())?;
            }
            Pointer::OptionValue {
                offset,
                size_offset,
            } => {
                let value = match call.attachment {
                    Attachment::OptionValue(value) => value,
                    _ => &[],
                };
                let address = value.as_ptr().expose_provenance();
                let size = u32::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
                put(body, offset, (address as u64).as_bytes())?;
                put(body, size_offset, size.as_bytes())?;
            }
        }
        if let Some(offset) = call.fd {
            put(body, offset, old_channel(call.attachment).as_bytes())?;
        }
        Ok(Self {
            bytes,
            length,
            _call: call,
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The descriptor an id moves away from; one that is never open where the
/// device it is on is none of the kernel's.
fn old_channel(attachment: Attachment<'_>) -> i32 {
    match attachment {
        Attachment::OldChannel(ucma) => ucma.ucma_fd().map_or(-1, |fd| fd.as_raw_fd()),
        _ => -1,
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
        let place = (&raw const response).addr() as u64;
        let mut call = Call::new(&request, &mut response, Attachment::None);
        let frame = Frame::new(&mut call).unwrap();
        assert_eq!(frame.bytes().len(), 8 + 24);
        assert_eq!(frame.bytes()[..8], [0, 0, 0, 0, 24, 0, 4, 0]);
        assert_eq!(word(frame.bytes(), 8), 7);
        assert_eq!(word(frame.bytes(), 16), place);
    }

    #[test]
    fn an_option_states_address_and_size_of_its_value() {
        let request = SetOption::id(3, IdOption::REUSEADDR);
        let value = 1_i32.to_ne_bytes();
        let attachment = Attachment::OptionValue(&value);
        let mut response = NoResponse;
        let mut call = Call::new(&request, &mut response, attachment);
        let frame = Frame::new(&mut call).unwrap();
        assert_eq!(word(frame.bytes(), 8), value.as_ptr().addr() as u64);
        assert_eq!(frame.bytes()[28..32], 4_u32.to_ne_bytes());
    }

    #[test]
    fn an_option_without_a_value_has_none() {
        let mut request = SetOption::id(3, IdOption::TOS);
        (request.value, request.size) = (0xdead_beef, 4096);
        let mut response = NoResponse;
        let mut call = Call::new(&request, &mut response, Attachment::None);
        let frame = Frame::new(&mut call).unwrap();
        assert_ne!(word(frame.bytes(), 8), 0xdead_beef);
        assert_eq!(frame.bytes()[28..32], [0; 4]);
    }

    #[test]
    fn a_migration_without_an_old_channel_names_no_descriptor() {
        let request = MigrateId::new(3);
        let mut response = rdmacm_abi::MigrateIdResponse::new_zeroed();
        let mut call = Call::new(&request, &mut response, Attachment::None);
        let frame = Frame::new(&mut call).unwrap();
        assert_eq!(frame.bytes()[8 + 12..8 + 16], (-1_i32).to_ne_bytes());
    }
}
