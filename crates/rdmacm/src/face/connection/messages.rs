//! What a connection carries.

use rdmacm_core::{AccessFlags, Deadline};
use rdmacm_verbs::{Buffer, ExposedMemory, RemoteMemory, SendOperation};

use super::Connection;
use crate::error::{Cause, Result};
use crate::hub::block_on;
use crate::messages::{Failed, Line, Loan, Message, Messages};
use crate::mode::{Async, Blocking, Mode};
use crate::reactor::Runtime;
use crate::step::Step;
use crate::steps::{self, Attempt, Carried};

impl<M: Mode> Connection<Messages, M> {
    /// The same, which knows what it carries.
    pub(in crate::face) fn carrying_messages(self) -> Self {
        Self {
            carried: Carried::messages(self.queue_pair.traffic()),
            ..self
        }
    }

    /// How long each later step that carries something may take, counted from its
    /// call. For ever, unless set.
    pub fn set_deadline(&self, deadline: impl Into<Deadline>) {
        self.queue_pair().traffic().set_deadline(deadline.into());
    }

    /// The next message, if one has arrived.
    ///
    /// # Errors
    /// Those of [`receive`](Self::receive) but for the deadline. How the connection
    /// ended is known only once somebody has waited or asked again.
    pub fn try_receive(&self) -> Result<Option<Message>> {
        let attempt = self.attempt(Deadline::Never);
        steps::carry::try_receive(&attempt, self.line())
    }

    /// A buffer of `length` zeros, for [`send_buffer`](Self::send_buffer),
    /// [`read`](Self::read) and [`write`](Self::write). Registering costs time: keep
    /// it and use it again.
    ///
    /// # Errors
    /// [`Step::Register`]: see [`ProtectionDomain::allocate`].
    ///
    /// [`ProtectionDomain::allocate`]: rdmacm_verbs::ProtectionDomain::allocate
    #[doc(alias = "rdma_reg_msgs", alias = "ibv_reg_mr")]
    pub fn allocate(&self, length: usize) -> Result<Buffer> {
        let allocated = self.queue_pair().protection_domain().allocate(length);
        allocated.map_err(|error| self.unregistered(error))
    }

    /// `length` zeros that the peer may use as `access` says, once it has been told
    /// [`ExposedMemory::remote`], in a message for example.
    ///
    /// # Errors
    /// [`Step::Register`]: see [`ProtectionDomain::expose`].
    ///
    /// [`ProtectionDomain::expose`]: rdmacm_verbs::ProtectionDomain::expose
    #[doc(alias = "rdma_reg_read", alias = "rdma_reg_write")]
    pub fn expose(&self, length: usize, access: AccessFlags) -> Result<ExposedMemory> {
        let exposed = self.queue_pair().protection_domain().expose(length, access);
        exposed.map_err(|error| self.unregistered(error))
    }

    fn unregistered(&self, error: rdmacm_verbs::Error) -> crate::Error {
        let attempt = self.attempt(Deadline::Never);
        attempt.fail_on(self.id(), Step::Register, Cause::Verbs(error))
    }

    fn line(&self) -> Line<'_> {
        Line {
            tracked: self.tracked(),
            traffic: self.queue_pair().traffic(),
        }
    }

    fn carrying(&self) -> Attempt {
        self.attempt(self.queue_pair().traffic().deadline())
    }

    async fn send_async(&self, message: &[u8]) -> Result<()> {
        steps::carry::send(&self.carrying(), self.line(), message).await
    }

    async fn receive_async(&self) -> Result<Message> {
        steps::carry::receive(&self.carrying(), self.line()).await
    }

    async fn flush_async(&self) -> Result<()> {
        steps::carry::flush(&self.carrying(), self.line(), Step::Send).await
    }

    async fn transfer_async<L: Loan>(
        &self,
        step: Step,
        operation: SendOperation,
        memory: L,
    ) -> Result<L, Failed<L>> {
        steps::carry::transfer(&self.carrying(), self.line(), step, operation, memory).await
    }
}

impl Connection<Messages, Blocking> {
    /// Sends a copy of a message, which may be empty. Waits while as many are under
    /// way as [there may be](crate::MessageOptions::sends), but not until it has
    /// arrived: that one later was not sent is told by the steps that follow, of which
    /// [`flush`](Self::flush) and [`close`](Self::close) wait for that.
    ///
    /// # Errors
    /// [`Cause::TooLong`]: nothing was sent. [`Cause::Ended`], [`Cause::Completion`] or
    /// [`Cause::Verbs`]: the connection is over. [`Cause::Deadline`]: there was no
    /// room in time, and nothing was sent.
    #[doc(alias = "rdma_post_send", alias = "ibv_post_send")]
    pub fn send(&self, message: &[u8]) -> Result<()> {
        block_on(self.tracked().hub(), self.send_async(message))
    }

    /// Waits for the next message. Any number of threads may; each message goes to
    /// one of them.
    ///
    /// # Errors
    /// [`Cause::Ended`] once there is none left and the peer has parted or was lost;
    /// [`Cause::Completion`] or [`Cause::Verbs`]: the connection is over otherwise.
    /// [`Cause::Deadline`]: none came in time.
    #[doc(alias = "rdma_post_recv", alias = "ibv_post_recv")]
    #[doc(alias = "rdma_get_recv_comp")]
    pub fn receive(&self) -> Result<Message> {
        block_on(self.tracked().hub(), self.receive_async())
    }

    /// Waits until everything sent so far has arrived: on RoCE at the peer's device,
    /// on iWARP in this machine's TCP.
    ///
    /// # Errors
    /// Those of [`send`](Self::send): something was lost.
    #[doc(alias = "rdma_get_send_comp")]
    pub fn flush(&self) -> Result<()> {
        block_on(self.tracked().hub(), self.flush_async())
    }

    /// Sends registered memory as it is, as one message, and gives it back once that
    /// has arrived. It may be longer than what [`send`](Self::send) copies.
    ///
    /// # Errors
    /// Those of [`send`](Self::send), with the memory.
    pub fn send_buffer<L: Loan>(&self, memory: L) -> Result<L, Failed<L>> {
        let sending = self.transfer_async(Step::Send, SendOperation::Send, memory);
        block_on(self.tracked().hub(), sending)
    }

    /// Reads from memory that the peer exposes, as many bytes as this side's has.
    ///
    /// # Errors
    /// Those of [`send`](Self::send), with the memory. [`Cause::Verbs`] with
    /// [`InvalidInput`](rdmacm_verbs::Error::InvalidInput) where the peer's is shorter
    /// changes nothing; what the peer refuses ends the connection.
    #[doc(alias = "rdma_post_read")]
    pub fn read<L: Loan>(&self, into: L, from: RemoteMemory) -> Result<L, Failed<L>> {
        let reading = self.transfer_async(Step::Read, SendOperation::Read(from), into);
        block_on(self.tracked().hub(), reading)
    }

    /// Writes to memory that the peer exposes. The peer is not told: a message behind
    /// it does.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    #[doc(alias = "rdma_post_write")]
    pub fn write<L: Loan>(&self, from: L, to: RemoteMemory) -> Result<L, Failed<L>> {
        let writing = self.transfer_async(Step::Write, SendOperation::Write(to), from);
        block_on(self.tracked().hub(), writing)
    }
}

impl<R: Runtime> Connection<Messages, Async<R>> {
    /// Sends a copy of a message, which may be empty. Waits while as many are under
    /// way as [there may be](crate::MessageOptions::sends), but not until it has
    /// arrived: that one later was not sent is told by the steps that follow, of which
    /// [`flush`](Self::flush) and [`close`](Self::close) wait for that. Where the
    /// future is dropped before it is ready, nothing was sent.
    ///
    /// # Errors
    /// [`Cause::TooLong`]: nothing was sent. [`Cause::Ended`], [`Cause::Completion`] or
    /// [`Cause::Verbs`]: the connection is over. [`Cause::Deadline`]: there was no
    /// room in time, and nothing was sent.
    #[doc(alias = "rdma_post_send", alias = "ibv_post_send")]
    pub async fn send(&self, message: &[u8]) -> Result<()> {
        self.send_async(message).await
    }

    /// Waits for the next message. Any number of tasks may; each message goes to one
    /// of them, and dropping the future loses none.
    ///
    /// # Errors
    /// [`Cause::Ended`] once there is none left and the peer has parted or was lost;
    /// [`Cause::Completion`] or [`Cause::Verbs`]: the connection is over otherwise.
    /// [`Cause::Deadline`]: none came in time.
    #[doc(alias = "rdma_post_recv", alias = "ibv_post_recv")]
    #[doc(alias = "rdma_get_recv_comp")]
    pub async fn receive(&self) -> Result<Message> {
        self.receive_async().await
    }

    /// Waits until everything sent so far has arrived: on RoCE at the peer's device,
    /// on iWARP in this machine's TCP.
    ///
    /// # Errors
    /// Those of [`send`](Self::send): something was lost.
    #[doc(alias = "rdma_get_send_comp")]
    pub async fn flush(&self) -> Result<()> {
        self.flush_async().await
    }

    /// Sends registered memory as it is, as one message, and gives it back once that
    /// has arrived. It may be longer than what [`send`](Self::send) copies. Where the
    /// future is dropped, the message may have been sent; its memory stays with the
    /// queue pair until the device has done with it, and is freed then.
    ///
    /// # Errors
    /// Those of [`send`](Self::send), with the memory.
    pub async fn send_buffer<L: Loan>(&self, memory: L) -> Result<L, Failed<L>> {
        self.transfer_async(Step::Send, SendOperation::Send, memory)
            .await
    }

    /// Reads from memory that the peer exposes, as many bytes as this side's has.
    /// Dropping the future is as with [`send_buffer`](Self::send_buffer).
    ///
    /// # Errors
    /// Those of [`send`](Self::send), with the memory. [`Cause::Verbs`] with
    /// [`InvalidInput`](rdmacm_verbs::Error::InvalidInput) where the peer's is shorter
    /// changes nothing; what the peer refuses ends the connection.
    #[doc(alias = "rdma_post_read")]
    pub async fn read<L: Loan>(&self, into: L, from: RemoteMemory) -> Result<L, Failed<L>> {
        self.transfer_async(Step::Read, SendOperation::Read(from), into)
            .await
    }

    /// Writes to memory that the peer exposes. The peer is not told: a message behind
    /// it does. Dropping the future is as with [`send_buffer`](Self::send_buffer).
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    #[doc(alias = "rdma_post_write")]
    pub async fn write<L: Loan>(&self, from: L, to: RemoteMemory) -> Result<L, Failed<L>> {
        self.transfer_async(Step::Write, SendOperation::Write(to), from)
            .await
    }
}
