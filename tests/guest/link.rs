//! RDMA devices that a test creates.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::panicking;

use rdmacm_core::CmAddr;
use rdmacm_tests::{Site, free_port};
use tokio::task::spawn_blocking;

/// An RDMA device on an interface of its own, which is removed when it is dropped.
pub(crate) struct Link {
    pub(crate) device: String,
    pub(crate) netdev: String,
    /// The interface's address, with port 0.
    pub(crate) address: CmAddr,
    removed: AtomicBool,
    /// The interfaces of a bond.
    slaves: Vec<String>,
}

pub(crate) fn run(command: &str) {
    assert!(succeeds(command), "{command}");
}

fn succeeds(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let status = Command::new(program).args(words).status();
    status.is_ok_and(|status| status.success())
}

fn veth(name: &str) {
    run(&format!("ip link add {name} type veth peer name {name}p"));
    run(&format!("ip link set {name}p up"));
}

impl Link {
    pub(crate) fn new(site: &Site) -> Self {
        let number = free_port();
        let netdev = format!("v{number}");
        veth(&netdev);
        Self::over(site, number, netdev, Vec::new())
    }

    /// On a bond of two interfaces, which has the hardware address of the active one.
    pub(crate) fn bonded(site: &Site) -> Self {
        let number = free_port();
        let netdev = format!("b{number}");
        let slaves = ["x", "y"].map(|which| format!("{which}{number}"));
        run(&format!(
            "ip link add {netdev} type bond mode active-backup fail_over_mac active miimon 100"
        ));
        for slave in &slaves {
            veth(slave);
            run(&format!("ip link set {slave} down"));
            run(&format!("ip link set {slave} master {netdev}"));
            run(&format!("ip link set {slave} up"));
        }
        Self::over(site, number, netdev, slaves.into())
    }

    fn over(site: &Site, number: u16, netdev: String, slaves: Vec<String>) -> Self {
        let kind = site.driver();
        let device = format!("{kind}{number}");
        let [high, low] = number.to_be_bytes();
        run(&format!("ip addr add 10.{high}.{low}.1/24 dev {netdev}"));
        run(&format!("ip link set {netdev} up"));
        if let Some(first) = slaves.first() {
            run(&format!(
                "ip link set {netdev} type bond active_slave {first}"
            ));
        }
        run(&format!(
            "rdma link add {device} type {kind} netdev {netdev}"
        ));
        Self {
            device,
            netdev,
            address: CmAddr::from(([10, high, low, 1], 0)),
            removed: AtomicBool::new(false),
            slaves,
        }
    }

    /// Its verbs node in sysfs.
    pub(crate) fn verbs_node(&self) -> PathBuf {
        let nodes = fs::read_dir("/sys/class/infiniband_verbs").unwrap();
        let mut nodes = nodes.map(|node| node.unwrap().path());
        let is_ours = |node: &PathBuf| {
            let device = fs::read_to_string(node.join("ibdev"));
            device.is_ok_and(|device| device.trim() == self.device)
        };
        nodes.find(is_ours).unwrap()
    }

    /// A site for the device.
    pub(crate) fn site(&self, like: &Site) -> Site {
        let Some(IpAddr::V4(v4)) = self.address.ip() else {
            panic!("{:?}", self.address);
        };
        Site {
            device: self.device.clone().leak(),
            netdev: self.netdev.clone().leak(),
            v4,
            ..*like
        }
    }

    /// Takes the interface down for as long as `work` takes: nothing is sent meanwhile.
    pub(crate) fn while_down<T>(&self, work: impl FnOnce() -> T) -> T {
        run(&format!("ip link set {} down", self.netdev));
        let done = work();
        run(&format!("ip link set {} up", self.netdev));
        done
    }

    pub(crate) fn remove_device(&self) {
        // Also if that fails, it is not tried again.
        self.removed.store(true, Ordering::Relaxed);
        run(&format!("rdma link del {}", self.device));
    }

    /// Removes the device while the caller's other tasks go on.
    pub(crate) async fn remove_device_beside_tasks(&self) {
        self.removed.store(true, Ordering::Relaxed);
        let removal = format!("rdma link del {}", self.device);
        spawn_blocking(move || run(&removal)).await.unwrap();
    }

    /// Another address of the interface's network, which no host has.
    pub(crate) fn neighbour(&self) -> Ipv4Addr {
        match self.address.ip() {
            Some(IpAddr::V4(ip)) => Ipv4Addr::from(u32::from(ip) + 8),
            other => panic!("{other:?}"),
        }
    }

    /// Makes a bond use its other interface.
    pub(crate) fn fail_over(&self) {
        let (bond, other) = (&self.netdev, &self.slaves[1]);
        run(&format!(
            "ip link set {bond} type bond active_slave {other}"
        ));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let device = format!("rdma link del {}", self.device);
        let device = (!self.removed.load(Ordering::Relaxed)).then_some(device);
        let interfaces = std::iter::once(&self.netdev).chain(&self.slaves);
        let interfaces = interfaces.map(|netdev| format!("ip link del {netdev}"));
        for removal in device.into_iter().chain(interfaces) {
            let is_done = succeeds(&removal);
            // A panic while a failed test unwinds would end the suite.
            assert!(is_done || panicking(), "{removal}");
        }
    }
}
