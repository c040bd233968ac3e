//! Running C tools.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rdmacm_tests::PATIENCE;
use serde_json::Value;

use crate::command::built;
use crate::rdma_core::RdmaCore;

/// Whether the guest has the tool.
pub(crate) fn installed(name: &str) -> bool {
    RdmaCore::System.tool(name).exists()
}

/// A running tool, killed when dropped.
pub(crate) struct Tool {
    child: Child,
    lines: Receiver<Line>,
    /// The printed lines that were read.
    printed: Vec<String>,
    /// Those of the standard output.
    output: Vec<String>,
}

/// The state of a process in interruptible sleep (proc(5)).
const ASLEEP: &str = "S";

/// A line of a tool's output.
enum Line {
    Output(String),
    Error(String),
}

/// A tool that has exited.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    printed: Vec<String>,
    output: Vec<String>,
}

impl Tool {
    /// Starts it; its lines are read as they are printed.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_of(RdmaCore::System, name, arguments)
    }

    /// Like [`start`](Self::start), for the tool of this rdma-core.
    pub(crate) fn start_of(rdma_core: RdmaCore, name: &str, arguments: &[&str]) -> Self {
        let mut tool = Command::new("/usr/bin/stdbuf");
        tool.args(["-oL", "-eL"]).arg(rdma_core.tool(name));
        Self::spawn(tool.args(arguments))
    }

    /// Starts the `rdmacm` command.
    pub(crate) fn rdmacm(arguments: &[&str]) -> Self {
        Self::spawn(Command::new(built("rdmacm")).args(arguments))
    }

    /// Starts a tool of the system with the libraries of this rdma-core.
    pub(crate) fn start_with(rdma_core: RdmaCore, name: &str, arguments: &[&str]) -> Self {
        Self::spawn(rdma_core.system_tool(name).args(arguments))
    }

    /// Starts the `rdmacm` command with this input, and this output, which is not kept.
    pub(crate) fn rdmacm_on(
        arguments: &[&str],
        input: impl Into<Stdio>,
        output: impl Into<Stdio>,
    ) -> Self {
        let mut command = Command::new(built("rdmacm"));
        Self::spawn_on(command.args(arguments), input.into(), output.into())
    }

    fn spawn(command: &mut Command) -> Self {
        Self::spawn_on(command, Stdio::null(), Stdio::piped())
    }

    /// Starts a command with this input, and this output, which is read if it is piped.
    pub(crate) fn spawn_on(command: &mut Command, input: Stdio, output: Stdio) -> Self {
        let mut child = command
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            read(output, sender.clone(), Line::Output);
        }
        read(child.stderr.take().unwrap(), sender, Line::Error);
        Self {
            child,
            lines,
            printed: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Waits for a line with this prefix.
    pub(crate) fn wait_for(&mut self, beginning: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|end| panic!("{end}: no {beginning:?}"));
            if self.keep(line).starts_with(beginning) {
                return;
            }
        }
    }

    /// Waits for its exit.
    pub(crate) fn finish(self) -> Ended {
        self.finish_within(PATIENCE)
    }

    /// Like [`end`](Self::end), with a longer timeout.
    pub(crate) fn finish_within(mut self, patience: Duration) -> Ended {
        self.read_to_the_end(patience);
        self.ended()
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    /// Sends SIGINT, and waits until the process, which blocks it, has read it.
    pub(crate) fn interrupt_and_wait(&self) {
        self.interrupt();
        let path = format!("/proc/{}/status", self.child.id());
        let until = Instant::now() + PATIENCE;
        let is_pending = || {
            let status = std::fs::read_to_string(&path).unwrap();
            let mut lines = status.lines();
            let pending = lines.find_map(|line| line.strip_prefix("ShdPnd:"));
            u64::from_str_radix(pending.unwrap().trim(), 16).unwrap() != 0
        };
        while is_pending() {
            assert!(Instant::now() < until, "it does not read SIGINT");
            std::thread::yield_now();
        }
    }

    /// Sends SIGINT until the process has ended.
    pub(crate) fn interrupt_until_ended(mut self) -> Ended {
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "SIGINT does not end it");
            self.interrupt();
            std::thread::sleep(Duration::from_millis(50));
        }
        self.read_to_the_end(PATIENCE);
        self.ended()
    }

    /// Stops the process.
    pub(crate) fn suspend(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Continues the process.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills the process.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// The state of its first thread, a letter (proc(5)).
    pub(crate) fn state(&self) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, behind_the_name) = stat.rsplit_once(") ").unwrap();
        behind_the_name.chars().take(1).collect()
    }

    /// Whether its first thread sleeps.
    pub(crate) fn is_asleep(&self) -> bool {
        self.state() == ASLEEP
    }

    /// Whether its first thread is in a command of the connection manager, a call of `write(2)`,
    /// as far as the kernel tells.
    pub(crate) fn is_in_command(&self) -> bool {
        let call = std::fs::read_to_string(format!("/proc/{}/syscall", self.child.id()));
        let call = call.unwrap_or_default();
        call.starts_with(&format!("{} ", libc::SYS_write))
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(process, signal).unwrap();
    }

    /// Kills a tool that does not exit by itself, and checks that it still ran.
    pub(crate) fn stop(mut self) -> Ended {
        assert_eq!(self.child.try_wait().unwrap(), None);
        self.child.kill().unwrap();
        self.read_to_the_end(PATIENCE);
        self.ended()
    }

    fn read_to_the_end(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.keep(line);
                }
                Err(end) => break assert!(Instant::now() < until, "{end}"),
            }
        }
    }

    fn keep(&mut self, line: Line) -> &str {
        let text = match line {
            Line::Output(text) => {
                self.output.push(text.clone());
                text
            }
            Line::Error(text) => text,
        };
        self.printed.push(text);
        self.printed.last().unwrap()
    }

    /// Its output is closed, so it is exiting.
    fn ended(&mut self) -> Ended {
        Ended {
            status: self.child.wait().unwrap(),
            printed: std::mem::take(&mut self.printed),
            output: std::mem::take(&mut self.output),
        }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        if std::thread::panicking() {
            while let Ok(line) = self.lines.try_recv() {
                self.keep(line);
            }
            let printed = self.printed.join("\n");
            let _ = writeln!(std::io::stderr(), "the tool printed:\n{printed}");
        }
        // A process that has exited is reaped; one that the kernel blocks is not waited
        // for.
        let _ = self.child.kill();
        let _ = self.child.try_wait();
    }
}

/// Forwards the lines of an output until it is closed.
fn read(pipe: impl Read + Send + 'static, lines: Sender<Line>, kind: fn(String) -> Line) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if lines.send(kind(line)).is_err() {
                break;
            }
        }
    });
}

impl Ended {
    /// Checks its exit status.
    pub(crate) fn assert_success(&self) {
        assert_eq!(self.status.code(), Some(0), "{:?}", self.printed);
    }

    /// Checks that it printed this line.
    pub(crate) fn assert_printed(&self, line: &str) {
        assert!(
            self.printed.iter().any(|one| one == line),
            "{:?}",
            self.printed
        );
    }

    /// Checks that it printed exactly these lines.
    pub(crate) fn assert_printed_all(&self, lines: &[&str]) {
        assert_eq!(self.printed, lines);
    }

    /// Checks that it printed a line with this text.
    pub(crate) fn assert_contains(&self, words: &str) {
        assert!(
            self.printed.iter().any(|one| one.contains(words)),
            "{:?}",
            self.printed
        );
    }

    /// Its output, which is one JSON document.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.output.join("\n")).unwrap()
    }

    /// The lines of its output.
    pub(crate) fn printed(&self) -> &[String] {
        &self.printed
    }
}
