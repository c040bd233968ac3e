//! One side of a story: what its guest does and sees.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use rdmacm_abi::EventNumber;
use rdmacm_init::{Answer, CmEvent, Step};

use super::soft::Soft;
use super::stage::Scene;
use crate::guest::Station;

/// How long a story waits for what must happen soon, a boot included.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longer than any timeout of the kernel's: 102 s is the longest seen.
const LONG: Duration = Duration::from_secs(180);
/// How long the kernel may look for a neighbour.
const RESOLVE_TIMEOUT_MS: u32 = 10_000;

/// A guest, as one story sees it.
#[derive(Clone, Copy)]
pub(super) struct Side<'s> {
    scene: Scene<'s>,
    station: Station,
}

/// An id of one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    /// What its events carry.
    pub(super) uid: u64,
    /// The kernel's number.
    pub(super) id: u32,
    /// A listener's port.
    pub(super) port: u16,
}

impl<'s> Side<'s> {
    pub(super) const fn new(scene: Scene<'s>, station: Station) -> Self {
        Self { scene, station }
    }

    /// Tells the guest a step without waiting for the answer.
    pub(super) fn order(self, step: Step) -> anyhow::Result<u64> {
        self.scene.stage.pair.borrow_mut().order(self.station, step)
    }

    /// Waits for the answer to an order.
    pub(super) async fn answer(self, order: u64, within: Duration) -> anyhow::Result<Answer> {
        let what = format!("the {:?} guest's answer", self.station);
        self.scene
            .until(within, &what, |pair| pair.answer(self.station, order))
            .await
    }

    /// Carries a step out; its answer.
    pub(super) async fn ask(self, step: Step) -> anyhow::Result<Answer> {
        let order = self.order(step)?;
        self.answer(order, PATIENCE).await
    }

    /// Carries out a step that succeeds.
    pub(super) async fn does(self, step: Step) -> anyhow::Result<()> {
        let told = format!("{step:?}");
        match self.ask(step).await? {
            Answer::Done => Ok(()),
            answer => bail!("{told} in the {:?} guest: {answer:?}", self.station),
        }
    }

    /// Runs a command line of the shell.
    pub(super) async fn runs(self, line: String) -> anyhow::Result<()> {
        self.does(Step::Run { line }).await
    }

    /// The next event of this id.
    async fn happening(self, id: Handle, within: Duration) -> anyhow::Result<CmEvent> {
        let what = format!("the {:?} guest's event", self.station);
        self.scene
            .until(within, &what, |pair| pair.happening(self.station, id.uid))
            .await
    }

    /// The next event of this id, which is of this kind and has this status.
    pub(super) async fn sees(
        self,
        id: Handle,
        kind: EventNumber,
        status: i32,
    ) -> anyhow::Result<CmEvent> {
        self.sees_within(PATIENCE, id, kind, status).await
    }

    /// The same when it comes late, and not before the kernel has been patient
    /// with a silent peer for so long since it `asked`.
    pub(super) async fn sees_late(
        self,
        asked: Instant,
        patient: Duration,
        id: Handle,
        kind: EventNumber,
        status: i32,
    ) -> anyhow::Result<()> {
        self.sees_within(LONG, id, kind, status).await?;
        let after = asked.elapsed();
        ensure!(
            after >= patient,
            "{kind:?} {status} came after {after:?} already, not after {patient:?}"
        );
        Ok(())
    }

    async fn sees_within(
        self,
        within: Duration,
        id: Handle,
        kind: EventNumber,
        status: i32,
    ) -> anyhow::Result<CmEvent> {
        let happening = match self.happening(id, within).await {
            Ok(happening) => happening,
            Err(error) => bail!("{error:#}; it was to be {kind:?} {status}"),
        };
        let seen = (EventNumber::new(happening.kind), happening.status);
        let station = self.station;
        ensure!(
            seen == (kind, status),
            "the {station:?} guest saw {seen:?} {:?}, not {kind:?} {status}",
            happening.data
        );
        Ok(happening)
    }

    /// Nothing has happened to this id.
    pub(super) async fn sees_nothing(self, id: Handle) -> anyhow::Result<()> {
        // An answer comes after the events that were there before it.
        self.runs("true".to_owned()).await?;
        let mut pair = self.scene.stage.pair.borrow_mut();
        match pair.happening(self.station, id.uid)? {
            None => Ok(()),
            Some(happening) => bail!("the {:?} guest saw {happening:?}", self.station),
        }
    }

    /// A uid that nobody has.
    fn uid(self) -> u64 {
        self.scene.stage.number().into()
    }

    /// The other side.
    const fn other(self) -> Self {
        match self.station {
            Station::Near => self.scene.far(),
            Station::Far => self.scene.near(),
        }
    }

    /// Its IPv4 address.
    pub(super) fn address(self, port: u16) -> SocketAddr {
        self.scene.soft.v4(self.station, port)
    }

    /// Its IPv6 address.
    pub(super) fn address_v6(self, port: u16) -> SocketAddr {
        self.scene.soft.v6(self.station, port)
    }

    /// The other's hardware address needs no asking any more.
    pub(super) async fn knows_the_other_for_ever(self) -> anyhow::Result<()> {
        let soft = self.scene.soft;
        let (ip, interface) = (self.other().address(0).ip(), soft.interface());
        let hardware = soft.hardware(self.other().station);
        self.runs(format!(
            "ip neighbour replace {ip} lladdr {hardware} dev {interface} nud permanent"
        ))
        .await
    }

    /// The other may be dead for long: TCP's handshake is to end after a few
    /// seconds instead of two minutes.
    pub(super) async fn gives_tcp_up_early(self) -> anyhow::Result<()> {
        self.runs("echo 1 > /proc/sys/net/ipv4/tcp_syn_retries".to_owned())
            .await
    }

    /// A new id.
    pub(super) async fn id(self) -> anyhow::Result<Handle> {
        let uid = self.uid();
        match self.ask(Step::Create { uid }).await? {
            Answer::Made(id) => Ok(Handle { uid, id, port: 0 }),
            answer => bail!("no id in the {:?} guest: {answer:?}", self.station),
        }
    }

    /// A queue pair's number: of none at all on rxe, which never looks.
    pub(super) async fn queue_pair(self) -> anyhow::Result<u32> {
        if self.scene.soft == Soft::Rxe {
            return Ok(0x10_0000 + u32::from(self.scene.stage.number()));
        }
        let device = self.scene.soft.device().to_owned();
        match self.ask(Step::QueuePair { device }).await? {
            Answer::Made(number) => Ok(number),
            answer => bail!("no queue pair in the {:?} guest: {answer:?}", self.station),
        }
    }

    /// An id that listens, on a port of its own.
    pub(super) async fn listener(self) -> anyhow::Result<Handle> {
        self.listener_at(self.scene.stage.number()).await
    }

    /// An id that listens on this port.
    pub(super) async fn listener_at(self, port: u16) -> anyhow::Result<Handle> {
        self.listener_on(self.address(port)).await
    }

    /// An id that listens on this address.
    pub(super) async fn listener_on(self, address: SocketAddr) -> anyhow::Result<Handle> {
        let listener = Handle {
            port: address.port(),
            ..self.id().await?
        };
        let id = listener.id;
        self.does(Step::Bind { id, address }).await?;
        self.does(Step::Listen { id }).await?;
        Ok(listener)
    }

    /// An id on its way to this port of the other guest, as far as the route.
    pub(super) async fn on_its_way(self, port: u16) -> anyhow::Result<Handle> {
        self.on_its_way_to(self.other().address(port)).await
    }

    /// An id on its way to this address, as far as the route.
    pub(super) async fn on_its_way_to(self, address: SocketAddr) -> anyhow::Result<Handle> {
        let active = self.id().await?;
        let id = active.id;
        self.does(Step::ResolveAddr {
            id,
            address,
            timeout_ms: RESOLVE_TIMEOUT_MS,
        })
        .await?;
        self.sees(active, EventNumber::ADDR_RESOLVED, 0).await?;
        self.does(Step::ResolveRoute { id }).await?;
        self.sees(active, EventNumber::ROUTE_RESOLVED, 0).await?;
        Ok(active)
    }

    /// Connects with a queue pair of its own.
    pub(super) async fn connects(self, id: Handle, data: &str) -> anyhow::Result<()> {
        let qp_number = self.queue_pair().await?;
        self.does(connect(id, qp_number, data)).await
    }

    /// The request that a listener sees next; its id has no uid before it is
    /// accepted.
    pub(super) async fn requested(self, listener: Handle) -> anyhow::Result<CmEvent> {
        self.sees(listener, EventNumber::CONNECT_REQUEST, 0).await
    }

    /// Accepts a request.
    pub(super) async fn accepts(self, request: &CmEvent, data: &str) -> anyhow::Result<Handle> {
        let qp_number = self.queue_pair().await?;
        self.accepts_with(request, qp_number, data).await
    }

    /// Accepts a request with this queue pair.
    pub(super) async fn accepts_with(
        self,
        request: &CmEvent,
        qp_number: u32,
        data: &str,
    ) -> anyhow::Result<Handle> {
        let (uid, id) = (self.uid(), request.id);
        self.does(Step::Accept {
            id,
            uid,
            qp_number,
            data: data.to_owned(),
        })
        .await?;
        Ok(Handle { uid, id, port: 0 })
    }

    /// Accepts a request that may be gone; the answer.
    pub(super) async fn tries_to_accept(self, request: &CmEvent) -> anyhow::Result<Answer> {
        let step = Step::Accept {
            id: request.id,
            uid: self.uid(),
            qp_number: self.queue_pair().await?,
            data: String::new(),
        };
        self.ask(step).await
    }

    /// Connects, which the kernel refuses with this error number.
    pub(super) async fn is_refused(self, id: Handle, errno: i32) -> anyhow::Result<()> {
        let qp_number = self.queue_pair().await?;
        let answer = self.ask(connect(id, qp_number, "")).await?;
        let station = self.station;
        ensure!(
            answer == Answer::Refused(errno),
            "CONNECT in the {station:?} guest: {answer:?}, not errno {errno}"
        );
        Ok(())
    }

    /// The end of connecting, as the active side sees it.
    pub(super) async fn is_connected(self, id: Handle) -> anyhow::Result<CmEvent> {
        match self.scene.soft {
            Soft::Rxe => {
                let response = self.sees(id, EventNumber::CONNECT_RESPONSE, 0).await?;
                self.does(Step::ReadyToUse { id: id.id }).await?;
                Ok(response)
            }
            Soft::Siw => self.sees(id, EventNumber::ESTABLISHED, 0).await,
        }
    }
}

/// A `CONNECT`.
pub(super) fn connect(id: Handle, qp_number: u32, data: &str) -> Step {
    Step::Connect {
        id: id.id,
        qp_number,
        data: data.to_owned(),
    }
}

impl Scene<'_> {
    /// A connection of the near guest with the far one: both its ids.
    pub(super) async fn connection(self) -> anyhow::Result<(Handle, Handle)> {
        let listener = self.far().listener().await?;
        let active = self.near().on_its_way(listener.port).await?;
        self.near().connects(active, "").await?;
        let request = self.far().requested(listener).await?;
        let passive = self.far().accepts(&request, "").await?;
        self.near().is_connected(active).await?;
        self.far()
            .sees(passive, EventNumber::ESTABLISHED, 0)
            .await?;
        Ok((active, passive))
    }

    /// The near guest ends a connection, and the far one agrees.
    pub(super) async fn parts(self, active: Handle, passive: Handle) -> anyhow::Result<()> {
        let (near, far) = (self.near(), self.far());
        near.does(Step::Disconnect { id: active.id }).await?;
        far.sees(passive, EventNumber::DISCONNECTED, 0).await?;
        if self.soft == Soft::Rxe {
            far.does(Step::Disconnect { id: passive.id }).await?;
        }
        near.sees(active, EventNumber::DISCONNECTED, 0).await?;
        Ok(())
    }
}
