//! The channel an id is on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Channel;

/// The channel an id is on.
#[derive(Clone)]
pub(super) struct Location {
    pub(super) channel: Arc<Channel>,
    /// Counts the migrations: an id may leave a channel and come back.
    pub(super) migrations: u64,
}

/// Where an id is, which changes when it migrates. For an id that never has, finding it
/// takes no lock.
pub(super) struct CurrentLocation {
    location: RwLock<Location>,
    /// The channel on which the id was created.
    first: Weak<Channel>,
    has_migrated: AtomicBool,
}

impl CurrentLocation {
    pub(super) fn new(channel: &Arc<Channel>) -> Self {
        Self {
            location: RwLock::new(Location {
                channel: Arc::clone(channel),
                migrations: 0,
            }),
            first: Arc::downgrade(channel),
            has_migrated: AtomicBool::new(false),
        }
    }

    /// Where the id is, or was before a migration that is going on: then the kernel refuses
    /// a command on it.
    #[inline]
    pub(super) fn get(&self) -> Location {
        if !self.has_migrated.load(Ordering::Acquire) {
            if let Some(channel) = self.first.upgrade() {
                let migrations = 0;
                return Location {
                    channel,
                    migrations,
                };
            }
        }
        self.lock().clone()
    }

    /// Where the id is. It does not migrate while the guard is held.
    pub(super) fn lock(&self) -> RwLockReadGuard<'_, Location> {
        self.location.read()
    }

    /// Begins a migration.
    pub(super) fn lock_to_migrate(&self) -> RwLockWriteGuard<'_, Location> {
        self.location.write()
    }

    /// Ends a migration to `channel`.
    pub(super) fn migrated(
        &self,
        mut location: RwLockWriteGuard<'_, Location>,
        channel: &Arc<Channel>,
    ) {
        location.channel = Arc::clone(channel);
        location.migrations = location.migrations.wrapping_add(1);
        self.has_migrated.store(true, Ordering::Release);
    }
}
