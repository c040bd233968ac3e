//! Messages, and requests that are waited for.

use std::collections::VecDeque;
use std::time::Duration;

use rdmacm::core::{QueuePair as _, Transport};
use rdmacm_verbs::{Done, RemoteMemory, SendOperation, SendRequest, SgList, WcOpcode, WorkId};
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::message::Message;

/// How long a client waits for an answer before it shows that it is there.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a side says to its peer and hears from it.
#[derive(Debug)]
pub(crate) struct Talk<'a> {
    endpoint: &'a Endpoint,
    /// Nothing was heard yet.
    is_new: bool,
    /// Heard while something else was waited for.
    heard: VecDeque<Message>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            endpoint,
            is_new: true,
            heard: VecDeque::new(),
        }
    }

    pub(crate) fn endpoint(&self) -> &'a Endpoint {
        self.endpoint
    }

    /// Sends a message; its completion is overlooked when it comes.
    pub(crate) fn say(&self, message: Message) -> Result<WorkId, Failure> {
        let bytes = message.to_bytes();
        let request = SendRequest::inline(SendOperation::Send, &bytes);
        Ok(self.endpoint.queue_pair().post_send(request)?)
    }

    /// Waits for the peer's next message.
    pub(crate) async fn hear(&mut self) -> Result<Message, Failure> {
        loop {
            if let Some(message) = self.heard.pop_front() {
                return Ok(message);
            }
            self.next().await?;
        }
    }

    /// Waits for the server's next message, as its client.
    ///
    /// siw may overlook what arrives while it accepts, until more does (`siw_accept`):
    /// empty writes are more.
    pub(crate) async fn hear_answer(&mut self) -> Result<Message, Failure> {
        let mut patience = PATIENCE;
        while self.is_new && self.endpoint.queue_pair().transport() == Transport::IWarp {
            if let Ok(heard) = timeout(patience, self.hear()).await {
                return heard;
            }
            let nothing = SendOperation::Write(RemoteMemory::NONE);
            let request = SendRequest::new(nothing, SgList::NONE);
            self.carry_out(request).await?;
            patience = patience.saturating_mul(4);
        }
        self.hear().await
    }

    /// Posts a request and waits until it is done; its memory.
    pub(crate) async fn carry_out(&mut self, request: SendRequest<'_>) -> Result<SgList, Failure> {
        let work = self.endpoint.queue_pair().post_send(request)?;
        loop {
            let (done, sg_list) = self.next().await?;
            if done == work {
                return Ok(sg_list);
            }
        }
    }

    /// The next completion; of a message, it is kept and there is room for another.
    async fn next(&mut self) -> Result<(WorkId, SgList), Failure> {
        let completion = self.endpoint.next().await?;
        let (work, done) = (completion.work, completion.result?);
        if done.opcode != WcOpcode::RECV {
            return Ok((work, completion.sg_list));
        }
        if let Some(buffer) = completion.sg_list.into_buffer() {
            self.is_new = false;
            self.heard.push_back(message(done, &buffer)?);
            self.endpoint.queue_pair().post_receive(buffer)?;
        }
        Ok((work, SgList::NONE))
    }
}

fn message(done: Done, buffer: &[u8]) -> Result<Message, Failure> {
    let length = done.bytes as usize;
    let message = buffer.get(..length).and_then(Message::from_bytes);
    message.ok_or_else(|| {
        let expected = Message::SIZE;
        Failure::Peer(format!(
            "the peer sent a message of {length} bytes instead of {expected}"
        ))
    })
}
