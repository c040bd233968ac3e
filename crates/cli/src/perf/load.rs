//! What both sides need for measuring.

use rdmacm::core::AccessFlags;
use rdmacm_verbs::{
    Completion, RemoteAccessRegion, RemoteMemory, SendOperation, SendRequest, SgList, Sge,
    WcOpcode, WorkId,
};

use super::{Terms, Test};
use crate::endpoint::{Endpoint, Shape};
use crate::failure::Failure;
use crate::message::Message;
use crate::talk::Talk;

/// Messages that say something about the others.
pub(super) const CONTROL: u32 = 4;

/// One side's end, its memory, and the peer's.
#[derive(Debug)]
pub(super) struct Load<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) memory: RemoteAccessRegion,
    pub(super) remote: RemoteMemory,
    pub(super) terms: Terms,
    /// The message by which this side's memory was told, which may be done later than
    /// the answer to it has come.
    told: WorkId,
}

/// What has come of what was posted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrived {
    /// A request is done.
    Request,
    /// The peer has sent a message, and there is room for another.
    Message,
    /// The client has measured all it wanted to, which an empty message says.
    Finish,
}

/// What a side's end is to be like. The server has room for twice as many messages
/// as may be under way: half of them are on their way while it says so. The message that
/// the client has finished comes on top of them.
pub(super) fn shape(terms: &Terms, is_server: bool) -> Shape {
    let streams = is_server && terms.test == Test::SendBw;
    let room = match terms.test {
        Test::SendBw if !is_server => Message::SIZE,
        Test::SendBw | Test::SendLat => Message::SIZE.max(terms.size as usize),
        _ => Message::SIZE,
    };
    Shape {
        sends: terms.depth + CONTROL,
        receives: if streams {
            2 * terms.depth + 1
        } else {
            CONTROL
        },
        room,
        inline: 16,
        spin: terms.poll,
    }
}

impl<'a> Load<'a> {
    /// Tells the peer where this side's memory is, and hears where its is. The client
    /// speaks first: iWARP's accepting side must not.
    pub(super) async fn exchange(
        endpoint: &'a Endpoint,
        terms: Terms,
        is_server: bool,
    ) -> Result<Self, Failure> {
        let access =
            AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE;
        let memory = endpoint.domain().expose(terms.size as usize, access)?;
        // No message has more bytes than a message can say.
        let message = Message::about(memory.remote()).unwrap_or(Message::GO_AHEAD);
        let mut talk = Talk::new(endpoint);
        let (heard, told) = if is_server {
            let heard = talk.hear().await?;
            (heard, talk.say(message)?)
        } else {
            let told = talk.say(message)?;
            (talk.hear_answer().await?, told)
        };
        let remote = heard.memory();
        let remote = remote.filter(|remote| remote.len() == u64::from(terms.size));
        let remote = remote.ok_or_else(|| {
            let words = "the peer's memory is not as long as its messages";
            Failure::Peer(words.to_owned())
        })?;
        Ok(Self {
            endpoint,
            memory,
            remote,
            terms,
            told,
        })
    }

    /// Posts one request of the test.
    pub(super) fn post(&self) -> Result<(), Failure> {
        let operation = match self.terms.test {
            Test::SendBw | Test::SendLat => SendOperation::Send,
            Test::WriteBw | Test::WriteLat => SendOperation::Write(self.remote),
            Test::ReadBw | Test::ReadLat => SendOperation::Read(self.remote),
        };
        let request = SendRequest::new(operation, self.sge()?);
        self.endpoint.queue_pair().post_send(request)?;
        Ok(())
    }

    /// Reads one byte, which is answered when all that was sent before has arrived.
    pub(super) fn post_confirmation(&self) -> Result<(), Failure> {
        let last = self.remote.part(..1).unwrap_or(self.remote);
        let sge = self.memory.part(0..1)?;
        let request = SendRequest::new(SendOperation::Read(last), sge);
        self.endpoint.queue_pair().post_send(request)?;
        Ok(())
    }

    /// Tells the server that all was measured: without that, a client that disconnects
    /// has failed.
    pub(super) async fn finish(&self) -> Result<(), Failure> {
        let request = SendRequest::new(SendOperation::Send, SgList::NONE);
        let finish = self.endpoint.queue_pair().post_send(request)?;
        loop {
            let completion = self.next_completion().await?;
            let work = completion.work;
            self.arrived(completion)?;
            if work == finish {
                return Ok(());
            }
        }
    }

    /// Waits for what comes next.
    pub(super) async fn next(&self) -> Result<Arrived, Failure> {
        let completion = self.next_completion().await?;
        self.arrived(completion)
    }

    /// The same, for a side that may be behind its peer: what has arrived is told though
    /// the queue pair takes no more, and how making room for another message went.
    pub(super) async fn next_of_what_was_sent(
        &self,
    ) -> Result<(Arrived, Result<(), Failure>), Failure> {
        let completion = self.next_completion().await?;
        self.arrived_and_made_room(completion)
    }

    /// What has come by now.
    pub(super) fn poll(&self) -> Result<Option<Arrived>, Failure> {
        while let Some(completion) = self.endpoint.poll()? {
            if completion.work != self.told {
                return self.arrived(completion).map(Some);
            }
            completion.result?;
        }
        Ok(None)
    }

    async fn next_completion(&self) -> Result<Completion, Failure> {
        loop {
            let completion = self.endpoint.next().await?;
            if completion.work != self.told {
                return Ok(completion);
            }
            completion.result?;
        }
    }

    fn arrived(&self, completion: Completion) -> Result<Arrived, Failure> {
        let (arrived, made_room) = self.arrived_and_made_room(completion)?;
        made_room.map(|()| arrived)
    }

    fn arrived_and_made_room(
        &self,
        completion: Completion,
    ) -> Result<(Arrived, Result<(), Failure>), Failure> {
        let done = completion.result?;
        if done.opcode != WcOpcode::RECV {
            return Ok((Arrived::Request, Ok(())));
        }
        if done.bytes == 0 {
            return Ok((Arrived::Finish, Ok(())));
        }
        let posted = self.endpoint.queue_pair().post_receive(completion.sg_list);
        Ok((Arrived::Message, posted.map(drop).map_err(Failure::from)))
    }

    /// All of this side's memory.
    fn sge(&self) -> Result<Sge, Failure> {
        Ok(self.memory.part(0..self.memory.len())?)
    }

    /// The byte of this side's memory that arrives last.
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
