//! Sets of operations.

use rdmacm_abi::uverbs::WrOpcode;

/// A set of operations of send requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opcodes(u32);

impl Opcodes {
    pub(crate) const ALL: Self = Self(u32::MAX);
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn of(opcodes: &[WrOpcode]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < opcodes.len() {
            // All are below 32.
            bits |= 1 << opcodes[index].number();
            index += 1;
        }
        Self(bits)
    }

    /// The operations that both sets contain.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[inline]
    pub(crate) fn contain(self, opcode: WrOpcode) -> bool {
        self.0 & 1_u32.checked_shl(opcode.number()).unwrap_or(0) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_what_it_was_made_of() {
        let set = Opcodes::of(&[WrOpcode::SEND, WrOpcode::RDMA_WRITE]);
        assert!(set.contain(WrOpcode::SEND) && set.contain(WrOpcode::RDMA_WRITE));
        assert!(!set.contain(WrOpcode::RDMA_READ) && !set.contain(WrOpcode::new(32)));
        assert!(Opcodes::ALL.contain(WrOpcode::RDMA_READ));
        let reads = Opcodes::of(&[WrOpcode::RDMA_READ]);
        assert_eq!(
            (set.and(Opcodes::ALL), set.and(reads)),
            (set, Opcodes::NONE)
        );
        assert!(!Opcodes::NONE.contain(WrOpcode::SEND));
    }
}
