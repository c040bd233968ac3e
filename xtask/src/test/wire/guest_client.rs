//! The operations and expectations of a test on one of its two guests.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use rdmacm_abi::EventNumber;
use rdmacm_init::{Answer, CmEvent, Step};

use super::soft_device::SoftDevice;
use super::test_context::TestContext;
use crate::guest::WireEnd;

/// How long a test waits for an answer or event that must come soon, a boot included.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Longer than any timeout of the kernel: the longest measured is 102 s.
const LATE_EVENT_TIMEOUT: Duration = Duration::from_secs(180);
/// The timeout of address resolution.
const RESOLVE_TIMEOUT_MS: u32 = 10_000;

/// One of the two guests, for one test.
#[derive(Clone, Copy)]
pub(super) struct GuestClient<'s> {
    context: TestContext<'s>,
    end: WireEnd,
}

/// A connection manager id in a guest.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuestId {
    /// The uid in its events.
    pub(super) uid: u64,
    /// The kernel's number of the id.
    pub(super) id: u32,
    /// The port, for a listener.
    pub(super) port: u16,
}

impl<'s> GuestClient<'s> {
    pub(super) const fn new(context: TestContext<'s>, end: WireEnd) -> Self {
        Self { context, end }
    }

    /// Sends a step without waiting for the answer, and returns its number.
    pub(super) fn send_step(self, step: Step) -> anyhow::Result<u64> {
        self.context
            .shared
            .pair
            .borrow_mut()
            .send_step(self.end, step)
    }

    /// Waits for the answer to a step.
    pub(super) async fn wait_for_answer(
        self,
        number: u64,
        timeout: Duration,
    ) -> anyhow::Result<Answer> {
        let what = format!("the answer of the {:?} guest", self.end);
        self.context
            .until(timeout, &what, |pair| pair.take_answer(self.end, number))
            .await
    }

    /// Executes a step and returns its answer.
    pub(super) async fn try_step(self, step: Step) -> anyhow::Result<Answer> {
        let number = self.send_step(step)?;
        self.wait_for_answer(number, EVENT_TIMEOUT).await
    }

    /// Executes a step that must succeed.
    pub(super) async fn run_step(self, step: Step) -> anyhow::Result<()> {
        let description = format!("{step:?}");
        match self.try_step(step).await? {
            Answer::Done => Ok(()),
            answer => bail!("{description} in the {:?} guest: {answer:?}", self.end),
        }
    }

    /// Runs a shell command line.
    pub(super) async fn run_shell(self, line: String) -> anyhow::Result<()> {
        self.run_step(Step::Run { line }).await
    }

    /// Waits for the next event of this id.
    async fn next_event(self, id: GuestId, timeout: Duration) -> anyhow::Result<CmEvent> {
        let what = format!("an event of the {:?} guest", self.end);
        self.context
            .until(timeout, &what, |pair| pair.take_event(self.end, id.uid))
            .await
    }

    /// Waits for the next event of this id, which must have this kind and status.
    pub(super) async fn expect_event(
        self,
        id: GuestId,
        kind: EventNumber,
        status: i32,
    ) -> anyhow::Result<CmEvent> {
        self.expect_event_within(EVENT_TIMEOUT, id, kind, status)
            .await
    }

    /// Waits for the next event of this id, which must come after the kernel's retries: no
    /// sooner than `at_least` after `began`.
    pub(super) async fn expect_late_event(
        self,
        began: Instant,
        at_least: Duration,
        id: GuestId,
        kind: EventNumber,
        status: i32,
    ) -> anyhow::Result<()> {
        self.expect_event_within(LATE_EVENT_TIMEOUT, id, kind, status)
            .await?;
        let elapsed = began.elapsed();
        ensure!(
            elapsed >= at_least,
            "{kind:?} {status} came after {elapsed:?}, expected at least {at_least:?}"
        );
        Ok(())
    }

    async fn expect_event_within(
        self,
        timeout: Duration,
        id: GuestId,
        kind: EventNumber,
        status: i32,
    ) -> anyhow::Result<CmEvent> {
        let event = match self.next_event(id, timeout).await {
            Ok(event) => event,
            Err(error) => bail!("{error:#}; expected {kind:?} {status}"),
        };
        let actual = (EventNumber::new(event.kind), event.status);
        let end = self.end;
        ensure!(
            actual == (kind, status),
            "the {end:?} guest received {actual:?} {:?}, expected {kind:?} {status}",
            event.data
        );
        Ok(event)
    }

    /// Checks that no event of this id has arrived.
    pub(super) async fn expect_no_event(self, id: GuestId) -> anyhow::Result<()> {
        // The program writes pending events before it answers.
        self.run_shell("true".to_owned()).await?;
        let mut pair = self.context.shared.pair.borrow_mut();
        match pair.take_event(self.end, id.uid)? {
            None => Ok(()),
            Some(event) => bail!(
                "the {:?} guest received {event:?}, expected no event",
                self.end
            ),
        }
    }

    /// A uid that no other id has.
    fn new_uid(self) -> u64 {
        self.context.shared.unique_number().into()
    }

    /// The other guest.
    const fn peer(self) -> Self {
        match self.end {
            WireEnd::Near => self.context.far(),
            WireEnd::Far => self.context.near(),
        }
    }

    /// Its IPv4 address.
    pub(super) fn address(self, port: u16) -> SocketAddr {
        self.context.device.v4(self.end, port)
    }

    /// Its IPv6 address.
    pub(super) fn address_v6(self, port: u16) -> SocketAddr {
        self.context.device.v6(self.end, port)
    }

    /// Adds a permanent neighbor entry for the other guest, so that its address resolves while
    /// it does not answer.
    pub(super) async fn add_permanent_neighbor(self) -> anyhow::Result<()> {
        let device = self.context.device;
        let (ip, interface) = (self.peer().address(0).ip(), device.interface());
        let mac = device.mac_address(self.peer().end);
        self.run_shell(format!(
            "ip neighbour replace {ip} lladdr {mac} dev {interface} nud permanent"
        ))
        .await
    }

    /// Makes a TCP handshake time out after a few seconds instead of two minutes.
    pub(super) async fn shorten_tcp_connect(self) -> anyhow::Result<()> {
        self.run_shell("echo 1 > /proc/sys/net/ipv4/tcp_syn_retries".to_owned())
            .await
    }

    /// Creates an id.
    pub(super) async fn create_id(self) -> anyhow::Result<GuestId> {
        let uid = self.new_uid();
        match self.try_step(Step::Create { uid }).await? {
            Answer::Created(id) => Ok(GuestId { uid, id, port: 0 }),
            answer => bail!("no id in the {:?} guest: {answer:?}", self.end),
        }
    }

    /// Returns the number of a new queue pair. On rxe, which does not check the number, there
    /// is no queue pair.
    pub(super) async fn create_queue_pair(self) -> anyhow::Result<u32> {
        if self.context.device == SoftDevice::Rxe {
            return Ok(0x10_0000 + u32::from(self.context.shared.unique_number()));
        }
        let device = self.context.device.name().to_owned();
        match self.try_step(Step::QueuePair { device }).await? {
            Answer::Created(number) => Ok(number),
            answer => bail!("no queue pair in the {:?} guest: {answer:?}", self.end),
        }
    }

    /// Creates an id that listens on a port that no other test uses.
    pub(super) async fn listen(self) -> anyhow::Result<GuestId> {
        self.listen_on_port(self.context.shared.unique_number())
            .await
    }

    /// Creates an id that listens on this port.
    pub(super) async fn listen_on_port(self, port: u16) -> anyhow::Result<GuestId> {
        self.listen_on(self.address(port)).await
    }

    /// Creates an id that listens on this address.
    pub(super) async fn listen_on(self, address: SocketAddr) -> anyhow::Result<GuestId> {
        let listener = GuestId {
            port: address.port(),
            ..self.create_id().await?
        };
        let id = listener.id;
        self.run_step(Step::Bind { id, address }).await?;
        self.run_step(Step::Listen { id }).await?;
        Ok(listener)
    }

    /// Creates an id and resolves this port of the other guest: address and route.
    pub(super) async fn resolve_port(self, port: u16) -> anyhow::Result<GuestId> {
        self.resolve(self.peer().address(port)).await
    }

    /// Creates an id and resolves this address and its route.
    pub(super) async fn resolve(self, address: SocketAddr) -> anyhow::Result<GuestId> {
        let active = self.create_id().await?;
        let id = active.id;
        self.run_step(Step::ResolveAddr {
            id,
            address,
            timeout_ms: RESOLVE_TIMEOUT_MS,
        })
        .await?;
        self.expect_event(active, EventNumber::ADDR_RESOLVED, 0)
            .await?;
        self.run_step(Step::ResolveRoute { id }).await?;
        self.expect_event(active, EventNumber::ROUTE_RESOLVED, 0)
            .await?;
        Ok(active)
    }

    /// Connects with a new queue pair.
    pub(super) async fn connect(self, id: GuestId, data: &str) -> anyhow::Result<()> {
        let qp_number = self.create_queue_pair().await?;
        self.run_step(connect_step(id, qp_number, data)).await
    }

    /// Waits for the next connect request. The new id has no uid of its own before it is
    /// accepted.
    pub(super) async fn expect_request(self, listener: GuestId) -> anyhow::Result<CmEvent> {
        self.expect_event(listener, EventNumber::CONNECT_REQUEST, 0)
            .await
    }

    /// Accepts a request with a new queue pair.
    pub(super) async fn accept(self, request: &CmEvent, data: &str) -> anyhow::Result<GuestId> {
        let qp_number = self.create_queue_pair().await?;
        self.accept_with(request, qp_number, data).await
    }

    /// Accepts a request with this queue pair.
    pub(super) async fn accept_with(
        self,
        request: &CmEvent,
        qp_number: u32,
        data: &str,
    ) -> anyhow::Result<GuestId> {
        let (uid, id) = (self.new_uid(), request.id);
        self.run_step(Step::Accept {
            id,
            uid,
            qp_number,
            data: data.to_owned(),
        })
        .await?;
        Ok(GuestId { uid, id, port: 0 })
    }

    /// Accepts a request that may have ended, and returns the answer.
    pub(super) async fn try_accept(self, request: &CmEvent) -> anyhow::Result<Answer> {
        let step = Step::Accept {
            id: request.id,
            uid: self.new_uid(),
            qp_number: self.create_queue_pair().await?,
            data: String::new(),
        };
        self.try_step(step).await
    }

    /// Connects, which must fail with this error number.
    pub(super) async fn expect_connect_errno(self, id: GuestId, errno: i32) -> anyhow::Result<()> {
        let qp_number = self.create_queue_pair().await?;
        let answer = self.try_step(connect_step(id, qp_number, "")).await?;
        let end = self.end;
        ensure!(
            answer == Answer::Errno(errno),
            "CONNECT in the {end:?} guest: {answer:?}, expected errno {errno}"
        );
        Ok(())
    }

    /// Waits for the acceptance on the active side and completes the handshake.
    pub(super) async fn finish_connect(self, id: GuestId) -> anyhow::Result<CmEvent> {
        match self.context.device {
            SoftDevice::Rxe => {
                let response = self
                    .expect_event(id, EventNumber::CONNECT_RESPONSE, 0)
                    .await?;
                self.run_step(Step::ReadyToUse { id: id.id }).await?;
                Ok(response)
            }
            SoftDevice::Siw => self.expect_event(id, EventNumber::ESTABLISHED, 0).await,
        }
    }
}

/// The step for `CONNECT`.
pub(super) fn connect_step(id: GuestId, qp_number: u32, data: &str) -> Step {
    Step::Connect {
        id: id.id,
        qp_number,
        data: data.to_owned(),
    }
}

impl TestContext<'_> {
    /// Connects the near guest to the far one and returns both ids.
    pub(super) async fn connect(self) -> anyhow::Result<(GuestId, GuestId)> {
        let listener = self.far().listen().await?;
        let active = self.near().resolve_port(listener.port).await?;
        self.near().connect(active, "").await?;
        let request = self.far().expect_request(listener).await?;
        let passive = self.far().accept(&request, "").await?;
        self.near().finish_connect(active).await?;
        self.far()
            .expect_event(passive, EventNumber::ESTABLISHED, 0)
            .await?;
        Ok((active, passive))
    }

    /// Disconnects a connection from the near guest.
    pub(super) async fn disconnect(self, active: GuestId, passive: GuestId) -> anyhow::Result<()> {
        let (near, far) = (self.near(), self.far());
        near.run_step(Step::Disconnect { id: active.id }).await?;
        far.expect_event(passive, EventNumber::DISCONNECTED, 0)
            .await?;
        if self.device == SoftDevice::Rxe {
            far.run_step(Step::Disconnect { id: passive.id }).await?;
        }
        near.expect_event(active, EventNumber::DISCONNECTED, 0)
            .await?;
        Ok(())
    }
}
