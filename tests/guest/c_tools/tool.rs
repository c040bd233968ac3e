//! A C tool at work.

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
    /// The lines that it has printed and that were read.
    printed: Vec<String>,
    /// Those of the standard output.
    output: Vec<String>,
}

/// A line that a tool printed.
enum Line {
    Output(String),
    Error(String),
}

/// A tool that has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    printed: Vec<String>,
    output: Vec<String>,
}

impl Tool {
    /// Starts it, with lines that come as they are printed.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_of(RdmaCore::System, name, arguments)
    }

    /// The same, of either rdma-core.
    pub(crate) fn start_of(rdma_core: RdmaCore, name: &str, arguments: &[&str]) -> Self {
        let mut tool = Command::new("/usr/bin/stdbuf");
        tool.args(["-oL", "-eL"]).arg(rdma_core.tool(name));
        Self::spawn(tool.args(arguments))
    }

    /// Starts the `rdmacm` command.
    pub(crate) fn rdmacm(arguments: &[&str]) -> Self {
        Self::spawn(Command::new(built("rdmacm")).args(arguments))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        read(child.stdout.take().unwrap(), sender.clone(), Line::Output);
        read(child.stderr.take().unwrap(), sender, Line::Error);
        Self {
            child,
            lines,
            printed: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Waits for a line that begins so.
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

    /// Waits until it ends by itself.
    pub(crate) fn finish(self) -> Ended {
        self.finish_within(PATIENCE)
    }

    /// The same, for one with much to do.
    pub(crate) fn finish_within(mut self, patience: Duration) -> Ended {
        self.read_to_the_end(patience);
        self.ended()
    }

    /// What Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    /// Stands still from now on.
    pub(crate) fn suspend(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Goes on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// The state of its first thread, a letter (proc(5)).
    pub(crate) fn state(&self) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, behind_the_name) = stat.rsplit_once(") ").unwrap();
        behind_the_name.chars().take(1).collect()
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(process, signal).unwrap();
    }

    /// Ends one that ends not by itself, and still ran.
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

    /// Its output is closed: it is as good as gone.
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
        // One that ended is gone, and one the kernel holds is not waited for.
        let _ = self.child.kill();
        let _ = self.child.try_wait();
    }
}

/// Sends on what the tool prints, until it closes its output.
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
    /// Checks that it succeeded.
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

    /// Checks that it printed these lines and no other.
    pub(crate) fn assert_printed_all(&self, lines: &[&str]) {
        assert_eq!(self.printed, lines);
    }

    /// Checks that it printed a line with these words.
    pub(crate) fn assert_contains(&self, words: &str) {
        assert!(
            self.printed.iter().any(|one| one.contains(words)),
            "{:?}",
            self.printed
        );
    }

    /// The JSON document that was all its output.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.output.join("\n")).unwrap()
    }

    /// The lines that it printed.
    pub(crate) fn printed(&self) -> &[String] {
        &self.printed
    }
}
