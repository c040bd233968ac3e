//! QEMU's monitor, which stops and resumes a guest.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// How long QEMU may take to answer a command.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A QMP connection to QEMU.
#[derive(Debug)]
pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
    negotiated: bool,
}

/// A message of QEMU. Events and the greeting have neither member.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(rename = "return")]
    done: Option<serde_json::Value>,
    error: Option<serde_json::Value>,
}

impl Monitor {
    /// Takes a new connection, whose greeting has not been read.
    pub(crate) fn new(stream: UnixStream) -> anyhow::Result<Self> {
        stream
            .set_read_timeout(Some(TIMEOUT))
            .context("set the monitor's timeout")?;
        Ok(Self {
            stream: BufReader::new(stream),
            negotiated: false,
        })
    }

    /// Stops the guest's processors and clocks.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        self.execute("stop")
    }

    /// Resumes the guest, whose clocks have not advanced.
    pub(crate) fn resume(&mut self) -> anyhow::Result<()> {
        self.execute("cont")
    }

    fn execute(&mut self, command: &str) -> anyhow::Result<()> {
        if !self.negotiated {
            self.send("qmp_capabilities")?;
            self.negotiated = true;
        }
        self.send(command)
    }

    fn send(&mut self, command: &str) -> anyhow::Result<()> {
        let request = format!("{{\"execute\":\"{command}\"}}\n");
        let stream = self.stream.get_mut();
        stream
            .write_all(request.as_bytes())
            .with_context(|| format!("send {command} to QEMU"))?;
        loop {
            let mut line = String::new();
            let length = self.stream.read_line(&mut line);
            if length.with_context(|| format!("read QEMU's answer to {command}"))? == 0 {
                bail!("QEMU ended without an answer to {command}");
            }
            match serde_json::from_str(&line).context("parse QEMU's answer")? {
                Answer { error: Some(_), .. } => bail!("QEMU refused {command}: {}", line.trim()),
                Answer { done: Some(_), .. } => return Ok(()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `stop` to a monitor that answers with this text.
    fn stop(answers: &str) -> anyhow::Result<()> {
        let (ours, mut qemu) = UnixStream::pair().unwrap();
        qemu.write_all(answers.as_bytes()).unwrap();
        let result = Monitor::new(ours)?.stop();
        drop(qemu);
        result
    }

    #[test]
    fn greeting_and_events_are_skipped() {
        let answers = "{\"QMP\": {}}\n{\"return\": {}}\n{\"event\": \"STOP\"}\n{\"return\": {}}\n";
        stop(answers).unwrap();
    }

    #[test]
    fn an_error_of_qemu_is_returned() {
        let answers = "{\"return\": {}}\n{\"error\": {\"desc\": \"no\"}}\n";
        let error = stop(answers).unwrap_err().to_string();
        assert!(error.contains("refused stop"), "{error}");
    }
}
