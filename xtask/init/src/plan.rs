//! The instructions for a guest.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The path of the plan in the initramfs.
pub const PLAN_PATH: &str = "/plan.json";

/// The 9p mount tag of the host's root.
pub const ROOT_TAG: &str = "root";

/// What a guest does, written by the host as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Kernel modules in the order they are loaded, as paths in the initramfs.
    pub modules: Vec<PathBuf>,
    /// What to run after the boot; `None` if the guest only boots.
    pub job: Option<Job>,
}

/// A command, and the file systems and network that it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Host directories to mount, in addition to the root.
    pub shares: Vec<Share>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// All its environment variables.
    pub environment: Vec<(String, String)>,
    /// Its working directory.
    pub directory: PathBuf,
    /// The size of its terminal; without one it has pipes.
    pub terminal: Option<WindowSize>,
    /// Whether the host writes to its standard input. Otherwise a command without a terminal has
    /// an empty input.
    pub interactive: bool,
    /// The network, set up before the command starts.
    pub network: Network,
}

/// A host directory exported over 9p.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The 9p mount tag.
    pub tag: String,
    /// The path on the host and in the guest.
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
    /// RDMA devices that must exist afterwards.
    pub devices: Vec<String>,
    /// The guest's `/etc/hosts`.
    pub hosts: String,
}

/// The virtio-serial ports between host and guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortName {
    /// The command's standard input.
    Stdin,
    /// [`Report`](crate::Report) lines to the host, which closes the port to power the guest off.
    Control,
    /// The command's standard output.
    Stdout,
    /// The command's standard error.
    Stderr,
}

impl PortName {
    /// Every port, in the order in which QEMU adds them. The guest sees the host's connections in
    /// this order: once the control port is connected, standard input is as well, and does not
    /// read as closed.
    pub const ALL: [Self; 4] = [Self::Stdin, Self::Control, Self::Stdout, Self::Stderr];

    /// The port's name in sysfs.
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
