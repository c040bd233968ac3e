//! Requests, their headers and what they must leave at zero.

use core::mem::offset_of;

use rdmacm_abi::*;
use zerocopy::{FromZeros, IntoBytes};

/// Number, bytes of request, bytes of response and the fewest an old kernel
/// writes, as `ucma.c` checks them.
fn shape<C: Command>() -> (u32, u16, u16, usize) {
    let header = Header::of::<C>();
    (
        header.cmd.number(),
        header.request_size,
        header.response_size,
        C::MIN_RESPONSE,
    )
}

#[test]
fn shapes_are_the_kernels() {
    assert_eq!(shape::<CreateId>(), (0, 24, 4, 4));
    assert_eq!(shape::<DestroyId>(), (1, 16, 4, 4));
    assert_eq!(shape::<BindIp>(), (2, 40, 0, 0));
    assert_eq!(shape::<ResolveIp>(), (3, 64, 0, 0));
    assert_eq!(shape::<ResolveRoute>(), (4, 8, 0, 0));
    assert_eq!(shape::<QueryRoute>(), (5, 16, 208, 200));
    assert_eq!(shape::<Connect>(), (6, 288, 0, 0));
    assert_eq!(shape::<Listen>(), (7, 8, 0, 0));
    assert_eq!(shape::<Accept>(), (8, 296, 0, 0));
    assert_eq!(shape::<Reject>(), (9, 264, 0, 0));
    assert_eq!(shape::<Disconnect>(), (10, 4, 0, 0));
    assert_eq!(shape::<InitQpAttr>(), (11, 16, 144, 144));
    assert_eq!(shape::<GetEvent>(), (12, 8, 336, 324));
    assert_eq!(shape::<SetOption>(), (14, 24, 0, 0));
    assert_eq!(shape::<Notify>(), (15, 8, 0, 0));
    assert_eq!(shape::<JoinIpMulticast>(), (16, 48, 4, 4));
    assert_eq!(shape::<LeaveMulticast>(), (17, 16, 4, 4));
    assert_eq!(shape::<MigrateId>(), (18, 16, 4, 4));
    assert_eq!(shape::<QueryAddr>(), (19, 16, 280, 272));
    assert_eq!(shape::<QueryGid>(), (19, 16, 280, 272));
    assert_eq!(shape::<QueryPath<6>>(), (19, 16, 440, 8));
    assert_eq!(shape::<QueryIbService<2>>(), (19, 16, 360, 8));
    assert_eq!(shape::<Bind>(), (20, 136, 0, 0));
    assert_eq!(shape::<ResolveAddr>(), (21, 272, 0, 0));
    assert_eq!(shape::<JoinMulticast>(), (22, 152, 4, 4));
    assert_eq!(shape::<ResolveIbService>(), (23, 88, 0, 0));
    assert_eq!(shape::<WriteCmEvent>(), (24, 320, 0, 0));
}

#[test]
fn pointers_and_descriptors_are_where_the_kernel_looks() {
    assert_eq!(CreateId::POINTER, Pointer::Response { offset: 8 });
    assert_eq!(QueryPath::<1>::POINTER, Pointer::Response { offset: 0 });
    let option_value = Pointer::OptionValue {
        offset: 0,
        size_offset: 20,
    };
    assert_eq!(SetOption::POINTER, option_value);
    assert_eq!(BindIp::POINTER, Pointer::None);
    assert_eq!((MigrateId::FD, GetEvent::FD), (Some(12), None));
}

#[test]
fn a_header_is_eight_bytes_in_host_order() {
    let mut expected = 6_u32.to_ne_bytes().to_vec();
    expected.extend(288_u16.to_ne_bytes());
    expected.extend([0, 0]);
    assert_eq!(Header::of::<Connect>().as_bytes(), expected);
}

/// The writer of a request fills these in.
#[test]
fn constructors_leave_pointers_and_reserved_bytes_at_zero() {
    let request = CreateId::new(u64::MAX, PortSpace::new(u16::MAX), QpType::new(u8::MAX));
    assert_eq!(request.as_bytes()[..8], [0xFF; 8]);
    assert_eq!(request.as_bytes()[8..16], [0; 8]);
    assert_eq!(request.as_bytes()[16..19], [0xFF; 3]);
    assert_eq!(request.as_bytes()[19..], [0; 5]);

    let request = SetOption::id(3, IdOption::AFONLY);
    assert_eq!((request.value, request.size), (0, 0));
    assert_eq!((request.level, request.name), (OptionLevel::ID, 2));

    let request = QueryGid::new(7);
    assert_eq!(request.query().option, QueryOption::GID);
    assert_eq!((request.query().id, request.query().response), (7, 0));
}

#[test]
fn accept_without_parameters_means_ready_to_use() {
    let request = Accept::ready_to_use(5);
    let mut expected = Accept::new_zeroed();
    expected.id = 5;
    assert_eq!(request, expected);
    assert_eq!(offset_of!(Accept, id), 280);
}

#[test]
fn private_data_says_its_length_and_has_zeros_behind() {
    let param = ConnParam::new(17).with_private_data(b"hello").unwrap();
    assert_eq!((param.qp_number, param.valid), (17, 1));
    assert_eq!(param.private_data(), b"hello");
    assert_eq!(param.private_data[5..], [0; 251]);

    let longest = [7; 255];
    let param = ConnParam::new(17).with_private_data(&longest).unwrap();
    assert_eq!(param.private_data(), longest);
    let error = ConnParam::new(17).with_private_data(&[7; 256]).unwrap_err();
    assert_eq!(error, PrivateDataTooLong { len: 256 });
    assert_eq!(
        error.to_string(),
        "256 bytes of private data, at most 255 fit"
    );
    assert_eq!(
        Reject::new(1, RejectReason::CONSUMER_DEFINED, &[7; 256]),
        Err(error)
    );
}

#[test]
fn a_rejection_carries_reason_and_data() {
    let request = Reject::new(9, RejectReason::VENDOR_OPTION_NOT_SUPPORTED, b"no").unwrap();
    assert_eq!(request.as_bytes()[4..10], [2, 35, 0, 0, b'n', b'o']);
}

#[test]
fn service_names_keep_their_closing_zero() {
    let service = IbService::with_name(&[b'x'; 63]).unwrap();
    assert_eq!(service.service_name[63], 0);
    assert_eq!(service.flags, ServiceFlags::NAME);
    assert_eq!(IbService::with_name(&[b'x'; 64]), None);
    assert_eq!(IbService::with_name(b"a\0b"), None);
    assert_eq!(IbService::with_id(4).flags, ServiceFlags::ID);
}

#[test]
fn a_written_event_has_its_argument_at_sixteen() {
    let request = WriteCmEvent::new(1, EventNumber::USER, -110, 0x0102_0304_0506_0708);
    assert_eq!(request.status(), -110);
    assert_eq!(request.param.arg(), 0x0102_0304_0506_0708);
    assert_eq!(
        request.as_bytes()[16..24],
        0x0102_0304_0506_0708_u64.to_ne_bytes()
    );
    assert_eq!(request.as_bytes()[24..], [0; 296]);
    assert_eq!(request.param.conn().qp_number, request.param.ud().qp_number);
}
