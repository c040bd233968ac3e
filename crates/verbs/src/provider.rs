//! What a driver adds to the kernel's verbs: fields of its own in commands, and
//! the shared memory of the queues.
//!
//! [`Provider`] is the interface to a driver. There is one for rxe and one for siw. What is
//! common to all drivers is above it: which memory belongs to which request, the checks
//! before posting, and the order of destruction.

use std::fmt;
use std::sync::Arc;

use rdmacm_abi::uverbs::{
    Command, CommandNumber, CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp,
    CreateQpResponse, CreateSrq, CreateSrqResponse, DriverId, GetContextResponse, ModifySrq, RegMr,
    RegMrResponse,
};
use rdmacm_core::{QpAttr, QpAttrMask, QpType, Transport};

use crate::error::{Error, Result};
use crate::opcodes::Opcodes;
use crate::operation::Operation;

mod completion_ring;
mod receive_ring;
#[cfg(test)]
mod ring_memory;
mod rxe;
mod send_ring;
mod siw;
#[cfg(test)]
pub(crate) mod stub;

pub(crate) use crate::mapping::{
    AfterClose, Content, Kernel, Mapping, Slot, SlotBytes, Slots, ThisProcess, Word, Words,
};
pub(crate) use crate::uverbs::Uverbs;
pub(crate) use completion_ring::{CompletionHint, CompletionRing, CompletionRings, HintWatch};
pub(crate) use receive_ring::{ReceiveRing, ReceiveRings};
pub(crate) use rxe::{IndexWatch, RingIndices, Rxe};
pub(crate) use send_ring::{SendRing, SendRings, SendSlot, SlotPayload, UdDestination};
pub(crate) use siw::Siw;

/// Calls a method of the ring of whichever driver it is: known calls, which are inlined.
macro_rules! of_driver {
    ($rings:expr, $ring:ident => $call:expr) => {
        match $rings {
            Self::Rxe($ring) => $call,
            Self::Siw($ring) => $call,
            #[cfg(test)]
            Self::Stub($ring) => $call,
        }
    };
}
use of_driver;

/// The providers of this crate. siw orders neither its reads of requests nor its writes of
/// completions after and before their flags (`siw_rqe_complete`, `sq_get_next`): only processors
/// that keep the order of a program's stores, and of its loads, make that right.
pub(crate) fn all() -> Vec<Arc<dyn Provider>> {
    let mut providers: Vec<Arc<dyn Provider>> = vec![Arc::new(Rxe)];
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        providers.push(Arc::new(Siw));
    }
    providers
}

/// The provider for a driver and its ABI version.
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

/// The interface to a driver.
///
/// # Safety
/// The memory of a request returns to the caller, who may read, write and free it, once the
/// request is complete:
/// - when [`CompletionRing::pop`] returns a completion with the request's number;
/// - when it returns the completion of a later request of the same send queue, unless
///   requests [complete individually](Self::completes_individually);
/// - when the queue pair moves to ERR, unless the driver [flushes](Self::flushes_all) all
///   requests.
///
/// An implementer guarantees that the device does not access that memory afterwards (at most it
/// reads, as long as it is registered, up to a packet of a send that was flushed), and
/// that the device accesses only memory of posted requests, within their scatter/gather
/// entries. [An exception](Self::overruns_reads) is what a hostile peer can make the device write
/// beyond the entry of a read.
///
/// It also guarantees that the device and this process never access a slot at the same time:
/// it maps each queue once, and its rings [read](Slot::read) and [write](Slots::write) a slot
/// only while this process owns it by the driver's protocol.
#[expect(unsafe_code, reason = "declares what implementers guarantee")]
pub(crate) unsafe trait Provider: fmt::Debug + Send + Sync {
    /// The driver.
    fn driver(&self) -> DriverId;

    /// The supported version of the driver's ABI.
    fn abi_version(&self) -> u32;

    /// The transport of the driver's devices.
    fn transport(&self) -> Transport;

    /// The attributes of a queue pair that the driver reports.
    fn queryable_attributes(&self) -> QpAttrMask {
        // Those of the kernel's command: all bits up to the last one.
        QpAttrMask::from_bits_retain((QpAttrMask::DEST_QPN.bits() << 1) - 1)
    }

    /// The operations that a queue pair of this type supports.
    fn operations(&self, qp_type: QpType) -> Opcodes;

    /// The operations whose requests can contain inline data, of those that do not fetch.
    fn inline_operations(&self) -> Opcodes {
        Opcodes::ALL
    }

    /// Whether the completion of a request does not imply that earlier requests of the send
    /// queue are complete. All requests to such a device are signalled, and it may complete one
    /// of a queue pair twice when the connection ends.
    fn completes_individually(&self) -> bool {
        false
    }

    /// Whether a move to RESET discards the requests of a queue pair, so that they do not
    /// complete, except the one that the device is processing. Their memory stays with the
    /// queue pair until it is destroyed. Only a second move keeps the device from processing the
    /// send requests that the first one has discarded. Other drivers ignore the move.
    fn resets(&self) -> bool {
        false
    }

    /// Whether a queue pair in ERR eventually completes all posted requests.
    ///
    /// If not, the device does not access the memory of any request once the queue pair has
    /// moved to ERR, and this crate reports the requests as flushed.
    fn flushes_all(&self) -> bool {
        true
    }

    /// How many reads and atomics a queue pair may have outstanding, by its attributes.
    fn initiator_depth(&self, attr: &QpAttr) -> u8 {
        attr.max_rd_atomic
    }

    /// The scatter/gather entries of a read, if the limit is lower than for other requests.
    fn max_read_sges(&self) -> u32 {
        u32::MAX
    }

    /// Whether a peer that answers a read can make the device write beyond the read's entry, up to
    /// the end of the last page of the memory that is registered. Memory that this crate allocates
    /// has these pages to itself then, and reads into other memory, or into a part of it while other
    /// parts exist, are refused.
    fn overruns_reads(&self) -> bool {
        false
    }

    /// Creates the context of an open verbs node.
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

    /// Creates a completion queue and maps it.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`] and [`Uverbs::map`]; nothing was created.
    fn create_cq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateCq,
    ) -> Result<(CreateCqResponse, CompletionRings)>;

    /// Creates a queue pair and maps its queues.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`] and [`Uverbs::map`]; nothing was created.
    fn create_qp(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateQp,
    ) -> Result<NewQueuePair>;

    /// Creates a shared receive queue and maps it.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`] and [`Uverbs::map`]; nothing was created.
    fn create_srq(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateSrq,
    ) -> Result<(CreateSrqResponse, ReceiveRings)>;

    /// Creates an address handle, and returns its number for
    /// [`UdDestination::address_handle`].
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`].
    fn create_ah(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        request: CreateAh,
    ) -> Result<(CreateAhResponse, u32)>;

    /// Sets the limit of a shared receive queue: the device reports when fewer requests are
    /// left.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`].
    fn set_srq_limit(
        &self,
        uverbs: &Uverbs,
        operation: Operation,
        handle: u32,
        limit: u32,
    ) -> Result<()> {
        uverbs
            .ask(operation, &ModifySrq::limit(handle, limit))
            .map(drop)
    }
}

/// The mapped queues of an object; destroys the object by this command if mapping has failed.
fn destroy_on_error<R>(uverbs: &Uverbs, destroy: &impl Command, rings: Result<R>) -> Result<R> {
    rings.inspect_err(|_| uverbs.undo(destroy))
}

/// The driver described a queue with an impossible size or offset.
pub(crate) fn invalid_queue(operation: Operation) -> Error {
    let command = match operation {
        Operation::CreateCompletionQueue { .. } => CommandNumber::CREATE_CQ,
        Operation::ResizeCompletionQueue { .. } => CommandNumber::RESIZE_CQ,
        Operation::CreateSharedReceiveQueue => CommandNumber::CREATE_SRQ,
        _ => CommandNumber::CREATE_QP,
    };
    Error::answer(
        operation,
        command,
        "a queue with an impossible size or offset",
    )
}

/// A queue pair that the driver has created.
#[derive(Debug)]
pub(crate) struct NewQueuePair {
    /// The kernel's answer.
    pub(crate) answer: CreateQpResponse,
    /// The send queue.
    pub(crate) send: SendRings,
    /// The receive queue; `None` with a shared one.
    pub(crate) receive: Option<ReceiveRings>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm_abi::uverbs::WrOpcode;

    fn chosen(driver: DriverId, version: u32) -> Result<DriverId> {
        choose(&all(), "mlx5_0", driver, version).map(|one| one.driver())
    }

    #[test]
    fn rxe_and_siw_are_supported_in_one_version() {
        assert_eq!(chosen(DriverId::RXE, 2), Ok(DriverId::RXE));
        assert_eq!(chosen(DriverId::SIW, 1), Ok(DriverId::SIW));
    }

    #[test]
    fn other_drivers_and_versions_are_refused() {
        let text = |driver, version| {
            let error = chosen(driver, version).unwrap_err();
            assert_eq!(error.raw_os_error(), None);
            error.to_string()
        };
        assert_eq!(
            text(DriverId::MLX5, 1),
            "open mlx5_0: the driver MLX5, version 1, is not supported; supported are RXE, \
             version 2, and SIW, version 1"
        );
        assert!(text(DriverId::RXE, 3).contains("RXE, version 3,"));
        assert!(text(DriverId::SIW, 2).contains("SIW, version 2,"));
        assert!(text(DriverId::UNKNOWN, 2).contains("UNKNOWN, version 2,"));
        assert!(text(DriverId::new(999), 1).contains("DriverId(999), version 1,"));
    }

    #[test]
    fn supported_operations_depend_on_queue_pair_type_and_driver() {
        let supports = |provider: &dyn Provider, qp_type, opcode| {
            let operations = provider.operations(qp_type);
            operations.contain(opcode)
        };
        let atomic = WrOpcode::ATOMIC_FETCH_AND_ADD;
        assert!(supports(&Rxe, QpType::RC, atomic));
        assert!(!supports(&Rxe, QpType::UC, atomic));
        assert!(!supports(&Siw, QpType::RC, atomic));
        let immediate = WrOpcode::SEND_WITH_IMM;
        assert!(supports(&Rxe, QpType::UD, immediate));
        assert!(!supports(&Siw, QpType::RC, immediate));
        assert!(!supports(&Siw, QpType::UD, WrOpcode::SEND));
    }
}
