//! Path records, in the order of the wire.

use rdmacm_abi::{PathFlags, PathRecord, PathRecordData, QueryPathResponse};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// A path over RoCE as QUERY PATH answers it: 72 bytes.
fn answered() -> [u8; 72] {
    let mut bytes = [0; 72];
    bytes[0..4].copy_from_slice(&43_u32.to_ne_bytes());
    let record = &mut bytes[8..];
    record[0..8].copy_from_slice(&[0, 0, 0, 0, 0x01, 0x06, 0x1B, 0x58]);
    record[8..24].copy_from_slice(&[0xD0; 16]);
    record[24..40].copy_from_slice(&[0x50; 16]);
    record[40..44].copy_from_slice(&[0x00, 0x12, 0x00, 0x34]);
    record[44..48].copy_from_slice(&[0x0A, 0xBC, 0xDE, 64]);
    record[48..50].copy_from_slice(&[0x20, 0x81]);
    record[50..54].copy_from_slice(&[0xFF, 0xFF, 0x12, 0x35]);
    record[54..58].copy_from_slice(&[0x83, 0x82, 0x90, 1]);
    bytes
}

#[test]
fn fields_are_big_endian() {
    let data = PathRecordData::read_from_bytes(&answered()).unwrap();
    assert_eq!(data.flags(), PathRecordData::USABLE);
    let path = &data.record;
    // Port space TCP, port 7000.
    assert_eq!(path.service_id.get(), 0x0106_1B58);
    assert_eq!(path.destination_gid, [0xD0; 16]);
    assert_eq!(path.source_gid, [0x50; 16]);
    assert_eq!(path.destination_lid.get(), 0x12);
    assert_eq!(path.source_lid.get(), 0x34);
    assert_eq!((path.flow_label(), path.hop_limit()), (0xA_BCDE, 64));
    assert_eq!(path.traffic_class, 0x20);
    assert!(path.is_reversible());
    assert_eq!(path.path_count(), 1);
    assert_eq!(path.pkey.get(), 0xFFFF);
    assert_eq!((path.qos_class(), path.service_level()), (0x123, 5));
    assert_eq!((path.mtu(), path.rate()), (3, 2));
    assert_eq!((path.packet_life_time(), path.preference), (16, 1));
    assert_eq!(data.as_bytes(), answered());
}

#[test]
fn a_record_made_here_is_one_the_kernel_takes() {
    let data = PathRecordData::new(PathRecordData::USABLE, PathRecord::new_zeroed());
    assert_eq!(data.as_bytes()[..4], 43_u32.to_ne_bytes());
    assert!(data.flags().contains(PathFlags::GMP | PathFlags::PRIMARY));
    assert!(data.flags().contains(PathFlags::BIDIRECTIONAL));
    assert!(!data.flags().contains(PathFlags::ALTERNATE));
}

#[test]
fn an_answer_shows_the_records_that_came() {
    let mut bytes = [0; 8 + 2 * 72];
    bytes[8..80].copy_from_slice(&answered());
    for (count, shown) in [(0_u32, 0), (1, 1), (2, 2), (9, 2), (u32::MAX, 2)] {
        bytes[0..4].copy_from_slice(&count.to_ne_bytes());
        let response = QueryPathResponse::<2>::read_from_bytes(&bytes).unwrap();
        assert_eq!(response.path_count.get(), count);
        assert_eq!(response.paths().len(), shown);
    }
}
