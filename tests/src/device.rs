//! Files that stand between a channel and the kernel.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use rdmacm_abi::{EventNumber, EventResponse};
use rdmacm_core::CommandNumber;
use rdmacm_core::ucma::{KernelFile, UcmaFile as _};
use rdmacm_test_helpers::ucma_file_over;
use zerocopy::FromBytes as _;

/// The kernel without the commands `QUERY`, `BIND`, `RESOLVE_ADDR` and `JOIN_MCAST`:
/// numbers beyond the end of its table fail with `EINVAL`.
#[derive(Debug)]
pub struct OldKernel(KernelFile);

impl OldKernel {
    /// Opens the kernel's file.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "opening is no default")]
    pub fn new() -> Self {
        Self(KernelFile::open().unwrap())
    }
}

/// The kernel, which counts commands.
#[derive(Debug)]
pub struct Counting {
    kernel: KernelFile,
    /// By number; the last counter is for all greater numbers.
    commands: [AtomicUsize; NUMBERS],
    /// Reads that found no event.
    empty_reads: AtomicUsize,
}

/// More commands than the kernel has.
const NUMBERS: usize = 32;

impl Counting {
    /// Opens the kernel's file.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "opening is no default")]
    pub fn new() -> Self {
        Self {
            kernel: KernelFile::open().unwrap(),
            commands: [const { AtomicUsize::new(0) }; NUMBERS],
            empty_reads: AtomicUsize::new(0),
        }
    }

    /// The number of commands so far.
    pub fn commands(&self) -> usize {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        self.commands.iter().map(load).sum()
    }

    /// The number of commands of this kind.
    pub fn of(&self, number: CommandNumber) -> usize {
        self.commands[place(number)].load(Ordering::Relaxed)
    }

    /// The number of reads that found no event.
    pub fn empty_reads(&self) -> usize {
        self.empty_reads.load(Ordering::Relaxed)
    }

    fn count(&self, number: CommandNumber, answer: &io::Result<()>) {
        self.commands[place(number)].fetch_add(1, Ordering::Relaxed);
        let empty_reads = matches!(answer, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        if empty_reads && number == CommandNumber::GET_EVENT {
            self.empty_reads.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn place(number: CommandNumber) -> usize {
    let place = usize::try_from(number.number()).unwrap_or(usize::MAX);
    place.min(NUMBERS - 1)
}

/// The kernel with corrupted responses.
#[derive(Debug)]
pub struct CorruptedResponses {
    kernel: KernelFile,
    /// The first bytes of a response, which are unchanged.
    spared: AtomicUsize,
    random: AtomicU64,
}

impl CorruptedResponses {
    /// Opens the kernel's file. Responses are unchanged until
    /// [`corrupt`](Self::corrupt).
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            kernel: KernelFile::open().unwrap(),
            spared: AtomicUsize::new(usize::MAX),
            // Makes the sequences of neighbouring seeds begin differently.
            random: AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        }
    }

    /// Makes later responses random bytes.
    pub fn corrupt(&self) {
        self.spared.store(0, Ordering::Relaxed);
    }

    /// Makes later events random bytes, except the uid.
    pub fn corrupt_all_but_the_uid(&self) {
        self.spared.store(size_of::<u64>(), Ordering::Relaxed);
    }

    fn random_byte(&self) -> u8 {
        // Knuth's linear congruential generator; its upper bits are random enough.
        const STEP: u64 = 6_364_136_223_846_793_005;
        let next = |state: u64| Some(state.wrapping_mul(STEP).wrapping_add(1));
        let order = Ordering::Relaxed;
        let state = self.random.fetch_update(order, order, next);
        state.unwrap_or_default().to_be_bytes()[0]
    }
}

/// The kernel, except that it never reports that a peer is connected.
#[derive(Debug)]
pub struct Unestablished {
    kernel: KernelFile,
    accepted: Mutex<bool>,
    has_accepted: Condvar,
}

impl Unestablished {
    /// Opens the kernel's file.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "opening is no default")]
    pub fn new() -> Self {
        Self {
            kernel: KernelFile::open().unwrap(),
            accepted: Mutex::new(false),
            has_accepted: Condvar::new(),
        }
    }

    /// Waits until the kernel has accepted a connect request.
    ///
    /// # Panics
    /// If another thread has panicked in here.
    pub fn wait_for_accept(&self) {
        let accepted = self.accepted.lock().unwrap();
        let _true = self.has_accepted.wait_while(accepted, |is| !*is).unwrap();
    }
}

/// The kernel with the loss of a multicast group on request, as InfiniBand has when the
/// subnet manager has forgotten the group (`process_group_error`).
#[derive(Debug)]
pub struct LosingGroups {
    kernel: KernelFile,
    /// The last response that reports a joined group.
    joined: Mutex<Vec<u8>>,
    /// The response that reported the group to lose.
    lost: Mutex<Option<Vec<u8>>>,
}

impl LosingGroups {
    /// Opens the kernel's file.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "opening is no default")]
    pub fn new() -> Self {
        Self {
            kernel: KernelFile::open().unwrap(),
            joined: Mutex::default(),
            lost: Mutex::default(),
        }
    }

    /// Loses the group that was joined last.
    ///
    /// # Panics
    /// If another thread has panicked in here.
    pub fn lose(&self) {
        *self.lost.lock().unwrap() = Some(self.joined.lock().unwrap().clone());
        self.kernel.notify();
    }

    /// Replaces the next response by the loss of a group, if one is to be lost.
    fn has_lost(&self, response: &mut [u8]) -> bool {
        let Some(joined) = self.lost.lock().unwrap().take() else {
            return false;
        };
        response.copy_from_slice(&joined);
        let (event, _) = EventResponse::mut_from_prefix(response).unwrap();
        event.event = EventNumber::MULTICAST_ERROR;
        event.raw_status = u32::from_ne_bytes((-libc::ENETRESET).to_ne_bytes());
        true
    }

    fn note(&self, response: &[u8]) {
        let (event, _) = EventResponse::ref_from_prefix(response).unwrap();
        if event.event == EventNumber::MULTICAST_JOIN {
            response.clone_into(&mut self.joined.lock().unwrap());
        }
    }
}

ucma_file_over!(OldKernel, 0, |this, call| {
    if call.number() >= CommandNumber::QUERY {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    this.0.execute(call)
});

ucma_file_over!(Counting, kernel, |this, call| {
    let answer = this.kernel.execute(call);
    this.count(call.number(), &answer);
    answer
});

ucma_file_over!(CorruptedResponses, kernel, |this, call| {
    this.kernel.execute(call)?;
    let spared = this.spared.load(Ordering::Relaxed);
    for byte in call.response().iter_mut().skip(spared) {
        *byte = this.random_byte();
    }
    Ok(())
});

ucma_file_over!(LosingGroups, kernel, |this, call| {
    if call.number() != CommandNumber::GET_EVENT {
        return this.kernel.execute(call);
    }
    if !this.has_lost(call.response()) {
        this.kernel.execute(call)?;
        this.note(call.response());
    }
    Ok(())
});

ucma_file_over!(Unestablished, kernel, |this, call| {
    this.kernel.execute(call)?;
    if call.number() == CommandNumber::ACCEPT {
        *this.accepted.lock().unwrap() = true;
        this.has_accepted.notify_all();
    }
    if call.number() == CommandNumber::GET_EVENT {
        let (event, _) = EventResponse::mut_from_prefix(call.response()).unwrap();
        // The kernel has counted the event, so it must be returned: as one without
        // meaning.
        if event.event == EventNumber::ESTABLISHED {
            event.event = EventNumber::TIMEWAIT_EXIT;
        }
    }
    Ok(())
});
