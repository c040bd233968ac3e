//! The result of a server, and of each of its peers.

use std::fmt;

use serde::Serialize;

use crate::outcome::Outcome;
use crate::terminal;

/// The result of serving one peer.
#[derive(Debug)]
pub(crate) struct PeerResult {
    pub(crate) peer: String,
    /// What the server did for it, as text.
    pub(crate) done: String,
    pub(crate) pings: Option<u64>,
    pub(crate) verdict: PeerOutcome,
}

/// How serving a peer ended.
#[derive(Debug)]
pub(crate) enum PeerOutcome {
    /// The server did all the peer asked for.
    Completed,
    /// The server accepted the peer and failed to serve it, for this reason.
    Failed(String),
    /// The server rejected the peer, for this reason. A persistent server succeeds all the same.
    Rejected(String),
}

impl From<Result<(), String>> for PeerOutcome {
    fn from(served: Result<(), String>) -> Self {
        match served {
            Ok(()) => Self::Completed,
            Err(failure) => Self::Failed(failure),
        }
    }
}

/// The result of a server: the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct ServerReport {
    role: &'static str,
    /// Accepted peers.
    peers: u64,
    /// Pings of all peers; absent for `perf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pings: Option<u64>,
    /// Accepted peers that the server failed to serve.
    failed: u64,
    /// Rejected peers: of another protocol, or beyond the limit.
    rejected: u64,
    interrupted: bool,
    /// The first failure.
    error: Option<String>,
    #[serde(skip)]
    json: bool,
    /// Why the first rejected peer was rejected.
    #[serde(skip)]
    rejection: Option<String>,
}

impl ServerReport {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            role: "server",
            peers: 0,
            pings: None,
            failed: 0,
            rejected: 0,
            interrupted: false,
            error: None,
            json,
            rejection: None,
        }
    }

    /// The report of a ping server.
    pub(crate) fn of_pings(json: bool) -> Self {
        Self {
            pings: Some(0),
            ..Self::new(json)
        }
    }

    /// Adds the result of one peer, and prints it unless the report is JSON. If nobody can read it,
    /// the server goes on, and has failed in the end.
    pub(crate) async fn add(&mut self, served: PeerResult) {
        if !self.json {
            if let Err(error) = terminal::print_result(&served).await {
                self.fail(format!("standard output: {error}"));
            }
        }
        if let Some(pings) = &mut self.pings {
            *pings += served.pings.unwrap_or_default();
        }
        match served.verdict {
            PeerOutcome::Completed => self.peers += 1,
            PeerOutcome::Failed(failure) => {
                self.peers += 1;
                self.failed += 1;
                self.fail(format!("{}: {failure}", served.peer));
            }
            PeerOutcome::Rejected(reason) => {
                self.rejected += 1;
                let rejection = format!("{}: {reason}", served.peer);
                self.rejection.get_or_insert(rejection);
            }
        }
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// Ends the report.
    pub(crate) fn outcome(
        mut self,
        listened: Result<(), String>,
        interrupted: bool,
        persistent: bool,
    ) -> Outcome {
        self.interrupted = interrupted;
        if let Err(error) = listened {
            self.fail(error);
        } else if !persistent && self.peers == 0 {
            let nobody = || "interrupted before a peer came".to_owned();
            let error = self.rejection.take().unwrap_or_else(nobody);
            self.fail(error);
        }
        // Text was printed for each peer as it ended.
        let text = |_: &Self| String::new();
        Outcome::of_report(self.json, &self, self.error.as_ref(), text)
    }
}

impl fmt::Display for PeerResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, done, .. } = self;
        match &self.verdict {
            PeerOutcome::Completed => write!(f, "{peer}: {done}"),
            PeerOutcome::Failed(failure) if done.is_empty() => write!(f, "{peer}: {failure}"),
            PeerOutcome::Failed(failure) => write!(f, "{peer}: {done}, then {failure}"),
            PeerOutcome::Rejected(reason) => write!(f, "{peer}: rejected: {reason}"),
        }
    }
}
