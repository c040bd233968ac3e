//! One command to a device.

use rdmacm_abi::Pointer;
use rdmacm_abi::uverbs::{Command, CommandNumber, Header};
use zerocopy::IntoBytes;

/// One command to a [`UverbsFile`](super::UverbsFile).
#[derive(Debug)]
pub struct Call<'a> {
    pub(super) header: Header,
    pub(super) request: &'a [u8],
    pub(super) pointer: Pointer,
    pub(super) response: &'a mut [u8],
}

impl<'a> Call<'a> {
    /// A command with its request and the memory for its response.
    #[inline]
    pub fn new<C: Command>(request: &'a C, response: &'a mut C::Response) -> Self {
        Self {
            header: Header::of::<C>(),
            request: request.as_bytes(),
            pointer: C::POINTER,
            response: response.as_mut_bytes(),
        }
    }

    /// The command's number.
    #[must_use]
    pub fn number(&self) -> CommandNumber {
        self.header.command
    }

    /// The request after the header. The address of the response in it is not valid.
    #[must_use]
    pub fn request(&self) -> &[u8] {
        self.request
    }

    /// The memory for the response.
    pub fn response(&mut self) -> &mut [u8] {
        self.response
    }
}
