//! Events of a queue pair that the connection manager may have missed.

use rdmacm_core::{ConnParam, EventKind, Notification, PortSpace};
use rdmacm_tests::{Site, Soft};
use rdmacm_tests_macros::case;

fn errno(outcome: Result<(), rdmacm_core::Error>) -> Option<i32> {
    outcome.unwrap_err().raw_os_error()
}

#[case(covers(NOTIFY))]
fn an_established_connection_ignores_it(site: &Site) {
    let pair = site.pair();
    for side in [&pair.client, &pair.server] {
        let result = side.id.notify(Notification::CommunicationEstablished);
        match site.soft {
            Soft::Rxe => assert_eq!(errno(result), Some(libc::EISCONN)),
            Soft::Siw => assert_eq!(result, Ok(())),
        }
        assert!(side.channel.try_next_event().unwrap().is_none());
    }
}

/// Ids in three states: resolved, connecting, and requested.
#[case]
fn an_unaccepted_connection_is_refused(site: &Site) {
    let listener = site.listening(PortSpace::TCP);
    let resolved = site.side(&listener);
    let result = resolved.id.notify(Notification::CommunicationEstablished);
    assert_eq!(errno(result), Some(libc::EINVAL));
    let pair = site.pending_request().into_pair(site);
    for side in [&pair.client, &pair.server] {
        let result = side.id.notify(Notification::CommunicationEstablished);
        match site.soft {
            Soft::Rxe => assert_eq!(errno(result), Some(libc::EINVAL)),
            Soft::Siw => assert_eq!(result, Ok(())),
        }
    }
    pair.accept(&ConnParam::new());
    pair.establish(site);
}

/// The kernel accepts it for any RoCE connection, although there is no alternate path;
/// the connection still works.
#[case]
fn a_migrated_path_is_accepted(site: &Site) {
    let listener = site.listening(PortSpace::TCP);
    let early = site.side(&listener).id.notify(Notification::PathMigrated);
    assert_eq!(errno(early), Some(libc::EINVAL));
    let pair = site.pair();
    pair.client.id.notify(Notification::PathMigrated).unwrap();
    assert!(pair.client.channel.try_next_event().unwrap().is_none());
    pair.server.disconnect();
    pair.client.expect(EventKind::Disconnected);
}
