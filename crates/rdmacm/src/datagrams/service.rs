//! Answering peers that ask where the socket is.

use rdmacm_core::{Event, UdParam};

use super::options::{Admit, Choices};

/// How questions are answered.
#[derive(Debug)]
pub(super) struct Service {
    answer: UdParam,
    admit: Admit,
}

impl Service {
    pub(super) fn new(choices: &Choices) -> Self {
        Self {
            answer: choices.answer.clone(),
            admit: choices.admit.clone(),
        }
    }

    /// Tells the peer that asks of this queue pair, or rejects it. One whose answer is
    /// lost asks again.
    pub(super) fn answer(&self, question: Event, qp_number: u32, qkey: u32) {
        if !self.admit.admits(question.private_data()) {
            // Dropped, it is rejected.
            return;
        }
        if let Some(child) = question.into_child() {
            let answer = self.answer.clone().qp_number(qp_number).qkey(qkey);
            let _ = child.accept(answer);
        }
    }
}
