//! What a connection's queue pair carries, if it carries messages; without the
//! feature `verbs` none does.

use super::Attempt;
use crate::ending::Ending;
use crate::error::{Cause, Result};
use crate::hub::{End, Place, Tracked, next};

/// What a connection's queue pair carries, if it carries messages.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    #[cfg(feature = "verbs")]
    traffic: Option<std::sync::Arc<crate::messages::Traffic>>,
}

#[cfg(feature = "verbs")]
mod messages {
    use std::sync::Arc;

    use super::{Attempt, Carried, Cause, End, Ending, Place, Result, Tracked, next};
    use crate::messages::{Line, Over, Traffic};
    use crate::step::Step;
    use crate::steps::carry;

    impl Carried {
        pub(crate) fn messages(traffic: &Arc<Traffic>) -> Self {
            let traffic = Some(Arc::clone(traffic));
            Self { traffic }
        }

        fn line<'a>(&'a self, tracked: &'a Tracked) -> Option<Line<'a>> {
            let traffic = self.traffic.as_ref()?;
            Some(Line { tracked, traffic })
        }

        /// Waits until what was sent has arrived.
        pub(crate) async fn flush(&self, attempt: &Attempt, tracked: &Tracked) -> Result<()> {
            match self.line(tracked) {
                Some(line) => carry::flush(attempt, line, Step::Close).await,
                None => Ok(()),
            }
        }

        /// Waits until the connection is over: an event says so, or a message failed.
        pub(crate) async fn ended(
            &self,
            attempt: &Attempt,
            tracked: &Tracked,
        ) -> Result<Ending, Cause> {
            match self.line(tracked) {
                Some(line) => carry::wait(attempt, line, Over(line)).await?,
                None => self.wait(attempt, tracked, End(tracked.mailbox())).await,
            }
        }

        /// Whether the device has gone: there is nobody left to disconnect from.
        pub(crate) fn is_over(&self) -> bool {
            let traffic = self.traffic.as_ref();
            traffic.is_some_and(|traffic| traffic.device().is_gone())
        }

        /// Waits, and gives signs of life meanwhile.
        pub(crate) async fn wait<P: Place + Unpin>(
            &self,
            attempt: &Attempt,
            tracked: &Tracked,
            place: P,
        ) -> Result<P::Item, Cause> {
            match self.line(tracked) {
                Some(line) => carry::wait(attempt, line, place).await,
                None => Ok(next(tracked.hub(), place, attempt.until).await?),
            }
        }
    }
}

#[cfg(not(feature = "verbs"))]
#[expect(
    clippy::unused_self,
    clippy::unused_async,
    reason = "as with the feature"
)]
impl Carried {
    pub(crate) async fn flush(&self, _: &Attempt, _: &Tracked) -> Result<()> {
        Ok(())
    }

    pub(crate) async fn ended(
        &self,
        attempt: &Attempt,
        tracked: &Tracked,
    ) -> Result<Ending, Cause> {
        self.wait(attempt, tracked, End(tracked.mailbox())).await
    }

    pub(crate) fn is_over(&self) -> bool {
        false
    }

    pub(crate) async fn wait<P: Place + Unpin>(
        &self,
        attempt: &Attempt,
        tracked: &Tracked,
        place: P,
    ) -> Result<P::Item, Cause> {
        Ok(next(tracked.hub(), place, attempt.until).await?)
    }
}
