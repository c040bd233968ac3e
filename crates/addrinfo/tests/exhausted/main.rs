//! Errors of the system's resolver without memory or descriptors, each in a process of
//! its own.
#![cfg(test)]

use std::process::Command;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rdmacm_addrinfo::{AddrInfoResolver, Error, Hints, LocalAddress, NameError};
use rdmacm_core::{CmAddr, Deadline};

mod arena;

const CHILD: &str = "RDMACM_TEST_CHILD";

/// Runs the test of this name once more, alone and as the child.
fn in_a_child(test: &str, body: fn()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut child = Command::new("/proc/self/exe");
    let output = child
        .env(CHILD, "")
        // A backtrace wants more memory than the child has.
        .env("RUST_BACKTRACE", "0")
        .args(["--exact", test])
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output_text}");
}

/// A lookup that has succeeded once, so that the C library has read its configuration:
/// without that, it reports every failure as an unknown name.
fn lookup(host: &'static str) -> impl Fn() -> Result<Vec<CmAddr>, Error> {
    let addr_info_resolver = AddrInfoResolver::new();
    // On this thread, so that it takes no other.
    let hints = Hints::rc().deadline(Deadline::Never);
    let lookup = move || addr_info_resolver.addresses(host, "7471", &hints);
    lookup().unwrap();
    lookup
}

/// Runs `then` while the process may have this much of a resource.
fn limited<T>(resource: Resource, most: u64, then: impl FnOnce() -> T) -> T {
    let (soft, hard) = getrlimit(resource).unwrap();
    setrlimit(resource, most, hard).unwrap();
    let outcome = then();
    setrlimit(resource, soft, hard).unwrap();
    outcome
}

#[test]
fn without_a_descriptor_the_system_fails_with_its_error_number() {
    let test = "without_a_descriptor_the_system_fails_with_its_error_number";
    in_a_child(test, || {
        let lookup = lookup("localhost");
        let error = limited(Resource::RLIMIT_NOFILE, 0, &lookup).unwrap_err();
        // Where names have further sources, such as mdns, the last one's error is reported.
        let numbers = [libc::EMFILE, libc::EBUSY].map(|errno| NameError::System(errno).into());
        assert!(numbers.contains(&error), "{error}");
        let numbers = [libc::EMFILE, libc::EBUSY].map(Some);
        assert!(numbers.contains(&error.raw_os_error()), "{error}");
        lookup().unwrap();
    });
}

#[test]
fn without_a_descriptor_no_interface_is_unknown() {
    let test = "without_a_descriptor_no_interface_is_unknown";
    in_a_child(test, || {
        let addr_info_resolver = AddrInfoResolver::new().acm(None);
        limited(Resource::RLIMIT_NOFILE, 0, || {
            let numeric = addr_info_resolver.addresses("fe80::1%lo", "7471", &Hints::rc());
            assert_eq!(numeric, Err(Error::Interfaces(libc::EMFILE)));
            let passive = addr_info_resolver.resolve("lo", "7471", &Hints::rc().passive());
            assert_eq!(passive, Err(Error::Interfaces(libc::EMFILE)));
            let found = LocalAddress::for_interface("lo");
            assert_eq!(found, Err(Error::Interfaces(libc::EMFILE)));
        });
    });
}

#[test]
fn without_memory_the_system_says_so() {
    let test = "without_memory_the_system_says_so";
    in_a_child(test, || {
        // A numeric form that only the C library reads: with a name, it waits for memory.
        let lookup = lookup("0x7f000001");
        let error = limited(Resource::RLIMIT_AS, 0, || {
            arena::drain_the_c_library();
            lookup()
        });
        let error = error.unwrap_err();
        assert_eq!(error, NameError::Memory.into());
        // What was drained is not freed, but the limit is lifted.
        lookup().unwrap();
    });
}
