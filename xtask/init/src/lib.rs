//! What the host and the first process of a test guest say to each other:
//! the [`Plan`] goes in with the initramfs, [`Report`] lines come out.

mod plan;
mod report;

pub use plan::{Job, Network, PLAN_PATH, Plan, PortName, ROOT_TAG, Share, WindowSize};
pub use report::{Ending, Report};
