//! The virtio-serial ports: raw bytes to the host, no terminal in between.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::reboot::{RebootMode, reboot};
use rdmacm_init::{PortName, Report};

use crate::watch::Watch;

const CLASS: &str = "/sys/class/virtio-ports";
/// How long the host may take to read a report before the guest ends anyway.
const PATIENCE: Duration = Duration::from_secs(20);

/// The open ports.
pub(crate) struct Ports {
    /// Where the command's standard input comes from; to be had once.
    pub(crate) stdin: Option<File>,
    control: File,
    /// Where the command's standard output goes.
    pub(crate) stdout: File,
    /// Where the command's standard error goes.
    pub(crate) stderr: File,
    host_left: Option<Receiver<()>>,
}

impl Ports {
    /// Waits for the ports, which the driver makes after its probe, and opens
    /// them.
    pub(crate) fn open(uevents: &Watch) -> anyhow::Result<Self> {
        let paths = uevents.until("the virtio-serial ports of the host", || {
            let paths = PortName::ALL.map(find);
            Ok(paths.iter().all(Option::is_some).then_some(paths))
        })?;
        let mut ports = paths.into_iter().flatten().map(|path| {
            let mut options = File::options();
            options.read(true).write(true);
            options
                .open(&path)
                .with_context(|| format!("open {}", path.display()))
        });
        let mut next = || ports.next().context("fewer ports than names")?;
        Ok(Self {
            stdin: Some(next()?),
            control: next()?,
            stdout: next()?,
            stderr: next()?,
            host_left: None,
        })
    }

    /// A guest whose host process died must not live on. Only after a first
    /// report: until the host is connected a port reads as if it had left.
    pub(crate) fn power_off_when_the_host_leaves(&mut self) -> anyhow::Result<()> {
        let mut control = self.control.try_clone().context("watch the host")?;
        let (gone, host_left) = channel();
        self.host_left = Some(host_left);
        thread::Builder::new()
            .name("host".to_owned())
            .spawn(move || {
                // Nothing but the end ever comes: the host hangs up.
                while matches!(control.read(&mut [0; 64]), Ok(1..)) {}
                drop(gone);
                let _ = reboot(RebootMode::RB_POWER_OFF);
            })?;
        Ok(())
    }

    /// Writes one line to the host.
    pub(crate) fn report(&mut self, report: &Report) -> anyhow::Result<()> {
        // In one write: half a line must never stand there alone.
        self.control
            .write_all(format!("{report}\n").as_bytes())
            .context("report to the host")
    }

    /// The last bytes are safe only when the host says so by hanging up.
    pub(crate) fn wait_for_the_host_to_leave(self) {
        if let Some(host_left) = self.host_left {
            // Either way there is nothing left to do but power off.
            let _ = host_left.recv_timeout(PATIENCE);
        }
    }
}

/// The device node of the port with this name.
fn find(name: PortName) -> Option<PathBuf> {
    fs::read_dir(CLASS).ok()?.flatten().find_map(|entry| {
        let told = fs::read_to_string(entry.path().join("name")).ok()?;
        let node = Path::new("/dev").join(entry.file_name());
        (told.trim_end() == name.as_str() && node.exists()).then_some(node)
    })
}
