//! Registered memory, with the device of the tests.

use rdmacm_abi::AccessFlags;
use rdmacm_core::Transport;

use super::{Buffer, SgList, Sge};
use crate::protection_domain::ProtectionDomain;
use crate::provider::stub::{FIRST_LOCAL_KEY, FIRST_REMOTE_KEY, Stub};

fn domain() -> (Stub, ProtectionDomain) {
    let device = Stub::new(false);
    let domain = device.open().create_protection_domain().unwrap();
    (device, domain)
}

fn filled(domain: &ProtectionDomain, length: u8) -> Buffer {
    let bytes: Vec<u8> = (0..length).collect();
    domain.register(bytes).unwrap()
}

#[test]
fn a_buffer_is_a_mutable_slice() {
    let (_device, domain) = domain();
    let mut buffer = filled(&domain, 6);
    buffer[2] = 77;
    assert_eq!(*buffer, [0, 1, 77, 3, 4, 5]);
    assert_eq!(buffer.protection_domain(), &domain);
    assert!(domain.allocate(0).is_err());
    assert_eq!(*domain.allocate(3).unwrap(), [0; 3]);
}

/// What else is in their pages could be overwritten.
#[test]
fn buffers_have_pages_of_their_own_if_reads_are_overrun() {
    let device = Stub::with_transport(Transport::IWarp);
    let domain = device.open().create_protection_domain().unwrap();
    let buffers = [(); 8].map(|()| domain.allocate(24).unwrap());
    for buffer in buffers {
        assert_eq!(*buffer, [0; 24]);
        let entry = Sge::from(buffer).sge();
        assert_eq!((entry.address % 4096, entry.length), (0, 24));
    }
}

#[test]
#[expect(unsafe_code, reason = "registers memory that outlives the region")]
fn a_raw_region_that_is_not_deregistered_is_returned() {
    let (device, domain) = domain();
    let memory = [0_u8; 8];
    let address = memory.as_ptr().expose_provenance() as u64;
    let access = AccessFlags::LOCAL_WRITE;
    // SAFETY: the device accesses no memory.
    let region = unsafe { domain.register_raw(address, memory.len(), access) };
    let region = region.unwrap();
    device.refuse(true);
    let region = region.deregister().unwrap_err();
    device.refuse(false);
    assert!(region.deregister().is_ok());
    assert_ne!(device.command_bytes(), 0);
    drop(domain);
}

#[test]
fn split_off_returns_a_separate_buffer() {
    let (_device, domain) = domain();
    let mut first = filled(&domain, 9);
    let mut second = first.split_off(4);
    let third = second.split_off(3);
    assert_eq!(*first, [0, 1, 2, 3]);
    assert_eq!(*second, [4, 5, 6]);
    assert_eq!(*third, [7, 8]);
    let start = Sge::from(first).sge();
    let last = Sge::from(third).sge();
    assert_eq!((last.address - start.address, last.length), (7, 2));
    assert_eq!(last.lkey, start.lkey);
}

#[test]
fn all_chunks_but_the_last_have_the_same_size() {
    let (_device, domain) = domain();
    let lengths = |length, size| {
        let chunks = filled(&domain, length).into_chunks(size);
        chunks.iter().map(|chunk| chunk.len()).collect::<Vec<_>>()
    };
    assert_eq!(lengths(7, 3), [3, 3, 1]);
    assert_eq!(lengths(6, 3), [3, 3]);
    assert_eq!(lengths(2, 3), [2]);
}

#[test]
fn an_entry_has_the_address_and_length_of_its_slice() {
    let (_device, domain) = domain();
    let mut buffer = filled(&domain, 20);
    let rest = buffer.split_off(8);
    let start = Sge::from(buffer).sge();
    assert_eq!((start.length, start.lkey), (8, FIRST_LOCAL_KEY + 1));
    let sge = rest.slice(2..5).unwrap();
    assert_eq!((sge.len(), sge.is_empty()), (3, false));
    let entry = sge.sge();
    assert_eq!((entry.address, entry.length), (start.address + 10, 3));
    assert!(sge.is_of(&domain) && sge.is_writable());
    let rest = sge.into_buffer().unwrap();
    assert!(rest.slice(4..4).unwrap().is_empty());
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "invalid input")]
fn slices_outside_of_the_memory_are_refused() {
    let (_device, domain) = domain();
    for (range, within) in [(0..8, true), (8..8, true), (0..9, false), (5..4, false)] {
        let buffer = filled(&domain, 8).slice(range.clone());
        assert_eq!(buffer.is_ok(), within, "{range:?}");
        let region = domain.expose(8, AccessFlags::LOCAL_WRITE).unwrap();
        assert_eq!(region.slice(range.clone()).is_ok(), within, "{range:?}");
    }
}

#[test]
fn entries_keep_their_order() {
    let (_device, domain) = domain();
    let sge = |length| Sge::from(filled(&domain, length));
    let mut sg_list = SgList::from(vec![sge(1), sge(2)]);
    sg_list.push(sge(3));
    let lengths: Vec<_> = sg_list.iter().map(Sge::len).collect();
    assert_eq!(lengths, [1, 2, 3]);
    assert_eq!(sg_list.into_buffer().unwrap().len(), 1, "the first");
    assert_eq!(
        SgList::from(filled(&domain, 4))
            .into_buffer()
            .unwrap()
            .len(),
        4
    );
}

#[test]
fn a_region_is_described_for_peers_and_can_be_read_and_written() {
    let (_device, domain) = domain();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let region = domain.expose(24, access).unwrap();
    assert_eq!((region.len(), region.access()), (24, access));
    assert_eq!(region.protection_domain(), &domain);
    let remote = region.remote();
    assert_eq!((remote.len(), remote.key()), (24, FIRST_REMOTE_KEY + 1));
    assert!(!remote.is_empty() && remote.slice(..0).unwrap().is_empty());
    let sge = region.slice(8..24).unwrap();
    let entry = sge.sge();
    assert_eq!(entry.address, remote.address() + 8);
    assert_eq!((entry.length, entry.lkey), (16, FIRST_LOCAL_KEY + 1));
    region.write(3, b"hello");
    let mut read = [0; 7];
    region.read(2, &mut read);
    assert_eq!(read, *b"\0hello\0");
    let word = region.word(16).unwrap();
    word.store(7, std::sync::atomic::Ordering::Relaxed);
    let mut read = [0; 8];
    region.read(16, &mut read);
    assert_eq!(read, 7_u64.to_ne_bytes());
    assert!(region.word(17).is_none());
    assert!(domain.expose(0, access).is_err());
}

#[test]
fn a_region_is_writable_with_local_write_access() {
    let (device, domain) = domain();
    let region = domain.expose(8, AccessFlags::REMOTE_READ).unwrap();
    assert!(!region.slice(0..8).unwrap().is_writable());
    device.command_bytes();
    region.change_access(AccessFlags::LOCAL_WRITE).unwrap();
    assert_ne!(device.command_bytes(), 0);
    assert_eq!(region.access(), AccessFlags::LOCAL_WRITE);
    assert!(region.slice(0..8).unwrap().is_writable());
    let other = device.open().create_protection_domain().unwrap();
    assert!(!region.slice(0..8).unwrap().is_of(&other));
}

#[test]
fn memory_is_freed_after_deregistration_and_kept_if_that_fails() {
    let (device, domain) = domain();
    let buffer = filled(&domain, 4);
    let is_freed = buffer.free_probe();
    device.command_bytes();
    drop(buffer);
    assert!(is_freed() && device.command_bytes() > 0);
    let buffer = filled(&domain, 4);
    let is_freed = buffer.free_probe();
    device.refuse(true);
    drop(buffer);
    assert!(!is_freed());
    device.refuse(false);
}
