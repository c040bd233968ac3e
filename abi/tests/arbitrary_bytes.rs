//! Whatever a kernel writes can be read.

use proptest::prelude::*;
use rdmacm_abi::*;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Reads a response from `bytes` and looks at all of it.
fn read<R: FromBytes + IntoBytes + Immutable + std::fmt::Debug>(bytes: &[u8]) -> R {
    let mut response = R::new_zeroed();
    response
        .as_mut_bytes()
        .copy_from_slice(&bytes[..size_of::<R>()]);
    assert_eq!(response.as_bytes(), &bytes[..size_of::<R>()]);
    assert!(!format!("{response:?}").is_empty());
    response
}

proptest! {
    #[test]
    fn responses(bytes in proptest::collection::vec(any::<u8>(), 1024)) {
        let event: EventResponse = read(&bytes);
        prop_assert_eq!(event.status() < 0, event.raw_status > i32::MAX as u32);
        prop_assert!(event.param.conn().private_data().len() <= 255);
        prop_assert!(event.param.ud().private_data().len() <= 255);
        prop_assert_eq!(&event.param.arg().to_ne_bytes()[..], &bytes[20..28]);
        prop_assert_eq!(event.param.conn().as_bytes(), &bytes[20..292]);
        prop_assert_eq!(event.param.ud().as_bytes(), &bytes[20..324]);

        let addresses: QueryAddrResponse = read(&bytes);
        prop_assert!(addresses.source.size() <= 48);
        prop_assert!(addresses.destination.size() <= 48);
        read::<QueryRouteResponse>(&bytes);
        let paths = read::<QueryPathResponse<6>>(&bytes);
        prop_assert!(paths.paths().len() <= 6);
        let services = read::<QueryIbServiceResponse<4>>(&bytes);
        prop_assert!(services.records().len() <= 4);
        read::<QpAttr>(&bytes);
        read::<CreateIdResponse>(&bytes);
        read::<DestroyIdResponse>(&bytes);
        read::<MigrateIdResponse>(&bytes);
    }

    #[test]
    fn big_endian_round_trips(number in any::<u64>()) {
        let big_endian = Be64::new(number);
        prop_assert_eq!(big_endian.get(), number);
        prop_assert_eq!(big_endian.as_bytes(), number.to_be_bytes());
    }

    #[test]
    fn addresses_round_trip(address in any::<std::net::SocketAddr>()) {
        let slot = SockaddrStorage::from(address);
        let back = slot
            .as_in()
            .map(|v4| std::net::SocketAddr::V4(v4.into()))
            .or_else(|| slot.as_in6().map(|v6| std::net::SocketAddr::V6(v6.into())));
        prop_assert_eq!(back, Some(address));
    }
}
