//! The messages between the host and a test guest. The first process of the guest reads a
//! [`Plan`] from the initramfs and writes [`Report`] lines. A program that makes connections
//! step by step reads [`NumberedStep`] lines and writes [`Message`] lines. The program that
//! measures writes [`bench::Record`] lines.

pub mod bench;
mod message;
mod plan;
mod report;

pub use message::{Answer, CmEvent, Message, NumberedStep, Step};
pub use plan::{Job, Network, PLAN_PATH, Plan, PortName, ROOT_TAG, Share, WindowSize};
pub use report::{Ending, Report};
