//! The guest's reports to the host: one line each.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, bail};

/// A line on the control port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The guest booted, with this kernel release.
    Up(String),
    /// Root, network and devices are set up; the command starts now.
    Ready,
    /// The guest could not be set up, for this reason.
    Failed(String),
    /// The command ended.
    Ended {
        /// How it ended.
        ending: Ending,
        /// The number of bytes that it wrote to standard output.
        stdout: u64,
        /// The number of bytes that it wrote to standard error.
        stderr: u64,
    },
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Exit(u8),
    /// This signal killed it.
    Signal(u8),
}

impl Ending {
    /// The exit code as in a shell: 128 + n for signal n.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(number) => number.saturating_add(128),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up(release) => write!(formatter, "up {release}"),
            Self::Ready => formatter.write_str("ready"),
            Self::Failed(reason) => write!(formatter, "failed {}", reason.replace('\n', " | ")),
            Self::Ended {
                ending,
                stdout,
                stderr,
            } => match ending {
                Ending::Exit(code) => write!(formatter, "exit {code} {stdout} {stderr}"),
                Ending::Signal(number) => write!(formatter, "signal {number} {stdout} {stderr}"),
            },
        }
    }
}

impl FromStr for Report {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        if line == "ready" {
            return Ok(Self::Ready);
        }
        let (word, rest) = line
            .split_once(' ')
            .context("expected a keyword and values")?;
        let ending: fn(u8) -> Ending = match word {
            "up" => return Ok(Self::Up(rest.to_owned())),
            "failed" => return Ok(Self::Failed(rest.to_owned())),
            "exit" => Ending::Exit,
            "signal" => Ending::Signal,
            _ => bail!("`{word}` is not a report"),
        };
        let mut values = rest.split(' ');
        let mut next = || values.next().context("the report has too few values");
        let report = Self::Ended {
            ending: ending(next()?.parse()?),
            stdout: next()?.parse()?,
            stderr: next()?.parse()?,
        };
        match values.next() {
            None => Ok(report),
            Some(more) => bail!("unexpected `{more}` after the report"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_parsed_from_its_line() {
        for report in [
            Report::Up("6.1.0-1-amd64".to_owned()),
            Report::Ready,
            Report::Failed("no veth".to_owned()),
            Report::Ended {
                ending: Ending::Exit(3),
                stdout: 70_000,
                stderr: 0,
            },
            Report::Ended {
                ending: Ending::Signal(11),
                stdout: 0,
                stderr: 12,
            },
        ] {
            assert_eq!(report.to_string().parse::<Report>().unwrap(), report);
        }
    }

    #[test]
    fn a_reason_of_two_lines_becomes_one_line() {
        let line = Report::Failed("a\nb".to_owned()).to_string();
        assert_eq!(line, "failed a | b");
    }

    #[test]
    fn invalid_lines_are_errors() {
        for line in [
            "",
            "exit",
            "exit 1",
            "exit 1 2",
            "exit 1 2 3 4",
            "exit 300 0 0",
            "left 1 2 3",
        ] {
            assert!(line.parse::<Report>().is_err(), "{line:?}");
        }
    }

    #[test]
    fn exit_codes_of_signals_are_those_of_a_shell() {
        assert_eq!(Ending::Signal(9).code(), 137);
        assert_eq!(Ending::Exit(9).code(), 9);
    }
}
