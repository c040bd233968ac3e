//! Registered memory.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rdmacm_abi::AccessFlags;
use rdmacm_abi::uverbs::Sge;

use super::Verbs;

/// A registered region of this process's memory.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) context: u64,
    pub(super) domain: u32,
    /// Where the device begins to count addresses, and where the memory is.
    pub(super) device_address: u64,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) access: AccessFlags,
    pub(super) key: u32,
    /// Not after a peer has invalidated the key.
    pub(super) is_valid: bool,
}

impl Region {
    /// Where the memory is; `None` if not all of it is in the region.
    fn locate(&self, address: u64, length: u64) -> Option<u64> {
        let offset = address.checked_sub(self.device_address)?;
        let end = offset.checked_add(length)?;
        (end <= self.length).then(|| self.start.wrapping_add(offset))
    }
}

/// No region with that key, in that protection domain, has all of the memory with that
/// access; or the scatter/gather entries have less room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryError;

/// Memory by its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyedMemory {
    pub(super) address: u64,
    pub(super) key: u32,
}

/// The key of the region with this handle.
pub(super) fn key(handle: u32, low: u8) -> u32 {
    handle << 8 | u32::from(low)
}

impl Verbs {
    fn locate(
        &self,
        domain: u32,
        memory: KeyedMemory,
        length: usize,
        access: AccessFlags,
    ) -> Result<(&File, u64), MemoryError> {
        let find = || {
            let handle = memory.key >> 8;
            let region = self.regions.get(&handle)?;
            let is_it = region.key == memory.key
                && region.domain == domain
                && region.is_valid
                && region.access.contains(access);
            let place = region.locate(memory.address, length.try_into().ok()?)?;
            let context = self.contexts.get(&region.context)?;
            is_it.then_some((&*context.memory, place))
        };
        find().ok_or(MemoryError)
    }

    /// Checks that memory may be accessed. No bytes are anywhere.
    pub(super) fn check(
        &self,
        domain: u32,
        memory: KeyedMemory,
        length: usize,
        access: AccessFlags,
    ) -> Result<(), MemoryError> {
        if length == 0 {
            return Ok(());
        }
        self.locate(domain, memory, length, access).map(drop)
    }

    pub(super) fn read(
        &self,
        domain: u32,
        memory: KeyedMemory,
        bytes: &mut [u8],
        access: AccessFlags,
    ) -> Result<(), MemoryError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (file, place) = self.locate(domain, memory, bytes.len(), access)?;
        let read = file.read_exact_at(bytes, place);
        read.map_err(|_| MemoryError)
    }

    pub(super) fn write(
        &self,
        domain: u32,
        memory: KeyedMemory,
        bytes: &[u8],
        access: AccessFlags,
    ) -> Result<(), MemoryError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (file, place) = self.locate(domain, memory, bytes.len(), access)?;
        let written = file.write_all_at(bytes, place);
        written.map_err(|_| MemoryError)
    }

    /// Reads what scatter/gather entries name.
    pub(super) fn gather(&self, domain: u32, sges: &[Sge]) -> Result<Vec<u8>, MemoryError> {
        let mut all = Vec::new();
        for sge in sges {
            let length = usize::try_from(sge.length).map_err(|_| MemoryError)?;
            // Checked before memory for it is allocated.
            self.check(domain, local(sge), length, AccessFlags::empty())?;
            let start = all.len();
            all.resize(start + length, 0);
            let part = all.get_mut(start..).unwrap_or_default();
            self.read(domain, local(sge), part, AccessFlags::empty())?;
        }
        Ok(all)
    }

    /// Writes to what scatter/gather entries name.
    pub(super) fn scatter(
        &self,
        domain: u32,
        sges: &[Sge],
        mut bytes: &[u8],
    ) -> Result<(), MemoryError> {
        for sge in sges {
            let length = usize::try_from(sge.length).map_err(|_| MemoryError)?;
            let (part, rest) = bytes.split_at(length.min(bytes.len()));
            self.write(domain, local(sge), part, AccessFlags::LOCAL_WRITE)?;
            bytes = rest;
        }
        if bytes.is_empty() {
            Ok(())
        } else {
            Err(MemoryError)
        }
    }

    /// Invalidates the key of a region for good; whether there was one, valid or not
    /// (`siw_invalidate_stag`).
    pub(super) fn invalidate(&mut self, domain: u32, key: u32) -> bool {
        let handle = key >> 8;
        let region = self.regions.get_mut(&handle);
        match region.filter(|region| region.domain == domain) {
            Some(region) => {
                region.is_valid = false;
                true
            }
            None => false,
        }
    }
}

fn local(sge: &Sge) -> KeyedMemory {
    KeyedMemory {
        address: sge.address,
        key: sge.lkey,
    }
}
