//! Access rights that are changed while memory is registered.

use rdmacm_core::AccessFlags;
use rdmacm_tests::{Site, Soft};
use rdmacm_verbs::{Error, QueuePair, RemoteAccessRegion, SendOperation, SendRequest};

use super::{ALL, brought, contents, exposed, perform, received, room, roomy, sent, sge};
use crate::newer_commands;
use rdmacm_tests_macros::case;

/// Of the soft drivers only rxe supports it, and not in older kernels.
fn can(site: &Site) -> bool {
    site.soft == Soft::Rxe && newer_commands::is_new()
}

const READ: AccessFlags = AccessFlags::LOCAL_WRITE.union(AccessFlags::REMOTE_READ);

fn write(client: &QueuePair, memory: &RemoteAccessRegion, bytes: &[u8]) -> bool {
    let write = SendOperation::Write(memory.remote());
    let request = SendRequest::new(write, sge(client, bytes));
    client.post_send(request).unwrap();
    sent(client).result().is_ok()
}

fn assert_cannot(memory: &RemoteAccessRegion, access: AccessFlags) {
    let before = memory.access();
    let error = memory.change_access(access).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    let words = error.to_string();
    assert!(words.contains("cannot change a registration"), "{words}");
    assert_eq!(memory.access(), before);
}

#[case]
fn access_changes_where_the_driver_can(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let memory = exposed(server, 8);
    assert!(write(client, &memory, b"12345678"));
    if !can(site) {
        assert_cannot(&memory, READ);
        // The rights are unchanged.
        assert!(write(client, &memory, b"abcdefgh"));
        let read = SendOperation::Read(memory.remote());
        let done = perform(client, read, room(client, 8));
        assert_eq!(brought(done, 8), b"abcdefgh");
        return;
    }
    memory.change_access(READ).unwrap();
    assert_eq!(memory.access(), READ);
    let read = SendOperation::Read(memory.remote());
    let done = perform(client, read, room(client, 8));
    assert_eq!(brought(done, 8), b"12345678");
    // The device may still write there for this side.
    server.post_receive(memory.slice(0..4).unwrap()).unwrap();
    drop(perform(client, SendOperation::Send, sge(client, b"abcd")));
    assert!(received(server).result().is_ok());
    assert_eq!(contents(&memory), b"abcd5678");
    // And the reverse change.
    memory.change_access(ALL).unwrap();
    assert!(write(client, &memory, b"12345678"));
    memory.change_access(READ).unwrap();
    assert!(!write(client, &memory, b"abcdefgh"));
    assert_eq!(contents(&memory), b"12345678");
}

#[case]
fn contradictory_access_is_refused(site: &Site) {
    let server = site.queue_pair();
    let memory = exposed(&server, 8);
    let error = memory.change_access(AccessFlags::REMOTE_WRITE).unwrap_err();
    let errno = if can(site) {
        libc::EINVAL
    } else {
        libc::EOPNOTSUPP
    };
    assert_eq!(error.raw_os_error(), Some(errno), "{error}");
    assert_eq!(memory.access(), ALL);
    server.context().close();
    let closed = memory.change_access(READ).unwrap_err();
    assert!(matches!(closed, Error::ContextClosed { .. }), "{closed}");
}

/// Memory that was registered for reading only is pinned for reading only.
#[case]
fn read_only_memory_stays_read_only(site: &Site) {
    let server = site.queue_pair();
    let domain = server.protection_domain();
    let memory = domain.expose(8, AccessFlags::REMOTE_READ).unwrap();
    if !can(site) {
        return assert_cannot(&memory, ALL);
    }
    let error = memory.change_access(ALL).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EACCES));
    let words = error.to_string();
    assert!(words.contains("not registered for writing"), "{words}");
    assert_eq!(memory.access(), AccessFlags::REMOTE_READ);
    memory.change_access(AccessFlags::empty()).unwrap();
    assert_eq!(memory.access(), AccessFlags::empty());
}
