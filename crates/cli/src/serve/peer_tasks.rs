//! The tasks that serve peers.

use std::collections::HashMap;
use std::future::Future;

use tokio::task::{Id, JoinError, JoinSet};

use crate::server_report::{PeerOutcome, PeerResult};

/// The tasks that serve peers, one each.
#[derive(Debug, Default)]
pub(super) struct PeerTasks {
    tasks: JoinSet<PeerResult>,
    /// The addresses of their peers, for tasks that end without a result.
    peers: HashMap<Id, String>,
}

impl PeerTasks {
    /// How many have not been joined.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn spawn(
        &mut self,
        peer: String,
        task: impl Future<Output = PeerResult> + Send + 'static,
    ) {
        let task = self.tasks.spawn(task);
        self.peers.insert(task.id(), peer);
    }

    /// The result of one that has ended.
    pub(super) fn try_join_next(&mut self) -> Option<PeerResult> {
        let ended = self.tasks.try_join_next_with_id()?;
        Some(self.result(ended))
    }

    /// Waits for the next end; `None` if there is no task.
    pub(super) async fn join_next(&mut self) -> Option<PeerResult> {
        let ended = self.tasks.join_next_with_id().await?;
        Some(self.result(ended))
    }

    /// The result of a task; a failure if it panicked.
    fn result(&mut self, ended: Result<(Id, PeerResult), JoinError>) -> PeerResult {
        let error = match ended {
            Ok((id, result)) => {
                self.peers.remove(&id);
                return result;
            }
            Err(error) => error,
        };
        let peer = self.peers.remove(&error.id());
        PeerResult {
            peer: peer.unwrap_or_else(|| "?".to_owned()),
            done: String::new(),
            pings: None,
            verdict: PeerOutcome::Failed("the server panicked".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(peer: &str) -> PeerResult {
        PeerResult {
            peer: peer.to_owned(),
            done: "3 pings".to_owned(),
            pings: Some(3),
            verdict: PeerOutcome::Completed,
        }
    }

    #[tokio::test]
    async fn a_task_that_panics_is_a_failed_peer() {
        let mut tasks = PeerTasks::default();
        tasks.spawn("10.1.0.7:1".to_owned(), async { completed("10.1.0.7:1") });
        tasks.spawn("10.1.0.8:2".to_owned(), async { panic!("a bug") });
        let mut results = Vec::new();
        while let Some(result) = tasks.join_next().await {
            results.push(result.to_string());
        }
        results.sort();
        let expected = ["10.1.0.7:1: 3 pings", "10.1.0.8:2: the server panicked"];
        assert_eq!(results, expected);
        assert!(tasks.peers.is_empty());
    }
}
