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
    /// Why it was not served to its end.
    pub(crate) failure: Option<String>,
}

/// What became of them all, and the whole answer.
#[derive(Debug, Serialize)]
pub(crate) struct ServerReport {
    role: &'static str,
    peers: u64,
    /// Of all peers together, where they ping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pings: Option<u64>,
    /// Peers that did not come to their end.
    failed: u64,
    interrupted: bool,
    /// The first of the reasons.
    error: Option<String>,
    #[serde(skip)]
    json: bool,
}

impl ServerReport {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            role: "server",
            peers: 0,
            pings: None,
            failed: 0,
            interrupted: false,
            error: None,
            json,
        }
    }

    /// One of pings.
    pub(crate) fn of_pings(json: bool) -> Self {
        Self {
            pings: Some(0),
            ..Self::new(json)
        }
    }

    /// A peer has been served.
    pub(crate) fn add(&mut self, served: Served) {
        if !self.json {
            terminal::tell(&served.to_string());
        }
        self.peers += 1;
        if let Some(pings) = &mut self.pings {
            *pings += served.pings.unwrap_or_default();
        }
        if let Some(failure) = served.failure {
            self.failed += 1;
            self.fail(format!("{}: {failure}", served.peer));
        }
    }

    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// There are no more.
    pub(crate) fn outcome(
        mut self,
        listened: Result<(), rdmacm::Error>,
        interrupted: bool,
        persistent: bool,
    ) -> Outcome {
        self.interrupted = interrupted;
        if let Err(error) = listened {
            self.fail(error.to_string());
        } else if !persistent && self.peers == 0 {
            self.fail("interrupted before a peer came".to_owned());
        }
        // In words it was told as it happened.
        let told = |_: &Self| String::new();
        Outcome::of_report(self.json, &self, self.error.as_ref(), told)
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.peer, self.done)?;
        match &self.failure {
            Some(failure) => write!(f, ", then {failure}"),
            None => Ok(()),
        }
    }
}
