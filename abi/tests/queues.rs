//! Elements of the queues that drivers and programs share, byte by byte.

use proptest::prelude::*;
use rdmacm_abi::uverbs::rxe::{AtomicTarget, DatagramTarget, DmaInfo, RdmaTarget, Target};
use rdmacm_abi::uverbs::*;
use rdmacm_abi::{Be32, Reserved};
use zerocopy::{FromBytes, IntoBytes};

/// A request of rxe to do something to `target`.
fn request(target: Target) -> rxe::SendWqe {
    let wr = rxe::SendWr {
        id: 0,
        reserved: Reserved::ZERO,
        opcode: WrOpcode::RDMA_WRITE,
        flags: SendFlags::empty(),
        immediate_or_key: ImmediateOrKey::NONE,
        target,
    };
    rxe::SendWqe::new(wr, 0, DmaInfo::default())
}

#[test]
fn a_target_in_memory_lies_where_rxe_reads_it() {
    let target = RdmaTarget {
        remote_address: 1,
        rkey: 2,
        ..RdmaTarget::default()
    };
    let request = request(Target::from_rdma(&target));
    let bytes = request.as_bytes();
    assert_eq!(bytes[24..32], 1u64.to_ne_bytes());
    assert_eq!(bytes[32..36], 2u32.to_ne_bytes());
    assert_eq!(bytes[36..], [0; 172]);
    assert_eq!(request.wr.target.rdma(), &target);
}

#[test]
fn a_target_of_atomics_lies_where_rxe_reads_it() {
    let target = AtomicTarget {
        remote_address: 1,
        compare_add: 2,
        swap: 3,
        rkey: 4,
        ..AtomicTarget::default()
    };
    let request = request(Target::from_atomic(&target));
    let bytes = request.as_bytes();
    assert_eq!(bytes[24..32], 1u64.to_ne_bytes());
    assert_eq!(bytes[32..40], 2u64.to_ne_bytes());
    assert_eq!(bytes[40..48], 3u64.to_ne_bytes());
    assert_eq!(bytes[48..52], 4u32.to_ne_bytes());
    assert_eq!(bytes[52..], [0; 156]);
    assert_eq!(request.wr.target.atomic(), &target);
}

#[test]
fn a_target_of_datagrams_lies_where_rxe_reads_it() {
    let target = DatagramTarget {
        remote_qp_number: 1,
        remote_qkey: 2,
        pkey_index: 3,
        ah_number: 4,
        ..DatagramTarget::default()
    };
    let request = request(Target::from_datagram(&target));
    let bytes = request.as_bytes();
    assert_eq!(bytes[24..28], 1u32.to_ne_bytes());
    assert_eq!(bytes[28..32], 2u32.to_ne_bytes());
    assert_eq!(bytes[32..34], 3u16.to_ne_bytes());
    assert_eq!(bytes[36..40], 4u32.to_ne_bytes());
    assert_eq!(bytes[40..], [0; 168]);
    assert_eq!(request.wr.target.datagram(), &target);
}

#[test]
fn memory_is_all_to_do_at_first() {
    let dma = DmaInfo::new(100, 3);
    let words: [u32; 6] = zerocopy::transmute!(dma);
    assert_eq!(words, [100, 100, 0, 3, 0, 0]);
}

#[test]
fn data_in_line_takes_the_place_of_the_second_piece() {
    let mut request = siw::Sqe::read_from_bytes(&[0; 120]).unwrap();
    request.inline_data_mut().fill(7);
    assert_eq!(request.inline_data(), &[7; siw::MAX_INLINE]);
    assert_eq!(request.as_bytes()[..40], [0; 40]);
    assert_eq!(request.as_bytes()[40..], [7; 80]);
}

#[test]
fn what_goes_with_a_message_is_as_the_peer_gets_it() {
    let data = ImmediateOrKey::from_immediate(Be32::new(0x0102_0304));
    assert_eq!(data.as_bytes(), [1, 2, 3, 4]);
    assert_eq!(data.immediate().get(), 0x0102_0304);
    let key = ImmediateOrKey::from_key(5);
    assert_eq!(key.as_bytes(), 5u32.to_ne_bytes());
    assert_eq!(key.key(), 5);
}

#[test]
fn a_key_that_ended_is_the_first_half_of_the_word() {
    let mut bytes = [0; 32];
    bytes[16..20].copy_from_slice(&5u32.to_ne_bytes());
    bytes[20..24].fill(0xff);
    let completion = siw::Cqe::read_from_bytes(&bytes).unwrap();
    assert_eq!(completion.invalidated_key(), 5);
}

#[test]
fn numbers_have_names() {
    assert_eq!(format!("{:?}", WcStatus::new(12)), "RETRY_EXC_ERR");
    assert_eq!(format!("{:?}", WcOpcode::new(129)), "RECV_RDMA_WITH_IMM");
    assert_eq!(format!("{:?}", WrOpcode::new(9)), "SEND_WITH_INV");
    assert_eq!(
        format!("{:?}", AsyncEventKind::new(16)),
        "QP_LAST_WQE_REACHED"
    );
    assert_eq!(format!("{:?}", siw::CqeStatus::new(4)), "WR_FLUSH_ERR");
    assert_eq!(format!("{:?}", siw::Opcode::new(200)), "Opcode(200)");
    assert_eq!(WcStatus::new(22).name(), None);
}

proptest! {
    /// Whatever a driver or a peer puts there can be read.
    #[test]
    fn any_bytes_are_an_element(bytes in any::<[u8; 208]>()) {
        let request = rxe::SendWqe::read_from_bytes(&bytes).unwrap();
        prop_assert_eq!(request.wr.target.rdma().as_bytes(), &bytes[24..40]);
        prop_assert_eq!(request.wr.target.atomic().as_bytes(), &bytes[24..56]);
        prop_assert_eq!(request.wr.target.datagram().as_bytes(), &bytes[24..40]);
        let (completion, _) = WorkCompletion::read_from_prefix(&bytes).unwrap();
        prop_assert_eq!(completion.as_bytes(), &bytes[..48]);
        let (completion, _) = siw::Cqe::read_from_prefix(&bytes).unwrap();
        prop_assert_eq!(completion.as_bytes(), &bytes[..32]);
        let (event, _) = AsyncEvent::read_from_prefix(&bytes).unwrap();
        prop_assert_eq!(event.as_bytes(), &bytes[..16]);
        let debug = format!("{request:?} {completion:?} {event:?}");
        prop_assert!(!debug.is_empty());
    }
}
