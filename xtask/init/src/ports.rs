//! The virtio-serial ports, which transfer raw bytes to and from the host.

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
/// How long to wait for the host to read the last report.
const HOST_TIMEOUT: Duration = Duration::from_secs(20);

/// The open ports.
pub(crate) struct Ports {
    /// The source of the command's standard input, until it is taken.
    pub(crate) stdin: Option<File>,
    control: File,
    /// The destination of the command's standard output.
    pub(crate) stdout: File,
    /// The destination of the command's standard error.
    pub(crate) stderr: File,
    host_disconnected: Option<Receiver<()>>,
}

impl Ports {
    /// Waits until the driver has created the ports, and opens them.
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
            host_disconnected: None,
        })
    }

    /// Powers the guest off when the host closes the control port or dies. Must be called after
    /// the first report: until the host is connected, a port reads as closed.
    pub(crate) fn power_off_on_host_disconnect(&mut self) -> anyhow::Result<()> {
        let mut control = self.control.try_clone().context("clone the control port")?;
        let (sender, host_disconnected) = channel();
        self.host_disconnected = Some(host_disconnected);
        thread::Builder::new()
            .name("host".to_owned())
            .spawn(move || {
                // The host sends nothing; the read ends when it disconnects.
                while matches!(control.read(&mut [0; 64]), Ok(1..)) {}
                drop(sender);
                let _ = reboot(RebootMode::RB_POWER_OFF);
            })?;
        Ok(())
    }

    /// Writes one line to the host.
    pub(crate) fn report(&mut self, report: &Report) -> anyhow::Result<()> {
        // In one write, so that the host never reads a part of a line.
        self.control
            .write_all(format!("{report}\n").as_bytes())
            .context("report to the host")
    }

    /// Waits until the host has received everything, which it shows by disconnecting.
    pub(crate) fn wait_for_host_disconnect(self) {
        if let Some(host_disconnected) = self.host_disconnected {
            // The guest powers off also after a timeout.
            let _ = host_disconnected.recv_timeout(HOST_TIMEOUT);
        }
    }
}

/// The device node of the port with this name.
fn find(name: PortName) -> Option<PathBuf> {
    fs::read_dir(CLASS).ok()?.flatten().find_map(|entry| {
        let text = fs::read_to_string(entry.path().join("name")).ok()?;
        let node = Path::new("/dev").join(entry.file_name());
        (text.trim_end() == name.as_str() && node.exists()).then_some(node)
    })
}
