//! Sending and receiving messages, and waiting for requests.

use std::collections::VecDeque;
use std::time::Duration;

use rdmacm::core::{QueuePair as _, Transport};
use rdmacm_verbs::{
    CompletionInfo, RemoteMemory, SendOperation, SendRequest, SgList, WcOpcode, WorkId,
};
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::message::Message;

/// How long a client first waits for an answer before it sends an empty write.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// How many messages may arrive during another wait. No side of rping is two messages ahead.
const MAX_AHEAD: usize = 16;

/// The messages that this side and its peer send each other.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    endpoint: &'a Endpoint,
    /// No message has arrived yet.
    is_new: bool,
    /// Messages that arrived during another wait.
    received: VecDeque<Message>,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            endpoint,
            is_new: true,
            received: VecDeque::new(),
        }
    }

    pub(crate) fn endpoint(&self) -> &'a Endpoint {
        self.endpoint
    }

    /// Posts a message. Later waits discard its completion.
    pub(crate) fn send(&self, message: Message) -> Result<WorkId, Failure> {
        let bytes = message.to_bytes();
        let request = SendRequest::inline(SendOperation::Send, &bytes);
        Ok(self.endpoint.queue_pair().post_send(request)?)
    }

    /// Waits for the peer's next message.
    pub(crate) async fn receive(&mut self) -> Result<Message, Failure> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Ok(message);
            }
            self.next().await?;
        }
    }

    /// Waits for the server's next message, as its client.
    ///
    /// siw may not notice data that arrives while it accepts until more data arrive
    /// (`siw_accept`). Empty writes provide them.
    pub(crate) async fn receive_answer(&mut self) -> Result<Message, Failure> {
        let mut wait = FIRST_WAIT;
        while self.is_new && self.endpoint.queue_pair().transport() == Transport::IWarp {
            if let Ok(message) = timeout(wait, self.receive()).await {
                return message;
            }
            let nothing = SendOperation::Write(RemoteMemory::NONE);
            let request = SendRequest::new(nothing, SgList::NONE);
            self.complete(request).await?;
            wait = wait.saturating_mul(4);
        }
        self.receive().await
    }

    /// Posts a request, waits for its completion and returns its memory.
    pub(crate) async fn complete(&mut self, request: SendRequest<'_>) -> Result<SgList, Failure> {
        let work = self.endpoint.queue_pair().post_send(request)?;
        loop {
            let (done, sg_list) = self.next().await?;
            if done == work {
                return Ok(sg_list);
            }
        }
    }

    /// Waits for the next completion. Queues a received message and posts its buffer again.
    async fn next(&mut self) -> Result<(WorkId, SgList), Failure> {
        let completion = self.endpoint.next().await?;
        let (work, done) = (completion.work, completion.result()?);
        if done.opcode != WcOpcode::RECV {
            return Ok((work, completion.sg_list));
        }
        if let Some(buffer) = completion.sg_list.into_buffer() {
            self.is_new = false;
            if self.received.len() == MAX_AHEAD {
                return Err(Failure::Peer(format!(
                    "the peer has sent {MAX_AHEAD} messages that nobody waits for"
                )));
            }
            self.received.push_back(message(done, &buffer)?);
            self.endpoint.queue_pair().post_receive(buffer)?;
        }
        Ok((work, SgList::NONE))
    }
}

fn message(done: CompletionInfo, buffer: &[u8]) -> Result<Message, Failure> {
    let length = done.bytes as usize;
    let message = buffer.get(..length).and_then(Message::from_bytes);
    message.ok_or_else(|| {
        let expected = Message::SIZE;
        Failure::Peer(format!(
            "the peer sent a message of {length} bytes instead of {expected}"
        ))
    })
}
