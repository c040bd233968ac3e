//! A guest whose command does what the host says, line by line.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rdmacm_init::Ending;

use crate::guest::run::{Sinks, Watched};
use crate::guest::{Guest, Machine};

/// It runs until it is told to end, or dropped, which is its sudden death.
pub(crate) struct InteractiveGuest {
    watched: Watched,
    said: Said,
}

/// What the command wrote.
#[derive(Default)]
struct Said {
    lines: VecDeque<String>,
    /// The beginning of a line.
    rest: Vec<u8>,
    complaints: Vec<u8>,
}

impl InteractiveGuest {
    /// Starts it; neither the boot nor the command's start is awaited.
    pub(crate) fn start(guest: &Guest, machine: &Machine, argv: &[String]) -> anyhow::Result<Self> {
        let machine = Machine {
            driven: true,
            ..machine.clone()
        };
        let plan = guest.plan(argv, &machine, None)?;
        Ok(Self {
            watched: Watched::start(&guest.boot(&machine, &plan), machine.timeout)?,
            said: Said::default(),
        })
    }

    /// What its network cards are connected to, in order; to be had once.
    pub(crate) fn wires(&mut self) -> Vec<UnixStream> {
        std::mem::take(&mut self.watched.qemu.wires)
    }

    /// Writes a line to the command.
    pub(crate) fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let told = self
            .watched
            .qemu
            .stdin
            .write_all(format!("{line}\n").as_bytes());
        told.context("write to the guest's command")
            .map_err(|error| self.explain(&error))
    }

    /// The next line of the command's; none when it has not come in time.
    pub(crate) fn hear(&mut self, within: Duration) -> anyhow::Result<Option<String>> {
        let by = Instant::now() + within;
        self.next_line(by).map_err(|error| self.explain(&error))
    }

    fn next_line(&mut self, by: Instant) -> anyhow::Result<Option<String>> {
        loop {
            if let Some(line) = self.said.lines.pop_front() {
                return Ok(Some(line));
            }
            let Some(event) = self.watched.next_by(by)? else {
                return Ok(None);
            };
            let ending = self.said.listen(|sinks| self.watched.take(event, sinks))?;
            if let Some(ending) = ending {
                return Err(anyhow!("the guest's command ended early, with {ending:?}"));
            }
        }
    }

    /// Makes it stand still: nothing runs in it, its clocks neither.
    pub(crate) fn freeze(&mut self) -> anyhow::Result<()> {
        self.watched.qemu.monitor.stop()
    }

    /// Lets it go on.
    pub(crate) fn thaw(&mut self) -> anyhow::Result<()> {
        self.watched.qemu.monitor.go_on()
    }

    /// Closes the command's standard input and waits for its end and the
    /// guest's.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let ended = self.wait_for_its_end();
        ended.map_err(|error| self.explain(&error))
    }

    fn wait_for_its_end(&mut self) -> anyhow::Result<()> {
        let stdin = &self.watched.qemu.stdin;
        stdin.shutdown(Shutdown::Both).context("end the command")?;
        match self.said.listen(|sinks| self.watched.until_ended(sinks))? {
            Ending::Exit(0) => self.watched.power_off(),
            ending => Err(anyhow!("the guest's command ended with {ending:?}")),
        }
    }

    fn explain(&self, error: &anyhow::Error) -> anyhow::Error {
        let complaints = String::from_utf8_lossy(&self.said.complaints);
        let error = self.watched.explain(error, false);
        match complaints.trim() {
            "" => error,
            complaints => anyhow!("{error:#}\nThe command's complaints: {complaints}"),
        }
    }
}

impl Said {
    /// Listens while something goes on.
    fn listen<T>(&mut self, what: impl FnOnce(&mut Sinks<'_>) -> T) -> T {
        let Self {
            lines,
            rest,
            complaints,
        } = self;
        what(&mut Sinks {
            stdout: &mut |bytes| {
                rest.extend_from_slice(bytes);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
                }
                Ok(())
            },
            stderr: &mut |bytes| Ok(complaints.write_all(bytes)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole() {
        let mut said = Said::default();
        for piece in ["on", "e\ntwo\nth", "ree\n"] {
            said.listen(|sinks| (sinks.stdout)(piece.as_bytes()))
                .unwrap();
        }
        assert_eq!(said.lines, ["one", "two", "three"]);
    }
}
