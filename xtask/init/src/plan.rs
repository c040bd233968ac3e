//! The instructions for a guest.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the plan lies in the initramfs.
pub const PLAN_PATH: &str = "/plan.json";

/// The name by which the guest mounts the share of the host's root.
pub const ROOT_TAG: &str = "root";

/// One guest's whole life, written by the host as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Kernel modules in the order they are loaded, as paths in the initramfs.
    pub modules: Vec<PathBuf>,
    /// What to do once the guest stands; nothing, when it is only to come up.
    pub job: Option<Job>,
}

/// A command on the host's file system, between RDMA devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Host directories that must be visible, beyond the root itself.
    pub shares: Vec<Share>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Its working directory.
    pub directory: PathBuf,
    /// The size of the terminal it gets; without one it gets pipes.
    pub terminal: Option<WindowSize>,
    /// Whether the host writes its standard input; without a terminal it has
    /// none otherwise.
    pub driven: bool,
    /// The network that is made before it starts.
    pub network: Network,
}

/// A host directory exported over 9p.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The 9p mount tag.
    pub tag: String,
    /// The path it has on the host, and gets in the guest.
    pub path: PathBuf,
}

/// A terminal's size in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// The guest's network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Input of `ip -b`.
    pub links: String,
    /// Interfaces that get a link-local IPv6 address.
    pub interfaces: Vec<String>,
    /// Input of `rdma -b`.
    pub rdma: String,
    /// RDMA devices that must be there afterwards.
    pub devices: Vec<String>,
    /// The guest's `/etc/hosts`.
    pub hosts: String,
}

/// The virtio-serial ports between host and guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortName {
    /// The command's standard input.
    Stdin,
    /// [`Report`](crate::Report) lines out; closed by the host when it leaves.
    Control,
    /// The command's standard output.
    Stdout,
    /// The command's standard error.
    Stderr,
}

impl PortName {
    /// Every port, in the order they are plugged in. The guest learns that the
    /// host is connected to them in this order, so once the control port works,
    /// standard input does not read as if the host had left.
    pub const ALL: [Self; 4] = [Self::Stdin, Self::Control, Self::Stdout, Self::Stderr];

    /// The name as the guest finds it in sysfs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdin => "rdmacm.stdin",
            Self::Control => "rdmacm.control",
            Self::Stdout => "rdmacm.stdout",
            Self::Stderr => "rdmacm.stderr",
        }
    }
}
