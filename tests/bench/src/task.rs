//! A workload as the command line names it.

use std::fmt;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::work::Target;

/// A workload, where it runs, and how many operations it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) workload: String,
    pub(crate) target: Target,
    pub(crate) count: u32,
}

impl Task {
    /// Parses tasks of four words each.
    pub(crate) fn parse(words: &[String]) -> anyhow::Result<Vec<Self>> {
        words.chunks(4).map(Self::parse_one).collect()
    }

    fn parse_one(words: &[String]) -> anyhow::Result<Self> {
        let [name, address, port, count] = words else {
            bail!("a workload has four words: NAME ADDRESS PORT COUNT");
        };
        let address = address.parse().context("an address")?;
        let port = port.parse().context("a port")?;
        Ok(Self {
            workload: name.clone(),
            target: Target { address, port },
            count: count.parse().context("a count")?,
        })
    }

    /// Adds its words to a command line.
    pub(crate) fn add_to(&self, command: &mut Command) {
        let Target { address, port } = self.target;
        command.args([&self.workload, &address.to_string(), &port.to_string()]);
        command.arg(self.count.to_string());
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.workload, self.target.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<Vec<Task>> {
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        Task::parse(&words)
    }

    #[test]
    fn a_task_is_parsed_from_the_words_that_it_adds() {
        let tasks = parse("id 10.71.1.1 0 64 round-trip fd71:1::1 4791 20").unwrap();
        let mut command = Command::new("bench");
        for task in &tasks {
            task.add_to(&mut command);
        }
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_str().unwrap())
            .collect();
        assert_eq!(
            words.join(" "),
            "id 10.71.1.1 0 64 round-trip fd71:1::1 4791 20"
        );
        assert_eq!(parse(&words.join(" ")).unwrap(), tasks);
    }

    #[test]
    fn what_is_no_task_is_refused() {
        for text in [
            "id 10.71.1.1 0",
            "id host 0 1",
            "id 10.71.1.1 x 1",
            "id 10.71.1.1 0 -1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
