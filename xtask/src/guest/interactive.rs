//! A guest whose command reads and writes lines.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rdmacm_init::Ending;

use crate::guest::run::{MonitoredGuest, Sinks};
use crate::guest::{Guest, Machine};

/// A running guest. Dropping it kills QEMU.
pub(crate) struct InteractiveGuest {
    monitored: MonitoredGuest,
    output: Output,
}

/// The output of the command.
#[derive(Default)]
struct Output {
    lines: VecDeque<String>,
    /// The beginning of an incomplete line.
    partial_line: Vec<u8>,
    stderr: Vec<u8>,
}

impl InteractiveGuest {
    /// Starts a guest, without waiting for its boot or for the command.
    pub(crate) fn start(guest: &Guest, machine: &Machine, argv: &[String]) -> anyhow::Result<Self> {
        let machine = Machine {
            interactive: true,
            ..machine.clone()
        };
        let plan = guest.plan(argv, &machine, None)?;
        Ok(Self {
            monitored: MonitoredGuest::start(&guest.boot(&machine, &plan), machine.timeout)?,
            output: Output::default(),
        })
    }

    /// Takes the sockets of its network cards, in order.
    pub(crate) fn take_cards(&mut self) -> Vec<UnixStream> {
        std::mem::take(&mut self.monitored.qemu.cards)
    }

    /// Writes a line to the command's standard input.
    pub(crate) fn write_line(&mut self, line: &str) -> anyhow::Result<()> {
        let written = self
            .monitored
            .qemu
            .stdin
            .write_all(format!("{line}\n").as_bytes());
        written
            .context("write to the guest's command")
            .map_err(|error| self.explain(&error))
    }

    /// Returns the next line of the command's output, `None` after the timeout.
    pub(crate) fn read_line(&mut self, timeout: Duration) -> anyhow::Result<Option<String>> {
        let deadline = Instant::now() + timeout;
        self.next_line(deadline)
            .map_err(|error| self.explain(&error))
    }

    fn next_line(&mut self, deadline: Instant) -> anyhow::Result<Option<String>> {
        loop {
            if let Some(line) = self.output.lines.pop_front() {
                return Ok(Some(line));
            }
            let Some(event) = self.monitored.next_until(deadline)? else {
                return Ok(None);
            };
            let ending = self
                .output
                .collect(|sinks| self.monitored.handle(event, sinks))?;
            if let Some(ending) = ending {
                return Err(anyhow!("the guest's command ended early: {ending:?}"));
            }
        }
    }

    /// Stops its processors and clocks.
    pub(crate) fn freeze(&mut self) -> anyhow::Result<()> {
        self.monitored.qemu.monitor.stop()
    }

    /// Lets it run again.
    pub(crate) fn resume(&mut self) -> anyhow::Result<()> {
        self.monitored.qemu.monitor.resume()
    }

    /// Closes the command's standard input, and waits until the command has ended and the guest
    /// is off.
    pub(crate) fn shut_down(mut self) -> anyhow::Result<()> {
        let ended = self.end_command();
        ended.map_err(|error| self.explain(&error))
    }

    fn end_command(&mut self) -> anyhow::Result<()> {
        let stdin = &self.monitored.qemu.stdin;
        stdin.shutdown(Shutdown::Both).context("end the command")?;
        match self
            .output
            .collect(|sinks| self.monitored.until_ended(sinks))?
        {
            Ending::Exit(0) => self.monitored.power_off(),
            ending => Err(anyhow!("the guest's command ended with {ending:?}")),
        }
    }

    fn explain(&self, error: &anyhow::Error) -> anyhow::Error {
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        let error = self.monitored.explain(error, false);
        match stderr.trim() {
            "" => error,
            stderr => anyhow!("{error:#}\nThe command's standard error: {stderr}"),
        }
    }
}

impl Output {
    /// Collects the output of the command during `operation`.
    fn collect<T>(&mut self, operation: impl FnOnce(&mut Sinks<'_>) -> T) -> T {
        let Self {
            lines,
            partial_line,
            stderr,
        } = self;
        operation(&mut Sinks {
            stdout: &mut |bytes| {
                partial_line.extend_from_slice(bytes);
                while let Some(end) = partial_line.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = partial_line.drain(..=end).collect();
                    lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
                }
                Ok(())
            },
            stderr: &mut |bytes| Ok(stderr.write_all(bytes)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_are_returned() {
        let mut output = Output::default();
        for piece in ["on", "e\ntwo\nth", "ree\n"] {
            output
                .collect(|sinks| (sinks.stdout)(piece.as_bytes()))
                .unwrap();
        }
        assert_eq!(output.lines, ["one", "two", "three"]);
    }
}
