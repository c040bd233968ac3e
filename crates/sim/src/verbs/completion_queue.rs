//! Completion queues.

use rdmacm_abi::uverbs::WorkCompletion;
use zerocopy::IntoBytes;

use super::event_stream::StreamId;
use super::ring::Ring;

/// A completion queue.
#[derive(Debug)]
pub(super) struct CompletionQueue {
    pub(super) context: u64,
    pub(super) user_handle: u64,
    pub(super) ring: Ring,
    pub(super) channel: Option<StreamId>,
    pub(super) armed: Armed,
}

/// Which completion is reported next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    None,
    Solicited,
    Next,
}

impl CompletionQueue {
    /// Adds a completion; `false` if there is no room.
    pub(super) fn push(&mut self, completion: &WorkCompletion) -> bool {
        self.ring.push(completion.as_bytes())
    }

    /// Whether this completion is to be reported. Then no further one is until the
    /// queue is armed again (`rxe_cq_post`).
    pub(super) fn take_armed(&mut self, is_solicited: bool) -> bool {
        let is_reported = match self.armed {
            Armed::None => false,
            Armed::Solicited => is_solicited,
            Armed::Next => true,
        };
        if is_reported {
            self.armed = Armed::None;
        }
        is_reported
    }

    /// `rxe_req_notify_cq`: a queue armed for any completion stays so.
    pub(super) fn arm(&mut self, solicited_only: bool) {
        if self.armed != Armed::Next {
            self.armed = if solicited_only {
                Armed::Solicited
            } else {
                Armed::Next
            };
        }
    }
}
