//! The floor: the same commands as those of the workloads in `ids`, written to the device
//! by nothing but `write(2)`, with requests that were prepared before.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::ensure;
use rdmacm_abi::{
    Command, CreateId, DestroyId, EventNumber, GetEvent, Header, Pointer, PortSpace, QpType,
    ResolveAddr, ResolveRoute,
};
use zerocopy::IntoBytes as _;

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

const DEVICE: &str = "/dev/infiniband/rdma_cm";
const TIMEOUT_MS: u32 = 10_000;
const PORT: u16 = 7471;

pub(super) const WORKLOADS: &[Workload] = &[
    workload("bare-id", id),
    workload("bare-id-create", create),
    workload("bare-id-destroy", destroy),
    workload("bare-event", event),
    workload("bare-resolve-numeric", resolve_numeric),
];

const fn workload(
    name: &'static str,
    run: fn(Target, u32, &mut Meter) -> anyhow::Result<()>,
) -> Workload {
    Workload {
        name,
        peer: PeerKind::None,
        run,
    }
}

/// Words of a request with its header, and of a response: more than the largest has.
const WORDS: usize = 128;
/// The length of a header.
const HEADER: usize = 8;

/// A command that may be written many times, and the memory for its response, which the
/// kernel writes.
struct Prepared {
    bytes: Vec<u8>,
    response: Box<[AtomicU32; WORDS]>,
}

impl Prepared {
    fn new<C: Command>(request: &C) -> Self {
        let response = Box::new([const { AtomicU32::new(0) }; WORDS]);
        let mut bytes = Header::of::<C>().as_bytes().to_vec();
        bytes.extend_from_slice(request.as_bytes());
        if let Pointer::Response { offset } = C::POINTER {
            let address = response.as_ptr().expose_provenance() as u64;
            bytes[HEADER + offset..][..8].copy_from_slice(&address.to_ne_bytes());
        }
        assert!(size_of::<C::Response>() <= size_of_val(&*response));
        Self { bytes, response }
    }

    /// Changes the id in the request.
    fn set_id(&mut self, offset: usize, id: u32) {
        self.bytes[HEADER + offset..][..4].copy_from_slice(&id.to_ne_bytes());
    }

    fn write(&self, mut device: &File) -> anyhow::Result<()> {
        let written = device.write(&self.bytes)?;
        ensure!(written == self.bytes.len(), "{written} bytes were written");
        Ok(())
    }

    /// A word of the response.
    fn word(&self, index: usize) -> u32 {
        self.response[index].load(Ordering::Relaxed)
    }
}

/// Every command of the workloads.
struct Commands {
    create: Prepared,
    resolve_addr: Prepared,
    resolve_route: Prepared,
    get_event: Prepared,
    destroy: Prepared,
}

impl Commands {
    fn prepare(target: Target) -> Self {
        let destination = SocketAddr::new(target.address, PORT).into();
        Self {
            create: Prepared::new(&CreateId::new(1, PortSpace::TCP, QpType::RC)),
            resolve_addr: Prepared::new(&ResolveAddr::new(0, None, destination, TIMEOUT_MS)),
            resolve_route: Prepared::new(&ResolveRoute::new(0, TIMEOUT_MS)),
            get_event: Prepared::new(&GetEvent::new()),
            destroy: Prepared::new(&DestroyId::new(0)),
        }
    }

    /// Creates an id and prepares the other commands for it.
    fn create(&mut self, device: &File) -> anyhow::Result<()> {
        self.create.write(device)?;
        let id = self.create.word(0);
        self.resolve_addr.set_id(0, id);
        self.resolve_route.set_id(0, id);
        self.destroy.set_id(8, id);
        Ok(())
    }

    /// Waits for an event, in the kernel.
    fn expect(&self, device: &File, number: EventNumber) -> anyhow::Result<()> {
        self.get_event.write(device)?;
        let event = self.get_event.word(3);
        ensure!(
            event == number.number(),
            "event {event} instead of {number:?}"
        );
        Ok(())
    }

    fn resolve_and_destroy(&mut self, device: &File) -> anyhow::Result<()> {
        self.create(device)?;
        self.resolve_addr.write(device)?;
        self.expect(device, EventNumber::ADDR_RESOLVED)?;
        self.resolve_route.write(device)?;
        self.expect(device, EventNumber::ROUTE_RESOLVED)?;
        self.destroy.write(device)
    }
}

fn open() -> anyhow::Result<File> {
    Ok(File::options().read(true).write(true).open(DEVICE)?)
}

fn id(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let (device, mut commands) = (open()?, Commands::prepare(target));
    commands.resolve_and_destroy(&device)?;
    meter.section(count.into(), || {
        (0..count).try_for_each(|_| commands.resolve_and_destroy(&device))
    })
}

fn create(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let (device, mut commands) = (open()?, Commands::prepare(target));
    for _ in 0..count {
        meter.section(1, || commands.create(&device))?;
        commands.destroy.write(&device)?;
    }
    Ok(())
}

fn destroy(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let (device, mut commands) = (open()?, Commands::prepare(target));
    for _ in 0..count {
        commands.create(&device)?;
        meter.section(1, || commands.destroy.write(&device))?;
    }
    Ok(())
}

fn event(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let (device, mut commands) = (open()?, Commands::prepare(target));
    for _ in 0..count {
        commands.create(&device)?;
        commands.resolve_addr.write(&device)?;
        meter.section(1, || commands.expect(&device, EventNumber::ADDR_RESOLVED))?;
    }
    Ok(())
}

/// With a file of its own for each id.
fn resolve_numeric(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let mut commands = Commands::prepare(target);
    let mut one = || commands.resolve_and_destroy(&open()?);
    one()?;
    meter.section(count.into(), || (0..count).try_for_each(|_| one()))
}
