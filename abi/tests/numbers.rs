//! Numbers with names, and numbers without.

use rdmacm_abi::{
    CommandNumber, EventNumber, PathFlags, PortSpace, QpAttrMask, RejectReason, SidrStatus,
};

#[test]
fn the_command_table_has_twenty_five_entries() {
    let names: Vec<_> = (0..30)
        .map_while(|n| CommandNumber::new(n).name())
        .collect();
    assert_eq!(names.len(), 25);
    assert_eq!(
        (names[0], names[13], names[24]),
        ("CREATE_ID", "GET_OPTION", "WRITE_CM_EVENT")
    );
}

#[test]
fn a_newer_kernels_number_is_legal_and_shown() {
    assert_eq!(EventNumber::new(20).name(), None);
    assert_eq!(format!("{:?}", EventNumber::new(20)), "EventNumber(20)");
    assert_eq!(format!("{:?}", EventNumber::INTERNAL), "INTERNAL");
    assert_eq!(PortSpace::TCP.to_string(), "TCP");
    assert_eq!(PortSpace::new(0x123).to_string(), "0x0123");
    assert_eq!(u32::from(EventNumber::from(19)), 19);
}

#[test]
fn a_status_is_a_reason_or_an_errno() {
    assert_eq!(
        RejectReason::from_status(8),
        Some(RejectReason::INVALID_SERVICE_ID)
    );
    assert_eq!(RejectReason::from_status(-104), None);
    assert_eq!(RejectReason::from_status(0), None);
    assert_eq!(RejectReason::from_status(300), None);
    assert_eq!(SidrStatus::from_status(2), Some(SidrStatus::REJECT));
    assert_eq!(SidrStatus::from_status(-110), None);
}

#[test]
fn every_reason_with_a_name_has_a_text() {
    for code in 0..=u8::MAX {
        let reason = RejectReason::new(code);
        assert_eq!(
            reason.name().is_some(),
            reason.text().is_some(),
            "{reason:?}"
        );
        let status = SidrStatus::new(code);
        assert_eq!(
            status.name().is_some(),
            status.text().is_some(),
            "{status:?}"
        );
    }
    assert_eq!(RejectReason::INVALID_SERVICE_ID.text(), Some("no listener"));
}

#[test]
fn bits_without_a_name_are_kept() {
    let mask = QpAttrMask::from_bits_retain(0x39);
    assert_eq!(
        format!("{mask:?}"),
        "STATE | ACCESS_FLAGS | PKEY_INDEX | PORT"
    );
    let flags = PathFlags::from_bits_retain(0x8000_0001);
    assert_eq!(flags.bits(), 0x8000_0001);
    assert_eq!(format!("{flags:?}"), "GMP | 0x80000000");
}
