//! Devices without datagrams.

use std::io;

use rdmacm::core::{CmAddr, Error};
use rdmacm::{Cause, DatagramSocket, Stage};
use rdmacm_tests::{PLAIN, SECOND, Site};
use rdmacm_tests_macros::case;

#[case(needs(TcpHandshake))]
fn iwarp_has_no_datagrams(site: &Site) {
    let error = DatagramSocket::bind(site.v4(0)).unwrap_err();
    assert_eq!(error.stage(), Stage::Bind);
    assert!(
        error.to_string().contains("iWARP has no datagrams"),
        "{error}"
    );
    assert_eq!(error.device(), Some(site.device));
    let Cause::QueuePair(cause) = error.cause() else {
        panic!("{error:?}");
    };
    assert_eq!(cause.kind(), io::ErrorKind::Unsupported);
}

#[case(needs(TcpHandshake))]
fn a_peer_on_iwarp_is_not_queried(site: &Site) {
    let node = site.v4.to_string();
    let error = DatagramSocket::connect((node, "7471"), SECOND).unwrap_err();
    assert_eq!(error.stage(), Stage::Connect, "{error}");
}

#[case(needs(Datagrams))]
fn a_wildcard_address_has_no_device(_: &Site) {
    for text in ["0.0.0.0:0", "[::]:0"] {
        let error = DatagramSocket::bind(text).unwrap_err();
        assert_eq!(error.stage(), Stage::Bind);
        assert!(error.to_string().contains("is of one device"), "{error}");
        let Cause::Refused(cause) = error.cause() else {
            panic!("{error:?}");
        };
        assert!(matches!(cause, Error::InvalidInput { .. }), "{cause}");
    }
}

#[case(needs(Datagrams))]
fn an_address_of_no_device_is_refused(_: &Site) {
    let error = DatagramSocket::bind(CmAddr::from((PLAIN, 0))).unwrap_err();
    assert_eq!(error.stage(), Stage::Bind);
    assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
}

#[case(needs(Datagrams))]
fn an_unparsable_address_is_refused(_: &Site) {
    let error = DatagramSocket::bind("somewhere").unwrap_err();
    assert!(matches!(error.cause(), Cause::InvalidAddress), "{error}");
}
