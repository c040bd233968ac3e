//! The fabric that hosts share.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm_core::ServiceRecord;

use crate::adapter::Adapter;
use crate::host::Host;
use crate::host_state::HostState;
use crate::random::Random;
use crate::sim_state::SharedState;

/// A fabric of hosts, with its subnet administrator and its clock.
///
/// A clone is the same fabric.
#[derive(Clone, Debug)]
pub struct Fabric {
    state: Arc<SharedState>,
}

/// How the subnet administrator responds to queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubnetAdmin {
    /// It answers by what is registered.
    #[default]
    Answers,
    /// It refuses every query; the kernel reports `EINVAL`.
    Refuses,
    /// It does not respond; the kernel reports `ETIMEDOUT` in the end.
    Silent,
}

impl Default for Fabric {
    fn default() -> Self {
        Self::new()
    }
}

impl Fabric {
    /// A fabric without hosts and services, on which messages take no time and are
    /// never lost.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Arc::new(SharedState::new()),
        }
    }

    /// A fabric of hosts with these names. Each has a RoCE device `rxe0` with an
    /// address of IPv4 and one of IPv6: the first `10.0.0.1` and `fd00::1`, the second
    /// `10.0.0.2` and `fd00::2`, and so on.
    #[must_use]
    pub fn roce<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self::with_hosts(names, || Adapter::roce("rxe0"))
    }

    /// The same with an iWARP device `siw0` on each host.
    ///
    /// Connections need an x86 or x86-64 processor: they need a queue pair, and `rdmacm_verbs` has
    /// siw's driver on these processors only. On any other, opening a device fails with
    /// [`Error::Driver`](rdmacm_verbs::Error::Driver).
    #[must_use]
    pub fn iwarp<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self::with_hosts(names, || Adapter::iwarp("siw0"))
    }

    fn with_hosts<N: Into<String>>(
        names: impl IntoIterator<Item = N>,
        adapter: impl Fn() -> Adapter,
    ) -> Self {
        const V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
        const V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0);
        let fabric = Self::new();
        for (number, name) in (1..).zip(names) {
            let adapter = adapter()
                .address(Ipv4Addr::from_bits(V4.to_bits() | number))
                .address(Ipv6Addr::from_bits(V6.to_bits() | u128::from(number)));
            fabric.add(name.into(), vec![adapter]);
        }
        fabric
    }

    /// Seeds what is random: lost messages and packet sequence numbers. Runs with the
    /// same seed and the same calls are the same; the seed is 0 otherwise.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.state.change(|state| state.random = Random::new(seed));
        self
    }

    /// Adds a host with these devices, all of whose ports are on the fabric.
    #[must_use]
    pub fn host(&self, adapters: impl IntoIterator<Item = Adapter>) -> Host {
        self.add(String::new(), adapters.into_iter().collect())
    }

    fn add(&self, name: String, adapters: Vec<Adapter>) -> Host {
        let index = self.state.change(|state| {
            for port in adapters.iter().flat_map(|adapter| &adapter.ports) {
                state.subnet.attach(port.clone());
            }
            let index = state.hosts.len();
            state.hosts.push(HostState::new(index, name, adapters));
            index
        });
        Host::new(Arc::clone(&self.state), index)
    }

    /// The host that [`roce`](Self::roce) or [`iwarp`](Self::iwarp) has given this name;
    /// `None` if there is none.
    #[must_use]
    pub fn find_host(&self, name: &str) -> Option<Host> {
        let state = self.state.lock();
        let index = state.hosts.iter().position(|host| host.name == name)?;
        drop(state);
        Some(Host::new(Arc::clone(&self.state), index))
    }

    /// Registers a service with the subnet administrator.
    pub fn register_service(&self, service: ServiceRecord) {
        self.state
            .change(|state| state.subnet.services.push(service));
    }

    /// Sets how the subnet administrator responds from now on.
    pub fn set_subnet_admin(&self, subnet_admin: SubnetAdmin) {
        self.state.change(|state| state.subnet.admin = subnet_admin);
    }

    /// Sets how long the subnet administrator takes to respond from now on.
    pub fn set_subnet_admin_delay(&self, delay: Duration) {
        self.state.change(|state| state.subnet.delay = delay);
    }

    /// Sets how long each message takes from host to host from now on.
    pub fn set_delay(&self, delay: Duration) {
        self.state.change(|state| state.network.delay = delay);
    }

    /// Loses this many of 100 messages from now on, at random. Those of iWARP are not
    /// lost: TCP sends them again.
    pub fn set_loss(&self, percent: u8) {
        self.state.change(|state| state.network.loss = percent);
    }

    /// Sets for how long a thread that has never used the fabric, such as one of another
    /// test, may compute while nothing happens on the fabric, before a wait moves the
    /// fabric's clock all the same. It is 20 ms of processor time otherwise. A thread that
    /// has used the fabric and does not sleep may compute fifty times as long.
    pub fn set_idle_time(&self, time: Duration) {
        self.state.change(|state| state.waits.idle_time = time);
    }

    /// The current time of the fabric's clock, which all of its hosts share.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.state.lock().clock.now()
    }

    /// How much simulated time has passed since the fabric was created.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.state.lock().clock.elapsed()
    }

    /// Moves the clock, and does what is due meanwhile.
    pub fn advance(&self, time: Duration) {
        let mut state = self.state.lock();
        if let Some(end) = state.clock.now().checked_add(time) {
            state.advance_to(end);
        }
    }
}
