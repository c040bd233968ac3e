//! Ids and events of a channel, on a stand-in for the kernel's file that answers at once.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark, whose file answers everything"
)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::eventfd::EventFd;
use rdmacm_abi::{EventNumber, EventResponse};
use rdmacm_core::ucma::{Call, UcmaFile};
use rdmacm_core::{CmAddr, CommandNumber, EventChannel, PortSpace};
use zerocopy::{FromZeros, IntoBytes};

fn main() {
    divan::main();
}

/// Every id is [`ID`], and resolving its address reports that at once.
#[derive(Debug)]
struct Resolving {
    descriptor: EventFd,
    uid: AtomicU64,
    /// The events that have not been read.
    events: AtomicU64,
    now: Instant,
}

const ID: u32 = 1;

impl UcmaFile for Resolving {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        match call.number() {
            CommandNumber::CREATE_ID => {
                let uid = call
                    .request()
                    .first_chunk()
                    .map(|uid| u64::from_ne_bytes(*uid));
                self.uid.store(uid.unwrap_or(0), Ordering::Relaxed);
                call.response().copy_from_slice(ID.as_bytes());
            }
            CommandNumber::RESOLVE_IP => {
                self.events.fetch_add(1, Ordering::Relaxed);
            }
            CommandNumber::GET_EVENT => {
                if self.events.load(Ordering::Relaxed) == 0 {
                    return Err(Errno::EAGAIN.into());
                }
                self.events.fetch_sub(1, Ordering::Relaxed);
                let event = EventResponse {
                    uid: self.uid.load(Ordering::Relaxed),
                    id: ID,
                    event: EventNumber::ADDR_RESOLVED,
                    ..EventResponse::new_zeroed()
                };
                call.response().copy_from_slice(event.as_bytes());
            }
            _ => {}
        }
        Ok(())
    }

    fn wait(&self, _: Option<Instant>, _: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        Ok(false)
    }

    fn wake(&self) {}

    fn take_wake(&self) -> bool {
        false
    }

    fn notify(&self) {}

    fn take_notification(&self) -> bool {
        false
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn channel() -> EventChannel {
    let file = Resolving {
        descriptor: EventFd::new().unwrap(),
        uid: AtomicU64::new(0),
        events: AtomicU64::new(0),
        now: Instant::now(),
    };
    EventChannel::options().ucma(Arc::new(file)).open().unwrap()
}

#[divan::bench]
fn create_and_destroy(bencher: divan::Bencher<'_, '_>) {
    let channel = channel();
    bencher.bench_local(|| drop(channel.create_id(PortSpace::TCP).unwrap()));
}

#[divan::bench]
fn resolve_and_read_the_event(bencher: divan::Bencher<'_, '_>) {
    let channel = channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let timeout = Duration::from_secs(2);
    let address = CmAddr::from(([10, 71, 1, 1], 7471));
    bencher.bench_local(|| {
        id.resolve_addr(None, address, timeout).unwrap();
        channel.next_event(timeout).unwrap()
    });
}
