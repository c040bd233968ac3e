//! Running the command: its output to the host's ports, its end as a report.

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

/// The virtual console that is somebody's terminal.
const TERMINAL: &str = "/dev/hvc0";

/// Runs the command with pipes that are copied to the ports as they fill.
/// A driven one has its standard input from a port.
pub(crate) fn run(mut command: Command, driven: bool, ports: &mut Ports) -> anyhow::Result<Report> {
    let stdin = ports.stdin.take().filter(|_| driven);
    command
        .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = start(&mut command)?;
    let ended = reap_until(Pid::from_raw(i32::try_from(child.id())?))?;

    let mut stdout = Relay::new(child.stdout.take(), &mut ports.stdout)?;
    let mut stderr = Relay::new(child.stderr.take(), &mut ports.stderr)?;
    while !wait_for_output(&stdout, &stderr, &ended.pipe)? {
        stdout.copy()?;
        stderr.copy()?;
    }
    // What is in the pipes now is all that counts: a process left behind may
    // hold them open for ever.
    stdout.copy()?;
    stderr.copy()?;
    Ok(Report::Ended {
        ending: ended.how()?,
        stdout: stdout.bytes,
        stderr: stderr.bytes,
    })
}

/// Runs the command with the terminal for its controlling one.
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
    let ended = reap_until(Pid::from_raw(i32::try_from(child.id())?))?;
    Ok(Report::Ended {
        ending: ended.how()?,
        stdout: 0,
        stderr: 0,
    })
}

fn start(command: &mut Command) -> anyhow::Result<std::process::Child> {
    command
        .spawn()
        .with_context(|| format!("start {}", command.get_program().to_string_lossy()))
}

/// The end of one process: the pipe hangs up when it comes.
struct Ended {
    pipe: OwnedFd,
    ending: Receiver<Ending>,
}

impl Ended {
    fn how(&self) -> anyhow::Result<Ending> {
        self.ending
            .recv()
            .context("the command vanished without an end")
    }
}

/// Collects every dead process, as the first process must, until this one.
fn reap_until(pid: Pid) -> anyhow::Result<Ended> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).context("pipe")?;
    let (tell, ending) = channel();
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
                // The receiver outlives this thread's interest in it.
                let _ = tell.send(end);
            }
            drop(write);
        })?;
    Ok(Ended { pipe: read, ending })
}

/// One stream on its way from the command to a port.
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

    /// Copies what is there, without waiting for more.
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

/// Sleeps until there is output; true when the command is over.
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
