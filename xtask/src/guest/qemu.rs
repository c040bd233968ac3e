//! QEMU's command line, and the sockets to the guest's ports.

use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_init::{Plan, PortName, ROOT_TAG, Share};
use tempfile::TempDir;

use crate::guest::monitor::Monitor;
use crate::guest::{Accelerator, initramfs};
use crate::kernel::Kernel;

pub(crate) const PROGRAM: &str = "qemu-system-x86_64";
/// A higher level slows the boot down.
const LOG_LEVEL: u8 = 5;

/// The configuration of a guest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boot<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) init: &'a Path,
    pub(crate) accelerator: Accelerator,
    pub(crate) memory: u32,
    /// The MAC addresses of its network cards.
    pub(crate) mac_addresses: &'a [&'a str],
    pub(crate) plan: &'a Plan,
}

/// A running QEMU with every port connected.
#[derive(Debug)]
pub(crate) struct Qemu {
    pub(crate) process: Process,
    /// The monitor, which stops and resumes the guest.
    pub(crate) monitor: Monitor,
    /// The sockets of the network cards, in order.
    pub(crate) cards: Vec<UnixStream>,
    /// The command's standard input.
    pub(crate) stdin: UnixStream,
    /// The guest's reports.
    pub(crate) control: UnixStream,
    pub(crate) stdout: UnixStream,
    pub(crate) stderr: UnixStream,
    /// The guest's virtual terminal, if the plan has one.
    pub(crate) terminal: Option<UnixStream>,
    /// The initramfs and the sockets' names, until the guest has booted.
    files: Option<TempDir>,
}

impl Qemu {
    /// Starts QEMU and connects every port.
    pub(crate) fn start(boot: &Boot<'_>) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("rdmacm-")
            .tempdir()
            .context("a folder")?;
        let initrd = folder.path().join("initramfs");
        let file = BufWriter::new(File::create(&initrd).context("make the initramfs")?);
        initramfs::write(file, boot.init, boot.kernel, boot.plan.clone())?;

        // QEMU is killed when this process ends, however it ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", PROGRAM]);
        command.args(machine(boot, &initrd));
        let job = boot.plan.job.as_ref();
        command.args(exports(job.map_or(&[], |job| &job.shares), job.is_some()));
        let mut port = |port: PortName| {
            let listener = Listener::bind(&folder, port.as_str())?;
            command.args(listener.port(port));
            anyhow::Ok(listener)
        };
        // In the order of `PortName::ALL`.
        let stdin = port(PortName::Stdin)?;
        let control = port(PortName::Control)?;
        let stdout = port(PortName::Stdout)?;
        let stderr = port(PortName::Stderr)?;
        let terminal = match job.and_then(|job| job.terminal) {
            Some(_) => Some(Listener::bind(&folder, "terminal")?),
            None => None,
        };
        if let Some(listener) = &terminal {
            command.args(listener.console());
        }
        let monitor = Listener::bind(&folder, "monitor")?;
        command.args(monitor.monitor());
        let mut cards = Vec::new();
        for (number, address) in boot.mac_addresses.iter().enumerate() {
            let listener = Listener::bind(&folder, &format!("card{number}"))?;
            command.args(listener.card(address));
            cards.push(listener);
        }
        let process = Process::start(command)?;
        let cards = cards.iter().map(|listener| process.accept(listener));
        Ok(Self {
            cards: cards.collect::<anyhow::Result<_>>()?,
            monitor: Monitor::new(process.accept(&monitor)?)?,
            stdin: process.accept(&stdin)?,
            control: process.accept(&control)?,
            stdout: process.accept(&stdout)?,
            stderr: process.accept(&stderr)?,
            terminal: terminal
                .map(|listener| process.accept(&listener))
                .transpose()?,
            process,
            files: Some(folder),
        })
    }

    /// Removes the files that only the start needs, so that an interrupted run leaves no files.
    pub(crate) fn remove_files(&mut self) {
        self.files = None;
    }
}

/// The QEMU process, killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stderr: File,
}

impl Process {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        let stderr = tempfile::tempfile().context("make QEMU's log")?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(stderr.try_clone().context("share QEMU's log")?);
        let child = command
            .spawn()
            .with_context(|| format!("start {PROGRAM}"))?;
        Ok(Self { child, stderr })
    }

    /// Takes the output of the guest's serial port.
    pub(crate) fn console(&mut self) -> anyhow::Result<ChildStdout> {
        self.child
            .stdout
            .take()
            .context("the console was taken before")
    }

    /// QEMU's standard error.
    pub(crate) fn stderr(&self) -> String {
        let mut bytes = vec![0; 8192];
        let length = self.stderr.read_at(&mut bytes, 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..length]).trim().to_owned()
    }

    /// Accepts QEMU's connection. QEMU connects before the guest runs; if QEMU fails, its standard
    /// output closes.
    fn accept(&self, listener: &Listener) -> anyhow::Result<UnixStream> {
        let console = self
            .child
            .stdout
            .as_ref()
            .context("the console was taken before")?;
        let mut waiting = [
            PollFd::new(listener.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(console.as_fd(), PollFlags::empty()),
        ];
        poll(&mut waiting, PollTimeout::NONE).context("wait for QEMU")?;
        if !waiting[0].any().unwrap_or(false) {
            bail!("{PROGRAM} did not start: {}", self.stderr());
        }
        let (stream, _) = listener.socket.accept().context("connect to QEMU")?;
        Ok(stream)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // QEMU may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A socket that QEMU connects to.
struct Listener {
    name: String,
    path: PathBuf,
    socket: UnixListener,
}

impl Listener {
    fn bind(folder: &TempDir, name: &str) -> anyhow::Result<Self> {
        let path = folder.path().join(name);
        let socket = UnixListener::bind(&path)
            .with_context(|| format!("make the socket {}", path.display()))?;
        socket
            .set_nonblocking(true)
            .context("a socket that does not block")?;
        Ok(Self {
            name: name.to_owned(),
            path,
            socket,
        })
    }

    fn character_device(&self) -> OsString {
        let mut option = OsString::from(format!("socket,id={},path=", self.name));
        option.push(value(&self.path));
        option
    }

    fn port(&self, port: PortName) -> [OsString; 4] {
        let name = port.as_str();
        let device = format!("virtserialport,chardev={name},name={name}");
        [
            "-chardev".into(),
            self.character_device(),
            "-device".into(),
            device.into(),
        ]
    }

    fn monitor(&self) -> [OsString; 4] {
        let device = format!("chardev={},mode=control", self.name);
        [
            "-chardev".into(),
            self.character_device(),
            "-mon".into(),
            device.into(),
        ]
    }

    /// A network card that sends and receives its frames through this socket.
    fn card(&self, address: &str) -> [OsString; 4] {
        let name = &self.name;
        let mut wire = OsString::from(format!("stream,id={name},server=off,addr.type=unix,"));
        wire.push("addr.path=");
        wire.push(value(&self.path));
        // The guest does not boot from it, so it needs no boot ROM.
        let device = format!("virtio-net-pci,netdev={name},mac={address},romfile=");
        ["-netdev".into(), wire, "-device".into(), device.into()]
    }

    fn console(&self) -> [OsString; 4] {
        let device = format!("virtconsole,chardev={}", self.name);
        [
            "-chardev".into(),
            self.character_device(),
            "-device".into(),
            device.into(),
        ]
    }
}

/// Processor, memory, kernel, and the serial port, which connects the kernel's console to QEMU's
/// standard output.
///
/// rxe of later kernels waits for an RCU grace period when memory is deregistered, which takes
/// about 10 ms without `rcu_expedited`.
fn machine(boot: &Boot<'_>, initrd: &Path) -> Vec<OsString> {
    let arguments = format!(
        "console=ttyS0 loglevel={LOG_LEVEL} panic=-1 oops=panic softlockup_panic=1 \
         hung_task_panic=1 random.trust_cpu=on dummy.numdummies=0 bonding.max_bonds=0 \
         rcupdate.rcu_expedited=1 {}",
        boot.accelerator.arguments()
    );
    let processors = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(4);
    let mut options: Vec<OsString> = ["-nodefaults", "-no-user-config", "-no-reboot"]
        .into_iter()
        .chain(["-display", "none", "-serial", "stdio"])
        .chain(boot.accelerator.options().iter().copied())
        .map(OsString::from)
        .collect();
    for (name, value) in [
        ("-smp", processors.to_string().into()),
        ("-m", format!("{}M", boot.memory).into()),
        ("-kernel", boot.kernel.image.clone().into_os_string()),
        ("-initrd", initrd.into()),
        ("-append", arguments.into()),
        ("-device", OsString::from("virtio-serial-pci")),
    ] {
        options.extend([name.into(), value]);
    }
    options
}

/// A path as an option's value, in which commas are doubled.
fn value(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes().split(|byte| *byte == b',');
    OsString::from_vec(bytes.collect::<Vec<_>>().join(&b",,"[..]))
}

/// The host's root, if there is a job, and the shares.
fn exports(shares: &[Share], root: bool) -> Vec<OsString> {
    let root = root.then(|| (ROOT_TAG, Path::new("/")));
    let shares = shares
        .iter()
        .map(|share| (share.tag.as_str(), share.path.as_path()));
    let mut options = Vec::new();
    for (tag, path) in root.into_iter().chain(shares) {
        let mut export = OsString::from(format!(
            "local,id={tag},security_model=none,readonly=on,multidevs=remap,path="
        ));
        export.push(value(path));
        let device = format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}");
        options.extend(["-fsdev".into(), export, "-device".into(), device.into()]);
    }
    options
}
