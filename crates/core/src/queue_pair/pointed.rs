//! Queue pairs behind pointers.

use std::io;
use std::sync::Arc;

use rdmacm_abi::{Ece, QpAttr, QpAttrMask};

use super::{DepthLimits, QueuePair};
use crate::rdma_devices::Transport;

macro_rules! pointed {
    ($($pointer:ty),+) => {$(
        impl<Q: QueuePair + ?Sized> QueuePair for $pointer {
            fn number(&self) -> u32 {
                (**self).number()
            }

            fn transport(&self) -> Transport {
                (**self).transport()
            }

            fn depth_limits(&self) -> DepthLimits {
                (**self).depth_limits()
            }

            fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
                (**self).modify(attr, mask)
            }

            fn has_srq(&self) -> bool {
                (**self).has_srq()
            }

            fn ece(&self) -> io::Result<Option<Ece>> {
                (**self).ece()
            }

            fn set_ece(&self, ece: Ece) -> io::Result<()> {
                (**self).set_ece(ece)
            }
        }
    )+};
}

pointed!(&Q, Box<Q>, Arc<Q>);
