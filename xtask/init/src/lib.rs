//! What the host and the first process of a test guest say to each other:
//! the [`Plan`] goes in with the initramfs, [`Report`] lines come out. And what it
//! says to a program there that makes connections step by step: [`Order`] lines
//! go in, [`Word`] lines come out.

mod plan;
mod report;
mod word;

pub use plan::{Job, Network, PLAN_PATH, Plan, PortName, ROOT_TAG, Share, WindowSize};
pub use report::{Ending, Report};
pub use word::{Answer, Happening, Order, Step, Word};
