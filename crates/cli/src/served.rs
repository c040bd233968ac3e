//! What came of the peers of a server.

use std::fmt;

use serde::Serialize;

use crate::outcome::Outcome;
use crate::terminal;

/// What became of a peer.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) peer: String,
    /// What was done for it, in words.
    pub(crate) done: String,
    pub(crate) pings: Option<u64>,
    pub(crate) verdict: Verdict,
}

/// How a peer fared.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It was served to its end.
    Completed,
    /// It was accepted, and this is why it was not served to its end.
    Failed(String),
    /// It was not accepted, for this reason. A persistent server has not failed then.
    Rejected(String),
}

impl From<Result<(), String>> for Verdict {
    fn from(served: Result<(), String>) -> Self {
        match served {
            Ok(()) => Self::Completed,
            Err(failure) => Self::Failed(failure),
        }
    }
}

/// What became of them all, and the whole answer.
#[derive(Debug, Serialize)]
pub(crate) struct ServerReport {
    role: &'static str,
    /// Those that were accepted.
    peers: u64,
    /// Of all peers together, where they ping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pings: Option<u64>,
    /// Peers that did not come to their end.
    failed: u64,
    /// Peers that were not accepted: strangers, or too many.
    rejected: u64,
    interrupted: bool,
    /// The first of the reasons.
    error: Option<String>,
    #[serde(skip)]
    json: bool,
    /// Why the first of the rejected was.
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

    /// One of pings.
    pub(crate) fn of_pings(json: bool) -> Self {
        Self {
            pings: Some(0),
            ..Self::new(json)
        }
    }

    /// A peer has been served, or rejected.
    pub(crate) fn add(&mut self, served: Served) {
        if !self.json {
            terminal::tell(&served.to_string());
        }
        if let Some(pings) = &mut self.pings {
            *pings += served.pings.unwrap_or_default();
        }
        match served.verdict {
            Verdict::Completed => self.peers += 1,
            Verdict::Failed(failure) => {
                self.peers += 1;
                self.failed += 1;
                self.fail(format!("{}: {failure}", served.peer));
            }
            Verdict::Rejected(reason) => {
                self.rejected += 1;
                let rejection = format!("{}: {reason}", served.peer);
                self.rejection.get_or_insert(rejection);
            }
        }
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// There are no more.
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
        // In words it was told as it happened.
        let told = |_: &Self| String::new();
        Outcome::of_report(self.json, &self, self.error.as_ref(), told)
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, done, .. } = self;
        match &self.verdict {
            Verdict::Completed => write!(f, "{peer}: {done}"),
            Verdict::Failed(failure) => write!(f, "{peer}: {done}, then {failure}"),
            Verdict::Rejected(reason) => write!(f, "{peer}: rejected: {reason}"),
        }
    }
}
