//! One side's state of a test.

use rdmacm::core::AccessFlags;
use rdmacm_verbs::{
    Completion, RemoteAccessRegion, RemoteMemory, SendOperation, SendRequest, SgList, Sge,
    WcOpcode, WorkId,
};

use super::{Parameters, Test};
use crate::endpoint::{Endpoint, Shape};
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::message::Message;

/// Control messages beside those of the test.
pub(super) const CONTROL: u32 = 4;

/// One side's endpoint and memory, and the peer's memory.
#[derive(Debug)]
pub(super) struct TestSide<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) memory: RemoteAccessRegion,
    pub(super) remote: RemoteMemory,
    pub(super) parameters: Parameters,
    /// The message that described this side's memory. It may complete after the answer to
    /// it has arrived.
    description: WorkId,
}

/// What a completion means for the test.
#[derive(Clone, Copy, Debug)]
pub(super) enum TestEvent {
    /// A request completed.
    Request,
    /// A message arrived, and its buffer is posted again.
    Message,
    /// The client ended the test, by an empty message.
    Finish,
}

/// The sizes of a side's endpoint. The server posts twice as many receive requests as
/// messages are in flight, because half of them arrive while its credit message is on its
/// way, and one more for the message that ends the test.
pub(super) fn shape(parameters: &Parameters, is_server: bool) -> Shape {
    let streams = is_server && parameters.test == Test::SendBw;
    let receive_size = match parameters.test {
        Test::SendBw if !is_server => Message::SIZE,
        Test::SendBw | Test::SendLat => Message::SIZE.max(parameters.size as usize),
        _ => Message::SIZE,
    };
    Shape {
        sends: parameters.depth + CONTROL,
        receives: if streams {
            2 * parameters.depth + 1
        } else {
            CONTROL
        },
        receive_size,
        inline: 16,
        spin: parameters.poll,
    }
}

impl<'a> TestSide<'a> {
    /// Exchanges the locations of both sides' memory. The client sends first, because the
    /// accepting side of an iWARP connection must not.
    pub(super) async fn exchange(
        endpoint: &'a Endpoint,
        parameters: Parameters,
        is_server: bool,
    ) -> Result<Self, Failure> {
        let access =
            AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE;
        let memory = endpoint.domain().expose(parameters.size as usize, access)?;
        // Every size of a message fits.
        let message = Message::about(memory.remote()).unwrap_or(Message::GO_AHEAD);
        let mut exchange = Exchange::new(endpoint);
        let (message, description) = if is_server {
            let peers = exchange.receive().await?;
            (peers, exchange.send(message)?)
        } else {
            let description = exchange.send(message)?;
            (exchange.receive_answer().await?, description)
        };
        let remote = message.memory();
        let remote = remote.filter(|remote| remote.len() == u64::from(parameters.size));
        let remote = remote.ok_or_else(|| {
            let text = "the peer's memory is not as long as its messages";
            Failure::Peer(text.to_owned())
        })?;
        Ok(Self {
            endpoint,
            memory,
            remote,
            parameters,
            description,
        })
    }

    /// Posts one request of the test.
    pub(super) fn post(&self) -> Result<(), Failure> {
        let operation = match self.parameters.test {
            Test::WriteBw | Test::WriteLat => SendOperation::Write(self.remote),
            Test::ReadBw | Test::ReadLat => SendOperation::Read(self.remote),
            _ => SendOperation::Send,
        };
        let request = SendRequest::new(operation, self.sge()?);
        self.endpoint.queue_pair().post_send(request)?;
        Ok(())
    }

    /// Reads one byte. The answer arrives after all earlier requests have arrived.
    pub(super) fn post_confirmation(&self) -> Result<(), Failure> {
        let last = self.remote.slice(..1).unwrap_or(self.remote);
        let sge = self.memory.slice(0..1)?;
        let request = SendRequest::new(SendOperation::Read(last), sge);
        self.endpoint.queue_pair().post_send(request)?;
        Ok(())
    }

    /// Sends the message that ends the test. The server treats a disconnect without it as a
    /// failure.
    pub(super) async fn finish(&self) -> Result<(), Failure> {
        let request = SendRequest::new(SendOperation::Send, SgList::NONE);
        let finish = self.endpoint.queue_pair().post_send(request)?;
        loop {
            let completion = self.next_completion().await?;
            let work = completion.work;
            self.event(completion)?;
            if work == finish {
                return Ok(());
            }
        }
    }

    /// Waits for the next event.
    pub(super) async fn next(&self) -> Result<TestEvent, Failure> {
        let completion = self.next_completion().await?;
        self.event(completion)
    }

    /// Waits for the next event, for a side that may be behind its peer. Returns what arrived
    /// even if the buffer could not be posted again, and the result of posting it.
    pub(super) async fn next_even_if_behind(
        &self,
    ) -> Result<(TestEvent, Result<(), Failure>), Failure> {
        let completion = self.next_completion().await?;
        self.event_and_repost(completion)
    }

    /// Polls for an event.
    pub(super) fn poll(&self) -> Result<Option<TestEvent>, Failure> {
        while let Some(completion) = self.endpoint.poll()? {
            if completion.work != self.description {
                return self.event(completion).map(Some);
            }
            completion.result()?;
        }
        Ok(None)
    }

    async fn next_completion(&self) -> Result<Completion, Failure> {
        loop {
            let completion = self.endpoint.next().await?;
            if completion.work != self.description {
                return Ok(completion);
            }
            completion.result()?;
        }
    }

    fn event(&self, completion: Completion) -> Result<TestEvent, Failure> {
        let (arrived, reposted) = self.event_and_repost(completion)?;
        reposted.map(|()| arrived)
    }

    fn event_and_repost(
        &self,
        completion: Completion,
    ) -> Result<(TestEvent, Result<(), Failure>), Failure> {
        let done = completion.result()?;
        if done.opcode != WcOpcode::RECV {
            return Ok((TestEvent::Request, Ok(())));
        }
        if done.bytes == 0 {
            return Ok((TestEvent::Finish, Ok(())));
        }
        let posted = self.endpoint.queue_pair().post_receive(completion.sg_list);
        Ok((TestEvent::Message, posted.map(drop).map_err(Failure::from)))
    }

    /// This side's memory.
    fn sge(&self) -> Result<Sge, Failure> {
        Ok(self.memory.slice(0..self.memory.len())?)
    }

    /// The last byte of this side's memory, which arrives last.
    pub(super) fn last_byte(&self) -> u8 {
        let mut byte = [0];
        self.memory
            .read(self.memory.len().saturating_sub(1), &mut byte);
        u8::from_ne_bytes(byte)
    }

    pub(super) fn set_last_byte(&self, byte: u8) {
        self.memory
            .write(self.memory.len().saturating_sub(1), &[byte]);
    }
}
