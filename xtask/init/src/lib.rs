//! What the host and the first process of a test guest say to each other:
//! the [`Plan`] goes in with the initramfs, [`Report`] lines come out. And what it
//! says to a program there that makes connections step by step: [`Order`] lines
//! go in, [`Message`] lines come out.

mod message;
mod plan;
mod report;

pub use message::{Answer, CmEvent, Message, Order, Step};
pub use plan::{Job, Network, PLAN_PATH, Plan, PortName, ROOT_TAG, Share, WindowSize};
pub use report::{Ending, Report};
