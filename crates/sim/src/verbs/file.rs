//! An open verbs node of a device.
//!
//! # Safety
//! The only module of this crate with `unsafe`: it asserts that the simulated device accesses
//! memory as `rdmacm_verbs` relies on. The device itself accesses memory through files.
#![expect(unsafe_code, reason = "asserts how the device uses memory")]

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::Transport;
use rdmacm_verbs::{Call, GidEntry, UverbsFile};

use super::command::{self, ContextKey};
use super::transition;
use crate::sim_state::{SharedState, SimState};

/// An open verbs node of a device.
pub(super) struct SimVerbsFile {
    state: Arc<SharedState>,
    key: ContextKey,
    rings: Arc<File>,
    /// Descriptors that responses have named, by their numbers.
    descriptors: Mutex<BTreeMap<u32, OwnedFd>>,
}

impl SimVerbsFile {
    /// Opens the node of a device.
    pub(super) fn open(state: &Arc<SharedState>, host: usize, device: usize) -> io::Result<Self> {
        let (serial, rings) = state.change(|state| {
            let of = state.hosts.get_mut(host).ok_or(io::ErrorKind::NotFound)?;
            let serial = of.next_serial();
            let verbs = state.verbs(host, device).ok_or(io::ErrorKind::NotFound)?;
            verbs.open(serial).map(|rings| (serial, rings))
        })?;
        Ok(Self {
            state: Arc::clone(state),
            key: ContextKey {
                host,
                device,
                serial,
            },
            rings,
            descriptors: Mutex::default(),
        })
    }

    /// The error of a command that fails on request.
    fn fail(&self, state: &mut SimState, call: &mut Call<'_>, errno: i32) -> io::Error {
        // `EIO` says that the object of such a command is destroyed: its memory may be freed.
        if errno == Errno::EIO as i32 && command::destroys(call.number()) {
            if let Err(refused) = command::execute(state, self.key, call) {
                return refused.into();
            }
        }
        io::Error::from_raw_os_error(errno)
    }

    fn descriptors(&self) -> MutexGuard<'_, BTreeMap<u32, OwnedFd>> {
        self.descriptors.lock()
    }
}

// SAFETY:
// - Only this host's `DeviceSource` makes one, and opens it with the driver of the device's format.
// - `RingMemory` places each queue of a context behind all earlier ones, in a file of the
//   context's own that only grows.
// - Everything the device does, it does under the lock of the simulation. `Ring` and `Slots` read
//   and write elements between the indices, or by the flags, that make them the device's. It reads
//   what a request sends when it takes the request, writes what a request receives just before it
//   adds the completion, and forgets the request then.
// - `Verbs::locate` finds memory by the regions that are registered at that time, with their
//   bounds, keys and access. A command that destroys an object removes it under the lock, also
//   before it fails with `EIO` on request, and so does the removal of the device, after which
//   commands fail with `EIO`.
unsafe impl UverbsFile for SimVerbsFile {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        self.state.check_process()?;
        self.state.pass_hold(self.key.host, call.number());
        let executed = self.state.change(|state| {
            let host = state.hosts.get_mut(self.key.host);
            match host.and_then(|host| host.take_failure(call.number())) {
                None => Ok(command::execute(state, self.key, call)?),
                Some(errno) => Err(self.fail(state, call, errno)),
            }
        });
        if let Some(descriptor) = executed? {
            let number = command::number(&descriptor)?;
            self.descriptors().insert(number, descriptor);
        }
        Ok(())
    }

    fn take_fd(&self, number: u32) -> Option<OwnedFd> {
        self.descriptors().remove(&number)
    }

    fn memory(&self) -> BorrowedFd<'_> {
        self.rings.as_fd()
    }

    fn gid(&self, port: u8, index: u32) -> io::Result<Option<GidEntry>> {
        let state = self.state.lock();
        let host = state.hosts.get(self.key.host);
        let device = host.and_then(|host| host.devices.get(self.key.device));
        let device = device.filter(|device| port == 1 && !device.is_removed);
        let device = device.ok_or(io::ErrorKind::NotFound)?;
        let gid = device.gid(index).ok_or(io::ErrorKind::NotFound)?;
        let mut entry = GidEntry::new(index, gid);
        let kind = match device.transport {
            Transport::RoCE => "RoCE v2",
            // As the kernel calls a GID that is no RoCE v2's.
            _ => "IB/RoCE v1",
        };
        entry.kind = Some(kind.to_owned());
        Ok(Some(entry))
    }

    fn node(&self) -> Option<u64> {
        None
    }
}

impl fmt::Debug for SimVerbsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimVerbsFile")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Drop for SimVerbsFile {
    fn drop(&mut self) {
        if self.state.is_in_child() {
            return;
        }
        self.state.change(|state| {
            transition::end_connections_of(state, self.key);
            if let Some(verbs) = state.verbs(self.key.host, self.key.device) {
                verbs.close(self.key.serial);
            }
        });
    }
}
