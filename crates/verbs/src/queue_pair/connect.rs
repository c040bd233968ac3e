//! The connection manager's interface to queue pairs.

use std::io;

use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, Transport};

use super::QueuePair;

impl rdmacm_core::QueuePair for QueuePair {
    fn number(&self) -> u32 {
        self.number
    }

    fn transport(&self) -> Transport {
        self.context().transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.context().limits().depths()
    }

    fn has_srq(&self) -> bool {
        self.shared.is_some()
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        // The bare error number if there is one: the caller's error names the operation.
        Self::modify(self, attr, mask).map_err(|error| match error.raw_os_error() {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => error.into(),
        })
    }
}
