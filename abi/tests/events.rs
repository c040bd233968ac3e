//! Events, read by kind.

use rdmacm_abi::{ConnParam, EventNumber, EventParam, EventResponse, UdParam};
use zerocopy::{FromZeros, IntoBytes};

/// An event as a kernel writes it, from its bytes.
fn event(write: impl FnOnce(&mut [u8; 336])) -> EventResponse {
    let mut bytes = [0; 336];
    write(&mut bytes);
    zerocopy::transmute!(bytes)
}

#[test]
fn a_refusal_of_a_connected_id() {
    let event = event(|bytes| {
        bytes[0..8].copy_from_slice(&77_u64.to_ne_bytes());
        bytes[8..12].copy_from_slice(&3_u32.to_ne_bytes());
        bytes[12..16].copy_from_slice(&8_u32.to_ne_bytes());
        bytes[16..20].copy_from_slice(&28_u32.to_ne_bytes());
        bytes[20..24].copy_from_slice(&0x1234_u32.to_ne_bytes());
        bytes[28..31].copy_from_slice(b"why");
        bytes[284] = 148;
        bytes[286] = 3;
        bytes[287] = 5;
        bytes[328..332].copy_from_slice(&9_u32.to_ne_bytes());
    });
    assert_eq!((event.uid, event.id), (77, 3));
    assert_eq!(event.event, EventNumber::REJECTED);
    assert_eq!(event.status(), 28);
    let conn = event.param.conn();
    assert_eq!(conn.qp_number, 0x1234);
    assert_eq!(conn.private_data().len(), 148);
    assert!(conn.private_data().starts_with(b"why\0"));
    assert_eq!((conn.responder_resources, conn.initiator_depth), (3, 5));
    assert_eq!(event.ece.vendor_id, 9);
}

#[test]
fn a_failure_has_a_negative_status() {
    let event = event(|bytes| bytes[16..20].copy_from_slice(&(-110_i32).to_ne_bytes()));
    assert_eq!(event.raw_status, 0xFFFF_FF92);
    assert_eq!(event.status(), -110);
}

#[test]
fn an_answer_to_a_datagram_id() {
    let event = event(|bytes| {
        bytes[20..24].copy_from_slice(&0xFF_FFFF_u32.to_ne_bytes());
        bytes[24..28].copy_from_slice(&rdmacm_abi::UDP_QKEY.to_ne_bytes());
        bytes[28..44].copy_from_slice(&[0xAB; 16]);
        bytes[49] = 64;
        bytes[57] = 1;
        bytes[58] = 1;
        bytes[60..63].copy_from_slice(b"you");
        bytes[316] = 136;
    });
    let ud = event.param.ud();
    assert_eq!((ud.qp_number, ud.qkey), (0xFF_FFFF, rdmacm_abi::UDP_QKEY));
    assert_eq!(ud.ah_attr.grh.destination_gid, [0xAB; 16]);
    assert_eq!(ud.ah_attr.grh.hop_limit, 64);
    assert_eq!((ud.ah_attr.is_global, ud.ah_attr.port_number), (1, 1));
    assert_eq!(ud.private_data().len(), 136);
    assert!(ud.private_data().starts_with(b"you\0"));
}

#[test]
fn the_number_of_a_written_event_is_not_eight_aligned() {
    let number = 0x0102_0304_0506_0708_u64;
    let event = event(|bytes| bytes[20..28].copy_from_slice(&number.to_ne_bytes()));
    assert_eq!(event.param.arg(), number);
}

#[test]
fn parameters_read_back_as_they_were_made() {
    let conn = ConnParam::new(5).with_private_data(b"data").unwrap();
    assert_eq!(EventParam::from_conn(&conn).conn(), &conn);
    let mut ud = UdParam::new_zeroed();
    ud.private_data_len = 4;
    ud.ah_attr.port_number = 2;
    assert_eq!(EventParam::from_ud(&ud).ud(), &ud);
    assert_eq!(EventParam::from_arg(u64::MAX).arg(), u64::MAX);
    assert_eq!(EventParam::ZERO.as_bytes(), [0; 304]);
}

/// The kind is not known, so none of the views would be right to show.
#[test]
fn parameters_show_nothing_in_debug() {
    let shown = format!("{:?}", EventParam::from_arg(12345));
    assert_eq!(shown, "EventParam { .. }");
}
