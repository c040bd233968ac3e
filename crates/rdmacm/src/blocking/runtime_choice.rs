//! Threads need no runtime.

use std::io;

use crate::event_loop::Sources;
use crate::runtime::Reactor;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RuntimeChoice(());

impl RuntimeChoice {
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "as with a runtime"
    )]
    pub(super) fn register(self, _: &Sources) -> io::Result<Option<Box<dyn Reactor>>> {
        Ok(None)
    }
}
