//! Scatter/gather entries for a device.

use rdmacm_abi::uverbs::Sge as AbiSge;

use super::send::MAX_MESSAGE;
use crate::memory::{SgList, Sge};
use crate::protection_domain::ProtectionDomain;

/// The most entries of a request: as many as rxe allows.
pub(super) const MAX_SGES: u32 = 32;

const EMPTY: AbiSge = AbiSge {
    address: 0,
    length: 0,
    lkey: 0,
};

/// The entries of a request, in place.
#[derive(Debug)]
pub(super) struct Entries {
    one: [AbiSge; 1],
    many: Option<[AbiSge; MAX_SGES as usize]>,
}

impl Entries {
    pub(super) fn new() -> Self {
        Self {
            one: [EMPTY],
            many: None,
        }
    }

    /// Those of a list, without empty ones, on which siw fails (`siw_tx_hdt`,
    /// `siw_unref_mem_sgl`), unless one is all there is.
    #[inline]
    pub(super) fn of(&mut self, sg_list: &SgList) -> &[AbiSge] {
        if let Some(sge) = sg_list.as_one() {
            self.one = [sge.sge()];
            return &self.one;
        }
        if sg_list.is_none() {
            return &[];
        }
        self.many_of(sg_list)
    }

    #[inline(never)]
    fn many_of(&mut self, sges: &[Sge]) -> &[AbiSge] {
        let entries = self.many.insert([EMPTY; MAX_SGES as usize]);
        let mut count = 0;
        let non_empty = sges.iter().filter(|sge| !sge.is_empty());
        for (entry, sge) in entries.iter_mut().zip(non_empty) {
            *entry = sge.sge();
            count += 1;
        }
        entries.get(..count).unwrap_or_default()
    }
}

/// Checks memory to receive into.
///
/// # Errors
/// Why it is invalid.
#[inline]
pub(super) fn check_writable(
    domain: &ProtectionDomain,
    max_sges: usize,
    sg_list: &SgList,
) -> Result<(), &'static str> {
    let length = match sg_list.as_one() {
        Some(sge) if max_sges > 0 => writable_length(domain, sge)?,
        _ => writable_lengths(domain, max_sges, sg_list)?,
    };
    if length > MAX_MESSAGE {
        return Err("it is longer than a message can be, 2 GiB less a byte");
    }
    Ok(())
}

fn writable_lengths(
    domain: &ProtectionDomain,
    max_sges: usize,
    sg_list: &SgList,
) -> Result<u64, &'static str> {
    if sg_list.len() > max_sges {
        return Err("it has more scatter/gather entries than the queue allows");
    }
    let mut length = 0;
    for sge in sg_list.iter() {
        length += writable_length(domain, sge)?;
    }
    Ok(length)
}

#[inline]
fn writable_length(domain: &ProtectionDomain, sge: &Sge) -> Result<u64, &'static str> {
    if !sge.is_of(domain) {
        return Err("its memory is registered in another protection domain");
    }
    if !sge.is_writable() {
        return Err("its memory is not registered for writing");
    }
    Ok(sge.len() as u64)
}
