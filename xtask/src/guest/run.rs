//! Runs a guest from boot to power-off, with a timeout.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use rdmacm_init::{Ending, Report, WindowSize};

use crate::guest::console::Console;
use crate::guest::qemu::{Boot, Qemu};
use crate::guest::{Guest, Machine};
use crate::kernel::{CHECKLIST, Kernel};
use crate::terminal;

/// How long an emulated machine may take to power off on a busy host.
const POWER_OFF: Duration = Duration::from_secs(120);
/// How long to read the console of a kernel that failed.
const FAILURE_OUTPUT: Duration = Duration::from_secs(3);
/// The number of buffered events, beyond which the guest has to wait.
const BACKLOG: usize = 64;

/// Receivers of the command's output.
pub(crate) struct Sinks<'a> {
    /// Receives its standard output.
    pub(crate) stdout: &'a mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    /// Receives its standard error.
    pub(crate) stderr: &'a mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
}

/// An event of the guest, read by a thread.
pub(super) enum Event {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Console(String),
    /// QEMU ended, which closes the console.
    QemuEnded,
    Report(String),
}

/// Boots, runs the command, and returns how it ended. With a terminal size, the command gets
/// this process's terminal.
pub(crate) fn run(
    guest: &Guest,
    machine: &Machine,
    argv: &[String],
    terminal: Option<WindowSize>,
    sinks: &mut Sinks<'_>,
) -> anyhow::Result<Ending> {
    let plan = guest.plan(argv, machine, terminal)?;
    let mut monitored = MonitoredGuest::start(&guest.boot(machine, &plan), machine.timeout)?;
    let ending = match monitored.qemu.terminal.take() {
        Some(stream) => {
            let _raw = terminal::connect(stream)?;
            monitored.until_ended(sinks)
        }
        None => monitored.until_ended(sinks),
    };
    let ending = ending.map_err(|error| monitored.explain(&error, guest.kernel.is_custom()))?;
    monitored
        .power_off()
        .map_err(|error| monitored.explain(&error, false))?;
    Ok(ending)
}

/// Boots and waits for the guest's first report.
pub(crate) fn boots(boot: &Boot<'_>, limit: Duration) -> anyhow::Result<()> {
    let mut monitored = MonitoredGuest::start(boot, limit)?;
    loop {
        if let Event::Report(line) = monitored.next()? {
            return match line.parse()? {
                Report::Up(release) => boot.kernel.check_booted(&release),
                report => Err(anyhow!("unexpected report: {report}")),
            };
        }
    }
}

/// A running guest, with a thread that reads each of its outputs.
pub(super) struct MonitoredGuest {
    kernel: Kernel,
    pub(super) qemu: Qemu,
    console: Console,
    events: Receiver<Event>,
    end: Instant,
    limit: Duration,
    phase: Phase,
    /// The number of bytes received of the command's standard output and error.
    received: (u64, u64),
    /// How the command ended and how many bytes it wrote, once it has ended.
    ended: Option<(Ending, (u64, u64))>,
}

/// The progress of a guest.
#[derive(Clone, Copy)]
enum Phase {
    Boot,
    Setup,
    Command,
    Ended,
}

impl MonitoredGuest {
    pub(super) fn start(boot: &Boot<'_>, limit: Duration) -> anyhow::Result<Self> {
        let mut qemu = Qemu::start(boot)?;
        let (sender, events) = sync_channel(BACKLOG);
        let console = qemu.process.console()?;
        read_console(console, sender.clone())?;
        read_bytes(&qemu.stdout, sender.clone(), Event::Stdout)?;
        read_bytes(&qemu.stderr, sender.clone(), Event::Stderr)?;
        read_reports(&qemu.control, sender)?;
        let end = Instant::now() + limit;
        let console = Console::default();
        Ok(Self {
            kernel: boot.kernel.clone(),
            qemu,
            console,
            events,
            end,
            limit,
            phase: Phase::Boot,
            received: (0, 0),
            ended: None,
        })
    }

    /// Returns the next event that is not of the console. Fails if the guest failed.
    fn next(&mut self) -> anyhow::Result<Event> {
        let event = self.next_until(self.end)?;
        event.ok_or_else(|| self.timed_out())
    }

    /// As [`Self::next`], but returns `None` after `deadline`.
    pub(super) fn next_until(&mut self, deadline: Instant) -> anyhow::Result<Option<Event>> {
        loop {
            let end = self.end.min(deadline);
            let left = end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Console(line)) => {
                    if self.console.add_line(&line) {
                        // Wait until the kernel has printed the details.
                        self.end = self.end.min(Instant::now() + FAILURE_OUTPUT);
                    }
                }
                Ok(Event::QemuEnded) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.lost());
                }
                Ok(event) => return Ok(Some(event)),
                Err(RecvTimeoutError::Timeout) if self.end <= deadline => {
                    return Err(self.timed_out());
                }
                Err(RecvTimeoutError::Timeout) => return Ok(None),
            }
        }
    }

    pub(super) fn until_ended(&mut self, sinks: &mut Sinks<'_>) -> anyhow::Result<Ending> {
        loop {
            let event = self.next()?;
            if let Some(ending) = self.handle(event, sinks)? {
                return Ok(ending);
            }
        }
    }

    /// Handles an event. Returns how the command ended, once all its output has been received.
    pub(super) fn handle(
        &mut self,
        event: Event,
        sinks: &mut Sinks<'_>,
    ) -> anyhow::Result<Option<Ending>> {
        match event {
            Event::Stdout(bytes) => {
                self.received.0 += u64::try_from(bytes.len())?;
                (sinks.stdout)(&bytes)?;
            }
            Event::Stderr(bytes) => {
                self.received.1 += u64::try_from(bytes.len())?;
                (sinks.stderr)(&bytes)?;
            }
            Event::Report(line) => match line.parse()? {
                Report::Up(release) => {
                    self.kernel.check_booted(&release)?;
                    self.phase = Phase::Setup;
                    self.qemu.remove_files();
                }
                Report::Ready => self.phase = Phase::Command,
                Report::Failed(reason) => bail!("the guest failed {}: {reason}", self.phase.when()),
                Report::Ended {
                    ending,
                    stdout,
                    stderr,
                } => {
                    self.phase = Phase::Ended;
                    self.ended = Some((ending, (stdout, stderr)));
                }
            },
            Event::Console(_) | Event::QemuEnded => {}
        }
        // The ports are separate: the report may arrive before the last bytes.
        let complete = |&(_, written): &(_, _)| written == self.received;
        Ok(self.ended.filter(complete).map(|(ending, _)| ending))
    }

    /// Closes the control port, upon which the guest powers off, and waits for the end of QEMU.
    /// Fails if the kernel fails meanwhile.
    pub(super) fn power_off(&mut self) -> anyhow::Result<()> {
        self.qemu
            .control
            .shutdown(Shutdown::Both)
            .context("close the control port")?;
        let mut limit = Instant::now() + POWER_OFF;
        let has_ended = loop {
            let left = limit.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Console(line)) => {
                    if self.console.add_line(&line) {
                        // A kernel that failed may never power off.
                        limit = limit.min(Instant::now() + FAILURE_OUTPUT);
                    }
                }
                Ok(Event::QemuEnded) | Err(RecvTimeoutError::Disconnected) => break true,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => break false,
            }
        };
        match self.console.failure() {
            Some(failure) => bail!("{failure} while the guest powered off"),
            None if has_ended => Ok(()),
            None => bail!("the guest did not power off"),
        }
    }

    fn lost(&self) -> anyhow::Error {
        match self.console.failure() {
            Some(failure) => anyhow!("{failure} {}", self.phase.when()),
            None => anyhow!("the guest was lost {}: QEMU ended", self.phase.when()),
        }
    }

    fn timed_out(&self) -> anyhow::Error {
        match self.console.failure() {
            Some(failure) => anyhow!("{failure} {}", self.phase.when()),
            None => anyhow!(
                "the wall-clock limit of {} s ended the guest {}",
                self.limit.as_secs(),
                self.phase.when()
            ),
        }
    }

    /// Adds QEMU's errors and the end of the console to an error.
    pub(super) fn explain(&self, error: &anyhow::Error, checklist: bool) -> anyhow::Error {
        // Writing to a string never fails.
        let mut text = format!("{error:#}");
        let stderr = self.qemu.process.stderr();
        if !stderr.is_empty() {
            let _ = write!(text, "\nQEMU: {stderr}");
        }
        let _ = write!(text, "\n{}", self.console);
        if checklist && matches!(self.phase, Phase::Boot | Phase::Setup) {
            let _ = write!(text, "\n{CHECKLIST}");
        }
        anyhow!(text)
    }
}

impl Phase {
    const fn when(self) -> &'static str {
        match self {
            Self::Boot => "while it booted",
            Self::Setup => "while it was set up",
            Self::Command => "while the command ran",
            Self::Ended => "after the command's end",
        }
    }
}

// Each thread ends when QEMU ends or when the receiver is dropped.

fn read_console(from: impl Read + Send + 'static, to: SyncSender<Event>) -> anyhow::Result<()> {
    spawn("console", move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if to.send(Event::Console(line)).is_err() {
                return;
            }
        }
        let _ = to.send(Event::QemuEnded);
    })
}

fn read_bytes(
    from: &UnixStream,
    to: SyncSender<Event>,
    wrap: fn(Vec<u8>) -> Event,
) -> anyhow::Result<()> {
    let mut from = from.try_clone().context("share a port")?;
    spawn("output", move || {
        let mut buffer = [0; 16384];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if to.send(wrap(buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    })
}

fn read_reports(from: &UnixStream, to: SyncSender<Event>) -> anyhow::Result<()> {
    let from = from.try_clone().context("share a port")?;
    spawn("reports", move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if to.send(Event::Report(line)).is_err() {
                return;
            }
        }
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .context("start a thread")?;
    Ok(())
}
