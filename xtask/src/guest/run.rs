//! A guest from its start to its end: what comes out of it, under a clock.

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
use crate::kernel::CHECKLIST;
use crate::terminal;

/// How long an emulated machine may take to power off.
const POWER_OFF: Duration = Duration::from_secs(20);
/// How long a guest in trouble may go on talking.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Chunks on their way to the user before the guest has to wait.
const BACKLOG: usize = 64;

/// Where the command's output goes.
pub(crate) struct Sinks<'a> {
    /// Takes its standard output.
    pub(crate) stdout: &'a mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    /// Takes its standard error.
    pub(crate) stderr: &'a mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
}

/// What a thread saw.
pub(super) enum Event {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Console(String),
    /// QEMU is gone: its console ended.
    Gone,
    Report(String),
}

/// Boots, runs the command, and says how it ended. With a terminal size, the
/// command gets this process's terminal.
pub(crate) fn run(
    guest: &Guest,
    machine: &Machine,
    argv: &[String],
    terminal: Option<WindowSize>,
    sinks: &mut Sinks<'_>,
) -> anyhow::Result<Ending> {
    let plan = guest.plan(argv, machine, terminal)?;
    let mut watched = Watched::start(&guest.boot(machine, &plan), machine.timeout)?;
    let ending = match watched.qemu.terminal.take() {
        Some(stream) => {
            let _raw = terminal::connect(stream)?;
            watched.until_ended(sinks)
        }
        None => watched.until_ended(sinks),
    };
    let ending = ending.map_err(|error| watched.explain(&error, guest.kernel.is_custom()))?;
    watched
        .power_off()
        .map_err(|error| watched.explain(&error, false))?;
    Ok(ending)
}

/// Boots and waits for the first word of the guest.
pub(crate) fn comes_up(boot: &Boot<'_>, limit: Duration) -> anyhow::Result<()> {
    let mut watched = Watched::start(boot, limit)?;
    loop {
        if let Event::Report(line) = watched.next()? {
            return match line.parse()? {
                Report::Up(_) => Ok(()),
                report => Err(anyhow!("unexpected: {report}")),
            };
        }
    }
}

/// A guest with a thread on each of its outlets.
pub(super) struct Watched {
    pub(super) qemu: Qemu,
    console: Console,
    events: Receiver<Event>,
    end: Instant,
    limit: Duration,
    stage: Stage,
    /// Bytes that came of the command's standard output and error.
    heard: (u64, u64),
    /// How the command ended and how many bytes there were, once it has.
    ended: Option<(Ending, (u64, u64))>,
}

/// How far it came.
#[derive(Clone, Copy)]
enum Stage {
    Boot,
    Setup,
    Command,
    Over,
}

impl Watched {
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
            qemu,
            console,
            events,
            end,
            limit,
            stage: Stage::Boot,
            heard: (0, 0),
            ended: None,
        })
    }

    /// The next thing that is not the console's; trouble there is an error.
    fn next(&mut self) -> anyhow::Result<Event> {
        let event = self.next_by(self.end)?;
        event.ok_or_else(|| self.late())
    }

    /// The same, none when it has not come in time.
    pub(super) fn next_by(&mut self, by: Instant) -> anyhow::Result<Option<Event>> {
        loop {
            let left = self.end.min(by).saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Console(line)) => {
                    if self.console.take(&line) {
                        // The reason is being printed: leave it a moment.
                        self.end = self.end.min(Instant::now() + LAST_WORDS);
                    }
                }
                Ok(Event::Gone) | Err(RecvTimeoutError::Disconnected) => return Err(self.lost()),
                Ok(event) => return Ok(Some(event)),
                Err(RecvTimeoutError::Timeout) if self.end <= by => return Err(self.late()),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
            }
        }
    }

    pub(super) fn until_ended(&mut self, sinks: &mut Sinks<'_>) -> anyhow::Result<Ending> {
        loop {
            let event = self.next()?;
            if let Some(ending) = self.take(event, sinks)? {
                return Ok(ending);
            }
        }
    }

    /// Does what is to be done about an event; the command's end, once all it
    /// wrote is there.
    pub(super) fn take(
        &mut self,
        event: Event,
        sinks: &mut Sinks<'_>,
    ) -> anyhow::Result<Option<Ending>> {
        match event {
            Event::Stdout(bytes) => {
                self.heard.0 += u64::try_from(bytes.len())?;
                (sinks.stdout)(&bytes)?;
            }
            Event::Stderr(bytes) => {
                self.heard.1 += u64::try_from(bytes.len())?;
                (sinks.stderr)(&bytes)?;
            }
            Event::Report(line) => match line.parse()? {
                Report::Up(_) => {
                    self.stage = Stage::Setup;
                    self.qemu.remove_files();
                }
                Report::Ready => self.stage = Stage::Command,
                Report::Failed(reason) => bail!("trouble {}: {reason}", self.stage.when()),
                Report::Ended {
                    ending,
                    stdout,
                    stderr,
                } => {
                    self.stage = Stage::Over;
                    self.ended = Some((ending, (stdout, stderr)));
                }
            },
            Event::Console(_) | Event::Gone => {}
        }
        // The ports are separate: the end may overtake the last bytes.
        let all_heard = |&(_, written): &(_, _)| written == self.heard;
        Ok(self.ended.filter(all_heard).map(|(ending, _)| ending))
    }

    /// Hangs up, which tells the guest to go, and watches it go: trouble on
    /// the way out is trouble as well.
    pub(super) fn power_off(&mut self) -> anyhow::Result<()> {
        self.qemu
            .control
            .shutdown(Shutdown::Both)
            .context("hang up")?;
        let limit = Instant::now() + POWER_OFF;
        while let Ok(event) = self
            .events
            .recv_timeout(limit.saturating_duration_since(Instant::now()))
        {
            match event {
                Event::Console(line) => {
                    self.console.take(&line);
                }
                Event::Gone => break,
                _ => {}
            }
        }
        match self.console.trouble() {
            Some(trouble) => bail!("{trouble} while the guest powered off"),
            None if Instant::now() >= limit => bail!("the guest did not power off"),
            None => Ok(()),
        }
    }

    fn lost(&self) -> anyhow::Error {
        match self.console.trouble() {
            Some(trouble) => anyhow!("{trouble} {}", self.stage.when()),
            None => anyhow!("the guest was lost {}: QEMU ended", self.stage.when()),
        }
    }

    fn late(&self) -> anyhow::Error {
        match self.console.trouble() {
            Some(trouble) => anyhow!("{trouble} {}", self.stage.when()),
            None => anyhow!(
                "the wall-clock limit of {} s ended the guest {}",
                self.limit.as_secs(),
                self.stage.when()
            ),
        }
    }

    /// An error with everything that helps to understand it.
    pub(super) fn explain(&self, error: &anyhow::Error, checklist: bool) -> anyhow::Error {
        // Writing to a string never fails.
        let mut text = format!("{error:#}");
        let complaints = self.qemu.process.complaints();
        if !complaints.is_empty() {
            let _ = write!(text, "\nQEMU: {complaints}");
        }
        let _ = write!(text, "\n{}", self.console);
        if checklist && matches!(self.stage, Stage::Boot | Stage::Setup) {
            let _ = write!(text, "\n{CHECKLIST}");
        }
        anyhow!(text)
    }
}

impl Stage {
    const fn when(self) -> &'static str {
        match self {
            Self::Boot => "while it booted",
            Self::Setup => "while it was set up",
            Self::Command => "while the command ran",
            Self::Over => "after the command's end",
        }
    }
}

// Each thread ends when QEMU does, or when nobody listens any more.

fn read_console(from: impl Read + Send + 'static, to: SyncSender<Event>) -> anyhow::Result<()> {
    spawn("console", move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if to.send(Event::Console(line)).is_err() {
                return;
            }
        }
        let _ = to.send(Event::Gone);
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
