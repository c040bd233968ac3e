//! Requests to verbs devices, their headers and what they must leave at zero.

use proptest::prelude::*;
use rdmacm_abi::uverbs::*;
use rdmacm_abi::{AhAttr, Pointer, QpAttrMask, Reserved};
use zerocopy::{FromBytes, IntoBytes};

/// Number, words of header and request, words of response, as
/// `uverbs_main.c` checks them.
fn shape<C: Command>() -> (u32, u16, u16) {
    let header = Header::of::<C>();
    (
        header.command.number(),
        header.request_words,
        header.response_words,
    )
}

#[test]
fn shapes_are_the_kernels() {
    assert_eq!(shape::<Rxe<GetContext>>(), (0, 4, 2));
    assert_eq!(shape::<Siw<GetContext>>(), (0, 4, 4));
    assert_eq!(shape::<QueryDevice>(), (1, 4, 44));
    assert_eq!(shape::<QueryPort>(), (2, 6, 10));
    assert_eq!(shape::<AllocPd>(), (3, 4, 1));
    assert_eq!(shape::<DeallocPd>(), (4, 3, 0));
    assert_eq!(shape::<Rxe<CreateAh>>(), (5, 16, 3));
    assert_eq!(shape::<DestroyAh>(), (8, 3, 0));
    assert_eq!(shape::<Rxe<RegMr>>(), (9, 12, 3));
    assert_eq!(shape::<siw::RegMr>(), (9, 14, 5));
    assert_eq!(shape::<ReregMr>(), (11, 14, 2));
    assert_eq!(shape::<DeregMr>(), (13, 3, 0));
    assert_eq!(shape::<CreateCompletionChannel>(), (17, 4, 1));
    assert_eq!(shape::<Rxe<CreateCq>>(), (18, 10, 6));
    assert_eq!(shape::<Siw<CreateCq>>(), (18, 10, 6));
    assert_eq!(shape::<Rxe<ResizeCq>>(), (19, 6, 6));
    assert_eq!(shape::<DestroyCq>(), (20, 6, 2));
    assert_eq!(shape::<ReqNotifyCq>(), (23, 4, 0));
    assert_eq!(shape::<Rxe<CreateQp>>(), (24, 16, 16));
    assert_eq!(shape::<Siw<CreateQp>>(), (24, 16, 16));
    assert_eq!(shape::<QueryQp>(), (25, 6, 32));
    assert_eq!(shape::<ModifyQp>(), (26, 30, 0));
    assert_eq!(shape::<DestroyQp>(), (27, 6, 1));
    assert_eq!(shape::<PostSend>(), (28, 8, 1));
    assert_eq!(shape::<AttachMulticast>(), (30, 8, 0));
    assert_eq!(shape::<DetachMulticast>(), (31, 8, 0));
    assert_eq!(shape::<Rxe<CreateSrq>>(), (32, 10, 10));
    assert_eq!(shape::<Siw<CreateSrq>>(), (32, 10, 8));
    assert_eq!(shape::<ModifySrq>(), (33, 6, 0));
    assert_eq!(shape::<rxe::ModifySrq>(), (33, 8, 0));
    assert_eq!(shape::<QuerySrq>(), (34, 6, 4));
    assert_eq!(shape::<DestroySrq>(), (35, 6, 1));
    assert_eq!(MAX_REQUEST, 112);
}

#[test]
fn pointers_are_where_the_kernel_looks() {
    assert_eq!(Rxe::<CreateQp>::POINTER, Pointer::Response { offset: 0 });
    assert_eq!(DestroyCq::POINTER, Pointer::Response { offset: 0 });
    assert_eq!(ModifyQp::POINTER, Pointer::None);
    assert_eq!(DeallocPd::POINTER, Pointer::None);
    assert_eq!(siw::RegMr::POINTER, Pointer::Response { offset: 0 });
    assert_eq!(rxe::ModifySrq::POINTER, Pointer::None);
}

#[test]
fn the_drivers_words_stand_behind_the_kernels() {
    let mut bytes = [0; 64];
    bytes[32..].fill(7);
    let answer = rxe::QpResponse::read_from_bytes(&bytes).unwrap();
    assert_eq!(answer.common.as_bytes(), [0; 32]);
    assert_eq!(answer.queues.as_bytes(), [7; 32]);
    let answer = siw::QpResponse::read_from_bytes(&bytes).unwrap();
    assert_eq!(answer.queues.as_bytes(), [7; 32]);
}

/// Not where the driver's structure would be aligned, but at once.
#[test]
fn nothing_stands_between_the_kernels_words_and_the_drivers() {
    let mut bytes = [0; 20];
    bytes[12..16].fill(7);
    let answer = siw::MrResponse::read_from_bytes(&bytes).unwrap();
    assert_eq!(answer.tag.stag, 0x0707_0707);
    let answer = rxe::AhResponse::read_from_bytes(&bytes[8..]).unwrap();
    assert_eq!(answer.ah.number, 0x0707_0707);
}

#[test]
fn constructors_leave_pointers_and_reserved_bytes_at_zero() {
    let request = CreateCq::new(u32::MAX);
    assert_eq!(request.completion_channel, -1);
    assert_eq!(request.as_bytes()[..16], [0; 16]);
    assert_eq!(request.as_bytes()[28..], [0; 4]);
    let request = QueryQp::new(u32::MAX, QpAttrMask::STATE);
    assert_eq!(request.as_bytes()[..8], [0; 8]);
    assert_eq!(DestroyQp::new(1).reserved, Reserved::ZERO);
    let request = CreateAh::new(u32::MAX, AhAttr::default());
    assert_eq!(request.as_bytes()[..16], [0; 16]);
    assert_eq!(request.as_bytes()[20..], [0; 36]);
    assert_eq!(siw::MrKey::new(5).as_bytes(), [5, 0, 0, 0, 0, 0, 0, 0]);
}

/// As both drivers take it: 32 bytes with the header, no requests behind.
#[test]
fn a_doorbell_brings_no_work() {
    let request = PostSend::doorbell(7);
    assert_eq!(request.as_bytes()[..8], [0; 8]);
    let words: [u32; 4] =
        zerocopy::transmute!(<[u8; 16]>::read_from_bytes(&request.as_bytes()[8..]).unwrap());
    assert_eq!(words, [7, 0, 0, 56]);
}

#[test]
fn setting_a_limit_never_resizes() {
    let common = ModifySrq::limit(7, 3);
    assert_eq!(common.mask, SrqAttrMask::LIMIT);
    let request = rxe::ModifySrq::limit(7, 3);
    let (kernels, drivers) = request.as_bytes().split_at(16);
    assert_eq!(kernels, common.as_bytes());
    assert_eq!(drivers, [0; 8]);
}

#[test]
fn drivers_have_names() {
    assert_eq!(format!("{:?}", DriverId::new(14)), "RXE");
    assert_eq!(format!("{:?}", DriverId::new(18)), "SIW");
    assert_eq!(format!("{:?}", DriverId::new(999)), "DriverId(999)");
}

proptest! {
    /// Both orders of the same fields, up to the reserved bytes.
    #[test]
    fn an_address_survives_both_orders(mut bytes in any::<[u8; 32]>()) {
        (bytes[23], bytes[31]) = (0, 0);
        let attr = AhAttr::read_from_bytes(&bytes).unwrap();
        let destination = QpDestination::from(attr);
        prop_assert_eq!(AhAttr::from(destination), attr);
        prop_assert_eq!(destination.as_bytes()[..20].to_vec(), bytes[..20].to_vec());
        prop_assert_eq!(destination.as_bytes()[31], bytes[30]);
    }
}
