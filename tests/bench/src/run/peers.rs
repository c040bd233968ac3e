//! The peers that run.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use anyhow::Context as _;

use crate::plan::Measure;
use crate::run::Device;
use crate::run::library::Library;
use crate::work::PeerKind;

/// A process that serves workloads, killed when dropped.
#[derive(Debug)]
struct Peer {
    process: Child,
    port: u16,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It has ended, unless it serves.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One peer for each library, device and kind, started when it is first needed.
#[derive(Debug)]
pub(crate) struct Peers {
    own: Library,
    running: HashMap<(String, String, PeerKind), Peer>,
}

impl Peers {
    /// `own` is this library.
    pub(crate) fn new(own: Library) -> Self {
        let running = HashMap::new();
        Self { own, running }
    }

    /// The port of the peer for this measure; 0 if it has none.
    pub(crate) fn port(
        &mut self,
        library: &Library,
        device: &Device,
        measure: &Measure,
    ) -> anyhow::Result<u16> {
        let kind = measure.workload()?.peer;
        if kind == PeerKind::None {
            return Ok(0);
        }
        let library = if measure.has_own_peer && !library.is_tcp() {
            &self.own
        } else {
            library
        };
        let key = (library.name.clone(), device.name.clone(), kind);
        if let Some(peer) = self.running.get(&key) {
            return Ok(peer.port);
        }
        let workload = library.workload(measure).context("a workload")?;
        let peer = start(library, device, workload)?;
        let port = peer.port;
        self.running.insert(key, peer);
        Ok(port)
    }
}

fn start(library: &Library, device: &Device, workload: &str) -> anyhow::Result<Peer> {
    let mut command = library.peer(workload, &device.address.to_string());
    let mut process = command
        .stdout(Stdio::piped())
        .spawn()
        .context("start a peer")?;
    let stdout = process.stdout.take().context("a peer's output")?;
    let mut peer = Peer { process, port: 0 };
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .context("read from a peer")?;
    peer.port = line.trim().parse().context("a peer's port")?;
    Ok(peer)
}
