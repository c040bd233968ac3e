//! Memberships in multicast groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::address::CmAddr;
use crate::token::Token;
use crate::ucma::NO_ID;

/// The state of a membership in a multicast group.
#[derive(Debug)]
pub(crate) struct Membership {
    token: Token,
    address: CmAddr,
    /// [`NO_ID`] until the kernel has answered.
    kernel_id: AtomicU32,
    left: AtomicBool,
}

impl Membership {
    /// A membership that the kernel does not know yet.
    pub(crate) fn new(address: CmAddr) -> Arc<Self> {
        Arc::new(Self {
            token: Token::new(),
            address,
            kernel_id: AtomicU32::new(NO_ID),
            left: AtomicBool::new(false),
        })
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn address(&self) -> CmAddr {
        self.address
    }

    pub(crate) fn set_kernel_id(&self, kernel_id: u32) {
        self.kernel_id.store(kernel_id, Ordering::Release);
    }

    pub(crate) fn kernel_id(&self) -> u32 {
        self.kernel_id.load(Ordering::Acquire)
    }

    /// Whether the kernel has it, and nobody has left.
    pub(crate) fn is_member(&self) -> bool {
        self.kernel_id() != NO_ID && !self.is_left()
    }

    pub(crate) fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// Marks the membership as left; returns `true` to the first caller.
    pub(crate) fn mark_left(&self) -> bool {
        !self.left.swap(true, Ordering::AcqRel)
    }
}
