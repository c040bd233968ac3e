//! Path records as the kernel's structures hold them.

use rdmacm_abi::{PathFlags, PathMtu, PathRecordData, Reserved, UserPathRecord};
use zerocopy::byteorder::big_endian;

use super::{PathData, PathRecord};
use crate::gid::Gid;

/// What fills the places of [`PathRecords`](super::PathRecords) that have none.
pub(crate) const NO_PATH: PathData = PathData {
    flags: PathFlags::empty(),
    record: PathRecord {
        service_id: 0,
        dgid: Gid::UNSPECIFIED,
        sgid: Gid::UNSPECIFIED,
        dlid: 0,
        slid: 0,
        flow_label: 0,
        hop_limit: 0,
        traffic_class: 0,
        reversible: false,
        numb_path: 0,
        pkey: 0,
        qos_class: 0,
        sl: 0,
        mtu_selector: 0,
        mtu: PathMtu::new(0),
        rate_selector: 0,
        rate: 0,
        packet_life_time_selector: 0,
        packet_life_time: 0,
        preference: 0,
    },
};

impl From<&PathRecordData> for PathData {
    fn from(data: &PathRecordData) -> Self {
        let wire = &data.record;
        Self {
            flags: data.flags(),
            record: PathRecord {
                service_id: wire.service_id.get(),
                dgid: Gid(wire.destination_gid),
                sgid: Gid(wire.source_gid),
                dlid: wire.destination_lid.get(),
                slid: wire.source_lid.get(),
                flow_label: wire.flow_label(),
                hop_limit: wire.hop_limit(),
                traffic_class: wire.traffic_class,
                reversible: wire.is_reversible(),
                numb_path: wire.path_count(),
                pkey: wire.pkey.get(),
                qos_class: wire.qos_class(),
                sl: wire.service_level(),
                mtu_selector: wire.mtu_selector_mtu >> 6,
                mtu: PathMtu::new(wire.mtu().into()),
                rate_selector: wire.rate_selector_rate >> 6,
                rate: wire.rate(),
                packet_life_time_selector: wire.life_selector_packet_life_time >> 6,
                packet_life_time: wire.packet_life_time(),
                preference: wire.preference,
            },
        }
    }
}

impl From<&PathData> for PathRecordData {
    /// Bits beyond a field's width are left out.
    fn from(data: &PathData) -> Self {
        let path = &data.record;
        let [.., mtu] = path.mtu.number().to_be_bytes();
        let flow_label_hop_limit = (path.flow_label & 0xf_ffff) << 8 | u32::from(path.hop_limit);
        let record = rdmacm_abi::PathRecord {
            service_id: big_endian::U64::new(path.service_id),
            destination_gid: path.dgid.0,
            source_gid: path.sgid.0,
            destination_lid: big_endian::U16::new(path.dlid),
            source_lid: big_endian::U16::new(path.slid),
            flow_label_hop_limit: big_endian::U32::new(flow_label_hop_limit),
            traffic_class: path.traffic_class,
            reversible_path_count: u8::from(path.reversible) << 7 | path.numb_path & 0x7f,
            pkey: big_endian::U16::new(path.pkey),
            qos_class_service_level: big_endian::U16::new(
                path.qos_class << 4 | u16::from(path.sl & 0xf),
            ),
            mtu_selector_mtu: selected(path.mtu_selector, mtu),
            rate_selector_rate: selected(path.rate_selector, path.rate),
            life_selector_packet_life_time: selected(
                path.packet_life_time_selector,
                path.packet_life_time,
            ),
            preference: path.preference,
            reserved: Reserved::ZERO,
        };
        Self::new(data.flags, record)
    }
}

/// A selector in the upper two bits and its value in the others.
fn selected(selector: u8, value: u8) -> u8 {
    selector << 6 | value & 0x3f
}

impl From<PathRecord> for PathData {
    /// Without flags.
    fn from(record: PathRecord) -> Self {
        Self {
            flags: PathFlags::empty(),
            record,
        }
    }
}

impl From<&UserPathRecord> for PathData {
    /// The unpacked form has neither flags nor service id nor class of service.
    fn from(path: &UserPathRecord) -> Self {
        Self {
            flags: PathFlags::empty(),
            record: PathRecord {
                service_id: 0,
                dgid: Gid(path.destination_gid),
                sgid: Gid(path.source_gid),
                dlid: path.destination_lid.get(),
                slid: path.source_lid.get(),
                flow_label: path.flow_label.get(),
                hop_limit: path.hop_limit,
                traffic_class: path.traffic_class,
                reversible: path.reversible != 0,
                numb_path: path.path_count,
                pkey: path.pkey.get(),
                qos_class: 0,
                sl: path.service_level,
                mtu_selector: path.mtu_selector,
                mtu: PathMtu::new(path.mtu),
                rate_selector: path.rate_selector,
                rate: path.rate,
                packet_life_time_selector: path.packet_life_time_selector,
                packet_life_time: path.packet_life_time,
                preference: path.preference,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathRecords;
    use proptest::prelude::*;
    use zerocopy::{FromBytes, IntoBytes};

    proptest! {
        /// Whatever the kernel says can be handed back to it unchanged, but for
        /// the reserved words and the unused bits of the flow label's word.
        #[test]
        fn records_survive_unpacking(bytes: [u8; 72]) {
            let mut bytes = bytes;
            bytes[4..8].fill(0);
            bytes[52] &= 0x0f;
            bytes[66..].fill(0);
            let data = PathRecordData::read_from_bytes(&bytes).unwrap();
            let again = PathRecordData::from(&PathData::from(&data));
            prop_assert_eq!(again.as_bytes(), &bytes[..]);
        }
    }

    /// No two fields are alike, so none stands for another.
    #[test]
    fn the_unpacked_form_is_read_field_by_field() {
        let mut bytes: [u8; 64] = std::array::from_fn(|at| u8::try_from(at).unwrap());
        bytes[40..44].copy_from_slice(&0x000b_cdef_u32.to_be_bytes());
        bytes[44..48].copy_from_slice(&1_u32.to_ne_bytes());
        bytes[48..52].copy_from_slice(&4_u32.to_ne_bytes());
        let wire = UserPathRecord::read_from_bytes(&bytes).unwrap();
        let data = PathData::from(&wire);
        assert_eq!(data.flags, PathFlags::empty());
        let expected = PathRecord {
            service_id: 0,
            dgid: Gid(std::array::from_fn(|at| bytes[at])),
            sgid: Gid(std::array::from_fn(|at| bytes[16 + at])),
            dlid: 0x2021,
            slid: 0x2223,
            flow_label: 0xb_cdef,
            hop_limit: 54,
            traffic_class: 55,
            reversible: true,
            numb_path: 56,
            pkey: 0x3435,
            qos_class: 0,
            sl: 57,
            mtu_selector: 58,
            mtu: PathMtu::new(4),
            rate_selector: 59,
            rate: 60,
            packet_life_time_selector: 61,
            packet_life_time: 62,
            preference: 63,
        };
        assert_eq!(data.record, expected);
    }

    #[test]
    fn a_count_beyond_the_answer_or_the_room_is_refused() {
        let four = [NO_PATH; 4];
        assert_eq!(PathRecords::new(four, 2).unwrap().len(), 2);
        assert!(PathRecords::new(four, 0).unwrap().is_empty());
        assert_eq!(PathRecords::new([NO_PATH; 1], 2), None);
        assert_eq!(PathRecords::new([NO_PATH; 9], 9), None);
        assert_eq!(PathRecords::new(four, u32::MAX), None);
    }
}
