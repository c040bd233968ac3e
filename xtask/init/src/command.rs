//! Runs the command, forwards its output to the host's ports, and reports how it ended.

use std::fs::File;
use std::io::{ErrorKind, Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::Context as _;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::{Pid, pipe2};
use rdmacm_init::{Ending, Report, WindowSize};

use crate::ports::Ports;

/// The virtual console that is connected to the user's terminal.
const TERMINAL: &str = "/dev/hvc0";

/// Runs the command with pipes whose content is copied to the ports. An interactive command has
/// a port as its standard input.
pub(crate) fn run(
    mut command: Command,
    interactive: bool,
    ports: &mut Ports,
) -> anyhow::Result<Report> {
    let stdin = ports.stdin.take().filter(|_| interactive);
    command
        .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = start(&mut command)?;
    let child_end = reap_until(Pid::from_raw(i32::try_from(child.id())?))?;

    let mut stdout = Relay::new(child.stdout.take(), &mut ports.stdout)?;
    let mut stderr = Relay::new(child.stderr.take(), &mut ports.stderr)?;
    while !wait_for_output(&stdout, &stderr, &child_end.pipe)? {
        stdout.copy()?;
        stderr.copy()?;
    }
    // Copy what is in the pipes, without waiting for their end: another process may still
    // have them open.
    stdout.copy()?;
    stderr.copy()?;
    Ok(Report::Ended {
        ending: child_end.ending()?,
        stdout: stdout.bytes,
        stderr: stderr.bytes,
    })
}

/// Runs the command with the terminal as its controlling terminal.
pub(crate) fn run_on_terminal(command: &Command, size: WindowSize) -> anyhow::Result<Report> {
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(TERMINAL)
        .context(TERMINAL)?;
    let stdio = || anyhow::Ok(Stdio::from(terminal.try_clone().context(TERMINAL)?));

    let mut stty = Command::new("/bin/stty");
    let (rows, columns) = (size.rows.to_string(), size.columns.to_string());
    stty.args(["sane", "rows", &rows, "cols", &columns])
        .stdin(stdio()?);
    start(&mut stty)?.wait().context("wait for stty")?;

    let mut leader = Command::new("/usr/bin/setsid");
    leader
        .args(["--ctty", "--wait"])
        .arg(command.get_program())
        .args(command.get_args());
    leader
        .env_clear()
        .stdin(stdio()?)
        .stdout(stdio()?)
        .stderr(stdio()?);
    leader.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    if let Some(directory) = command.get_current_dir() {
        leader.current_dir(directory);
    }
    let child = start(&mut leader)?;
    let child_end = reap_until(Pid::from_raw(i32::try_from(child.id())?))?;
    Ok(Report::Ended {
        ending: child_end.ending()?,
        stdout: 0,
        stderr: 0,
    })
}

fn start(command: &mut Command) -> anyhow::Result<std::process::Child> {
    command
        .spawn()
        .with_context(|| format!("start {}", command.get_program().to_string_lossy()))
}

/// The end of a process. The pipe is closed when the process has ended.
struct ChildEnd {
    pipe: OwnedFd,
    ending: Receiver<Ending>,
}

impl ChildEnd {
    fn ending(&self) -> anyhow::Result<Ending> {
        self.ending.recv().context("the command was not reaped")
    }
}

/// Reaps every child, as the first process must, until `pid` has ended.
fn reap_until(pid: Pid) -> anyhow::Result<ChildEnd> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).context("pipe")?;
    let (sender, ending) = channel();
    thread::Builder::new()
        .name("reaper".to_owned())
        .spawn(move || {
            let end = loop {
                match wait() {
                    Ok(WaitStatus::Exited(dead, code)) if dead == pid => {
                        break Some(Ending::Exit(u8::try_from(code & 0xff).unwrap_or(u8::MAX)));
                    }
                    Ok(WaitStatus::Signaled(dead, signal, _)) if dead == pid => {
                        break Some(Ending::Signal(
                            u8::try_from(signal as i32).unwrap_or(u8::MAX),
                        ));
                    }
                    Err(Errno::ECHILD) => break None,
                    _ => {}
                }
            };
            if let Some(end) = end {
                // The receiver may have been dropped after an error.
                let _ = sender.send(end);
            }
            drop(write);
        })?;
    Ok(ChildEnd { pipe: read, ending })
}

/// Copies an output stream of the command to a port.
struct Relay<'port> {
    from: Option<File>,
    to: &'port mut File,
    bytes: u64,
}

impl<'port> Relay<'port> {
    fn new(from: Option<impl Into<OwnedFd>>, to: &'port mut File) -> anyhow::Result<Self> {
        let from = File::from(from.context("the command has no pipe")?.into());
        fcntl(&from, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).context("unblock a pipe")?;
        Ok(Self {
            from: Some(from),
            to,
            bytes: 0,
        })
    }

    /// Copies the available bytes, without waiting for more.
    fn copy(&mut self) -> anyhow::Result<()> {
        let mut buffer = [0; 16384];
        while let Some(from) = &mut self.from {
            match from.read(&mut buffer) {
                Ok(0) => self.from = None,
                Ok(length) => {
                    self.to
                        .write_all(&buffer[..length])
                        .context("write to the host")?;
                    self.bytes += u64::try_from(length)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("read the command's output"),
            }
        }
        Ok(())
    }
}

/// Waits for output or the command's end. Returns whether the command has ended.
fn wait_for_output(
    stdout: &Relay<'_>,
    stderr: &Relay<'_>,
    ended: &OwnedFd,
) -> anyhow::Result<bool> {
    let mut waiting = vec![PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
    for relay in [stdout, stderr] {
        if let Some(from) = &relay.from {
            waiting.push(PollFd::new(from.as_fd(), PollFlags::POLLIN));
        }
    }
    match poll(&mut waiting, PollTimeout::NONE) {
        Ok(_) => Ok(waiting[0].any().unwrap_or(true)),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error).context("poll"),
    }
}
