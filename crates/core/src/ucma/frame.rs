//! Commands as they are written.

use std::os::fd::AsRawFd;

use rdmacm_abi::{Command, Header, Pointer};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

#[cfg(doc)]
use super::Description;
use super::{Attachment, Call};

/// A command as one `write(2)` takes it: the header and, right after it, the request.
///
/// Packed, so that there is no padding whatever the request is. The kernel copies it, so
/// it needs no alignment.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed)]
pub(crate) struct Frame<C> {
    header: Header,
    request: C,
}

impl<C: Command> Frame<C> {
    /// The frame of a request, whose addresses are not filled in.
    #[inline]
    pub(crate) fn new(request: C) -> Self {
        Self {
            header: Header::of::<C>(),
            request,
        }
    }
}

/// Where in a request the kernel finds addresses, sizes and descriptors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    /// Nowhere.
    Plain,
    /// The address of the response, at this offset.
    Response(usize),
    /// As its [`Description`] says, of the few commands that have something else.
    Special,
}

impl Layout {
    /// The layout of a command.
    pub(super) const fn of<C: Command>() -> Self {
        match (C::POINTER, C::FD) {
            (Pointer::None, None) => Self::Plain,
            (Pointer::Response { offset }, None) => Self::Response(offset),
            _ => Self::Special,
        }
    }
}

/// The bytes of this call with its addresses; `None` if they do not fit. Every address,
/// size and descriptor that the kernel takes from the request is overwritten, so that no
/// value of the caller reaches the kernel. The addresses are those of buffers that the
/// call borrows, the response exclusively.
#[inline]
pub(super) fn fill_in<'call>(call: &'call mut Call<'_>) -> Option<&'call [u8]> {
    match call.description.layout {
        Layout::Plain => {}
        Layout::Response(offset) => put_response(call, offset)?,
        Layout::Special => fill_in_special(call)?,
    }
    Some(call.frame)
}

#[inline]
fn put_response(call: &mut Call<'_>, offset: usize) -> Option<()> {
    let address = call.response.as_mut_ptr().expose_provenance() as u64;
    put(call.frame, offset, address.to_ne_bytes())
}

#[cold]
fn fill_in_special(call: &mut Call<'_>) -> Option<()> {
    match call.description.pointer {
        Pointer::None => {}
        Pointer::Response { offset } => put_response(call, offset)?,
        Pointer::OptionValue {
            offset,
            size_offset,
        } => {
            let value = match call.attachment {
                Attachment::OptionValue(value) => value,
                _ => &[],
            };
            let address = value.as_ptr().expose_provenance() as u64;
            let size = u32::try_from(value.len()).ok()?;
            put(call.frame, offset, address.to_ne_bytes())?;
            put(call.frame, size_offset, size.to_ne_bytes())?;
        }
    }
    match call.description.fd {
        Some(offset) => put(call.frame, offset, old_file(call.attachment).to_ne_bytes()),
        None => Some(()),
    }
}

/// Writes a value at an offset of the request.
#[inline]
fn put<const N: usize>(frame: &mut [u8], offset: usize, value: [u8; N]) -> Option<()> {
    let start = size_of::<Header>().wrapping_add(offset);
    *frame.get_mut(start..)?.first_chunk_mut()? = value;
    Some(())
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
    use proptest::prelude::*;
    use rdmacm_abi::{
        CreateId, CreateIdResponse, IdOption, Listen, MigrateId, MigrateIdResponse, NoResponse,
        PortSpace, QpType, QueryIbService, QueryIbServiceResponse, ResolveAddr, SetOption,
    };
    use zerocopy::FromZeros;

    /// The bytes that the kernel gets for a request, which need not be a reasonable one.
    fn bytes_of<C: Command>(
        request: C,
        response: &mut C::Response,
        attachment: Attachment<'_>,
    ) -> Vec<u8> {
        let mut frame = Frame::new(request);
        let mut call = Call::new(&mut frame, response, attachment);
        fill_in(&mut call).unwrap().to_vec()
    }

    fn word(bytes: &[u8], at: usize) -> u64 {
        u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn the_callers_own_address_never_reaches_the_kernel() {
        let mut request = CreateId::new(7, PortSpace::TCP, QpType::RC);
        request.response = 0xdead_beef;
        let mut response = CreateIdResponse::new_zeroed();
        let address = (&raw const response).addr() as u64;
        let bytes = bytes_of(request, &mut response, Attachment::None);
        assert_eq!(bytes.len(), 8 + 24);
        assert_eq!(bytes[..8], [0, 0, 0, 0, 24, 0, 4, 0]);
        assert_eq!(word(&bytes, 8), 7);
        assert_eq!(word(&bytes, 16), address);
    }

    #[test]
    fn an_option_has_the_address_and_size_of_its_value() {
        let request = SetOption::id(3, IdOption::REUSEADDR);
        let value = 1_i32.to_ne_bytes();
        let attachment = Attachment::OptionValue(&value);
        let bytes = bytes_of(request, &mut NoResponse, attachment);
        assert_eq!(word(&bytes, 8), value.as_ptr().addr() as u64);
        assert_eq!(bytes[28..32], 4_u32.to_ne_bytes());
    }

    #[test]
    fn an_option_without_a_value_has_no_address() {
        let mut request = SetOption::id(3, IdOption::TOS);
        (request.value, request.size) = (0xdead_beef, 4096);
        let bytes = bytes_of(request, &mut NoResponse, Attachment::None);
        assert_ne!(word(&bytes, 8), 0xdead_beef);
        assert_eq!(bytes[28..32], [0; 4]);
    }

    #[test]
    fn a_migration_without_an_old_file_names_no_descriptor() {
        let mut response = MigrateIdResponse::new_zeroed();
        let bytes = bytes_of(MigrateId::new(3), &mut response, Attachment::None);
        assert_eq!(bytes[8 + 12..8 + 16], (-1_i32).to_ne_bytes());
    }

    proptest! {
        /// A frame that was filled in before, for another buffer, keeps nothing of it.
        #[test]
        fn whatever_is_in_a_request_its_addresses_are_those_of_the_call(bytes: [u8; 24]) {
            let request = CreateId::read_from_bytes(&bytes).unwrap();
            let mut frame = Frame::new(request);
            for _ in 0..2 {
                let mut response = Box::new(CreateIdResponse::new_zeroed());
                let address = (&raw const *response).addr() as u64;
                let mut call = Call::new(&mut frame, &mut response, Attachment::None);
                let filled = fill_in(&mut call).unwrap();
                prop_assert_eq!(word(filled, 16), address);
                prop_assert_eq!(&filled[8..16], &bytes[..8]);
                prop_assert_eq!(&filled[24..], &bytes[16..]);
            }
        }
    }

    #[test]
    fn a_request_without_addresses_is_written_as_it_is() {
        let request = Listen::new(3, 9);
        let bytes = bytes_of(request, &mut NoResponse, Attachment::None);
        assert_eq!(bytes[8..], *request.as_bytes());
    }

    #[test]
    fn the_longest_request_and_the_longest_response_fit() {
        let request = ResolveAddr::new_zeroed();
        let bytes = bytes_of(request, &mut NoResponse, Attachment::None);
        assert_eq!(bytes.len(), 8 + size_of::<ResolveAddr>());
        let mut response = QueryIbServiceResponse::<1>::new_zeroed();
        let request = QueryIbService::<1>::new(7);
        let bytes = bytes_of(request, &mut response, Attachment::None);
        let size = u16::from_ne_bytes(bytes[6..8].try_into().unwrap());
        assert_eq!(usize::from(size), size_of_val(&response));
    }
}
