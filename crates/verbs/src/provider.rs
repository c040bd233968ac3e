//! What a driver adds to the kernel's verbs: words of its own in commands, and
//! the memory in which requests and completions change hands.
//!
//! [`Provider`] is the one seam to a driver. This crate has two, for rxe and siw;
//! [`Context::open_with`](crate::Context::open_with) takes others. What is common
//! to all drivers stands above it: which buffer belongs to which request, what is
//! refused before it is posted, in which order things are destroyed.

use std::fmt;
use std::sync::Arc;

use rdmacm_abi::uverbs::{
    CommandNumber, CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp,
    CreateQpResponse, CreateSrq, CreateSrqResponse, DriverId, GetContextResponse, PostSend, RegMr,
    RegMrResponse, ReqNotifyCq, Sge as AbiSge, WorkCompletion,
};
use rdmacm_core::{QpAttr, QpAttrMask, QpType, Transport};

use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::request::SendOperation;

#[cfg(test)]
mod ring_memory;
mod rxe;
mod siw;
#[cfg(test)]
pub(crate) mod stub;

pub(crate) use crate::mapping::{Mapping, Slots, Word, Words};
pub(crate) use crate::uverbs::Uverbs;
pub(crate) use rxe::Rxe;
pub(crate) use siw::Siw;

/// The drivers this crate knows.
pub(crate) fn known() -> [Arc<dyn Provider>; 2] {
    [Arc::new(Rxe), Arc::new(Siw)]
}

/// The one of these that knows a driver and the version of its words.
pub(crate) fn choose(
    providers: &[Arc<dyn Provider>],
    device: &str,
    driver: DriverId,
    abi_version: u32,
) -> Result<Arc<dyn Provider>> {
    let key = |provider: &Arc<dyn Provider>| (provider.driver(), provider.abi_version());
    let chosen = providers
        .iter()
        .find(|one| key(one) == (driver, abi_version));
    chosen.cloned().ok_or_else(|| Error::Driver {
        device: device.to_owned(),
        driver,
        abi_version,
        known: providers.iter().map(key).collect(),
    })
}

/// A driver, as far as verbs go.
///
/// # Safety
/// The memory of a request is given back, to be read, written and freed, once the
/// provider says that the request is complete: by a completion from
/// [`CompletionRing::pop`] with the request's number, or by any of a later request
/// of the same send queue, but where they
/// [complete apart](Self::completes_individually); or by a move to ERR, unless the driver
/// [flushes all](Self::flushes_all) by itself. An implementer vouches that the
/// device leaves that memory alone from then on, and that it uses no memory but
/// that of requests it was given, within the pieces they name.
///
/// It vouches too that the device and its rings do not meet in a slot: that it maps each
/// of the driver's queues once, and that its rings [read](Slots::read) and
/// [write](Slots::write) a slot only while that is this side's, as the driver's protocol
/// has it.
#[expect(unsafe_code, reason = "declares what implementers vouch for")]
pub(crate) unsafe trait Provider: fmt::Debug + Send + Sync {
    /// The driver it is for.
    fn driver(&self) -> DriverId;

    /// The version of the driver's words that it knows.
    fn abi_version(&self) -> u32;

    /// The protocol of the driver's devices.
    fn transport(&self) -> Transport;

    /// Which attributes of a queue pair the driver tells.
    fn tells(&self) -> QpAttrMask {
        // Those of the kernel's command: the bits up to the last of them.
        QpAttrMask::from_bits_retain((QpAttrMask::DEST_QPN.bits() << 1) - 1)
    }

    /// Whether a queue pair of this type does that.
    fn can(&self, qp_type: QpType, operation: &SendOperation) -> bool;

    /// Whether a request that does this can carry its bytes in line.
    fn can_inline(&self, operation: &SendOperation) -> bool {
        !operation.fetches()
    }

    /// Whether each request of a send queue completes for itself only: what
    /// completes says nothing then of those before it. To such a device all requests
    /// are signalled.
    fn completes_individually(&self) -> bool {
        false
    }

    /// Whether a queue pair that is moved to RESET forgets its requests, so that they
    /// complete no more but for what the device is doing at that moment. That frees no
    /// memory: it stays with the queue pair until it is destroyed. To any other driver
    /// the move changes nothing.
    fn resets(&self) -> bool {
        false
    }

    /// Whether a queue pair in ERR completes whatever was posted, sooner or later.
    ///
    /// Where it does not, the device leaves the memory of all requests of a queue pair
    /// alone that has been moved to ERR, and they are reported as flushed by this side.
    fn flushes_all(&self) -> bool {
        true
    }

    /// How many reads and atomics a queue pair may have under way, by its attributes.
    fn initiator_depth(&self, attr: &QpAttr) -> u8 {
        attr.max_rd_atomic
    }

    /// How many pieces of memory a read may name, where fewer than other requests.
    fn max_read_pieces(&self) -> u32 {
        u32::MAX
    }

    /// Makes an open node a context.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`].
    fn open(&self, uverbs: &Uverbs) -> Result<GetContextResponse>;

    /// Registers memory.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`].
    fn register(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: RegMr,
    ) -> Result<RegMrResponse>;

    /// Makes a completion queue and maps it.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`] and [`Uverbs::map`]; nothing is left then.
    fn create_cq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateCq,
    ) -> Result<(CreateCqResponse, Box<dyn CompletionRing>)>;

    /// Makes a queue pair and maps its queues.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`] and [`Uverbs::map`]; nothing is left then.
    fn create_qp(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateQp,
    ) -> Result<NewQueuePair>;

    /// Makes a shared receive queue and maps it.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`] and [`Uverbs::map`]; nothing is left then.
    fn create_srq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateSrq,
    ) -> Result<(CreateSrqResponse, Box<dyn ReceiveRing>)>;

    /// Makes an address handle; the number is what
    /// [`UdDestination::address_handle`] is to be.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`].
    fn create_ah(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateAh,
    ) -> Result<(CreateAhResponse, u32)>;

    /// Sets the level of a shared receive queue below which the device reports.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`].
    fn limit_srq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        handle: u32,
        limit: u32,
    ) -> Result<()>;

    /// Makes the device look at the requests of a send queue.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`].
    fn ring(&self, uverbs: &Uverbs, operation: Operation, queue_pair: u32) -> Result<()> {
        uverbs
            .ask(operation, &PostSend::doorbell(queue_pair))
            .map(drop)
    }
}

/// What the driver told of a queue cannot be.
pub(crate) fn nonsense(operation: Operation) -> Error {
    let command = match operation {
        Operation::CreateCompletionQueue { .. } => CommandNumber::CREATE_CQ,
        Operation::ResizeCompletionQueue { .. } => CommandNumber::RESIZE_CQ,
        Operation::CreateSharedReceiveQueue => CommandNumber::CREATE_SRQ,
        _ => CommandNumber::CREATE_QP,
    };
    Error::answer(operation, command, "a queue whose size or place cannot be")
}

/// A queue pair as the driver made it.
#[derive(Debug)]
pub(crate) struct NewQueuePair {
    /// The kernel's words.
    pub(crate) answer: CreateQpResponse,
    /// The send queue.
    pub(crate) send: Box<dyn SendRing>,
    /// The receive queue; none with a shared one.
    pub(crate) receive: Option<Box<dyn ReceiveRing>>,
}

impl NewQueuePair {
    /// One with these queues.
    pub(crate) fn new<S, R>(answer: CreateQpResponse, send: S, receive: Option<R>) -> Self
    where
        S: SendRing + 'static,
        R: ReceiveRing + 'static,
    {
        Self {
            answer,
            send: Box::new(send),
            receive: receive.map(|ring| -> Box<dyn ReceiveRing> { Box::new(ring) }),
        }
    }
}

/// A send queue in memory shared with the device.
pub(crate) trait SendRing: fmt::Debug + Send {
    /// How many requests it holds.
    fn capacity(&self) -> u32;

    /// How many bytes a request of it has room for in line.
    fn max_inline(&self) -> u32;

    /// How many pieces a request of it has room for.
    fn max_sges(&self) -> u32;

    /// Whether so many more requests go in. The device makes room by itself.
    fn has_room(&self, requests: usize) -> bool;

    /// Puts a request in, for the device to see when it is told to look. There is
    /// room for it, and its pieces are no more than the queue pair's requests may
    /// name.
    fn push(&mut self, request: &SendSlot<'_>);
}

/// A receive queue in memory shared with the device.
pub(crate) trait ReceiveRing: fmt::Debug + Send {
    /// How many requests it holds.
    fn capacity(&self) -> u32;

    /// How many pieces a request of it has room for.
    fn max_sges(&self) -> u32;

    /// Whether one more request goes in. The device makes room by itself.
    fn has_room(&self) -> bool;

    /// Puts a request in, which the device may use at once. There is room for it,
    /// and its pieces are no more than the queue's requests may name.
    fn push(&mut self, number: u64, sg_list: &[AbiSge]);
}

/// A completion queue in memory shared with the device.
pub(crate) trait CompletionRing: fmt::Debug + Send {
    /// How many completions it holds.
    fn capacity(&self) -> u32;

    /// Takes the oldest completion.
    fn pop(&mut self) -> Option<WorkCompletion>;

    /// Makes the device report the next completion on the queue's channel, or the
    /// next that its sender marked.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`].
    fn arm(&mut self, uverbs: &Uverbs, queue: u32, solicited_only: bool) -> Result<()> {
        let request = ReqNotifyCq {
            handle: queue,
            solicited_only: solicited_only.into(),
        };
        uverbs.ask(Operation::Arm, &request).map(drop)
    }

    /// Makes it hold so many completions, or more.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`], and it is as before; those of [`Uverbs::map`], and
    /// the context is closed, because the queue is lost.
    fn resize(&mut self, uverbs: &Uverbs, queue: u32, entries: u32) -> Result<()>;
}

/// A request as it goes into a send queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendSlot<'a> {
    /// What its completion is to say.
    pub(crate) number: u64,
    /// What to do.
    pub(crate) operation: SendOperation,
    /// Whether its completion is to be seen.
    pub(crate) signaled: bool,
    /// Whether the peer is to be woken.
    pub(crate) solicited: bool,
    /// Whether to wait for earlier reads.
    pub(crate) fence: bool,
    /// The memory.
    pub(crate) payload: SlotPayload<'a>,
    /// To whom, on an unreliable datagram queue pair.
    pub(crate) destination: Option<UdDestination>,
}

/// The memory of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlotPayload<'a> {
    /// Registered memory, for the device to read or write.
    SgList(&'a [AbiSge]),
    /// Bytes to copy into the queue.
    Inline(&'a [u8]),
}

/// To whom a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UdDestination {
    /// The driver's number of the address handle.
    pub(crate) address_handle: u32,
    /// The peer's queue pair, 24 bits.
    pub(crate) queue_pair: u32,
    /// Its queue key.
    pub(crate) queue_key: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(driver: DriverId, version: u32) -> Result<DriverId> {
        choose(&known(), "mlx5_0", driver, version).map(|one| one.driver())
    }

    #[test]
    fn rxe_and_siw_are_known_by_driver_and_version() {
        assert_eq!(chosen(DriverId::RXE, 2), Ok(DriverId::RXE));
        assert_eq!(chosen(DriverId::SIW, 1), Ok(DriverId::SIW));
    }

    #[test]
    fn others_are_refused_by_name_and_version() {
        let words = |driver, version| {
            let error = chosen(driver, version).unwrap_err();
            assert_eq!(error.raw_os_error(), None);
            error.to_string()
        };
        assert_eq!(
            words(DriverId::MLX5, 1),
            "open mlx5_0: its driver is MLX5, version 1; known here are RXE, version 2, and SIW, \
             version 1"
        );
        assert!(words(DriverId::RXE, 3).contains("RXE, version 3;"));
        assert!(words(DriverId::SIW, 2).contains("SIW, version 2;"));
        assert!(words(DriverId::UNKNOWN, 2).contains("UNKNOWN, version 2;"));
        assert!(words(DriverId::new(999), 1).contains("DriverId(999), version 1;"));
    }

    #[test]
    fn what_a_queue_pair_does_depends_on_type_and_driver() {
        let atomic = SendOperation::FetchAdd {
            remote: crate::RemoteMemory::new(0, 8, 0).unwrap(),
            add: 1,
        };
        assert!(Rxe.can(QpType::RC, &atomic));
        assert!(!Rxe.can(QpType::UC, &atomic));
        assert!(!Siw.can(QpType::RC, &atomic));
        let immediate = SendOperation::SendWithImmediate(7);
        assert!(Rxe.can(QpType::UD, &immediate));
        assert!(!Siw.can(QpType::RC, &immediate));
        assert!(!Siw.can(QpType::UD, &SendOperation::Send));
    }
}
