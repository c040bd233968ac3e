//! QEMU's monitor: it stops a guest and lets it go on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// How long QEMU may take to answer; its main loop is never busy for long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that speaks QMP, QEMU's machine protocol.
#[derive(Debug)]
pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
    negotiated: bool,
}

/// A line from QEMU; events and the greeting have neither member.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(rename = "return")]
    done: Option<serde_json::Value>,
    error: Option<serde_json::Value>,
}

impl Monitor {
    /// Over a fresh connection.
    pub(crate) fn new(stream: UnixStream) -> anyhow::Result<Self> {
        stream
            .set_read_timeout(Some(PATIENCE))
            .context("limit the monitor's time")?;
        Ok(Self {
            stream: BufReader::new(stream),
            negotiated: false,
        })
    }

    /// Stops every processor and the guest's clocks with them.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        self.execute("stop")
    }

    /// Lets the guest go on; for it no time has passed.
    pub(crate) fn go_on(&mut self) -> anyhow::Result<()> {
        self.execute("cont")
    }

    fn execute(&mut self, command: &str) -> anyhow::Result<()> {
        if !self.negotiated {
            self.ask("qmp_capabilities")?;
            self.negotiated = true;
        }
        self.ask(command)
    }

    fn ask(&mut self, command: &str) -> anyhow::Result<()> {
        let told = format!("{{\"execute\":\"{command}\"}}\n");
        let stream = self.stream.get_mut();
        stream
            .write_all(told.as_bytes())
            .with_context(|| format!("tell QEMU to {command}"))?;
        loop {
            let mut line = String::new();
            let length = self.stream.read_line(&mut line);
            if length.with_context(|| format!("hear of {command} from QEMU"))? == 0 {
                bail!("QEMU is gone: it never answered {command}");
            }
            match serde_json::from_str(&line).context("understand QEMU")? {
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

    /// A monitor that says this, whatever it is asked.
    fn asked(says: &str) -> anyhow::Result<()> {
        let (ours, mut qemu) = UnixStream::pair().unwrap();
        qemu.write_all(says.as_bytes()).unwrap();
        let asked = Monitor::new(ours)?.stop();
        drop(qemu);
        asked
    }

    #[test]
    fn greeting_and_events_are_passed_over() {
        let says = "{\"QMP\": {}}\n{\"return\": {}}\n{\"event\": \"STOP\"}\n{\"return\": {}}\n";
        asked(says).unwrap();
    }

    #[test]
    fn a_refusal_is_an_error() {
        let says = "{\"return\": {}}\n{\"error\": {\"desc\": \"no\"}}\n";
        let error = asked(says).unwrap_err().to_string();
        assert!(error.contains("refused stop"), "{error}");
    }
}
