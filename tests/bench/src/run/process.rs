//! Processes that are not waited for without a limit.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long a process may take for its next line of output. A workload takes seconds under callgrind
/// on an emulated machine, and many times that if the machine is busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs a command, and passes each line that it prints to `line`. Returns how long it took. Fails if
/// the command does, and if its next line, or its end, does not come within a time: then all that it
/// has started is killed.
pub(crate) fn run(command: Command, line: impl FnMut(&str)) -> anyhow::Result<Duration> {
    run_within(PATIENCE, command, line)
}

fn run_within(
    patience: Duration,
    mut command: Command,
    mut line: impl FnMut(&str),
) -> anyhow::Result<Duration> {
    let errors = tempfile::tempfile().context("make a file")?;
    let stderr = errors.try_clone().context("open a file again")?;
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr);
    let began = Instant::now();
    let mut process = command.spawn().context("start a process")?;
    let stdout = process.stdout.take().context("a process's output")?;
    let (sender, printed) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines();
        lines.try_for_each(|line| sender.send(line))
    });
    let ended = loop {
        match printed.recv_timeout(patience) {
            Ok(Ok(printed)) => line(&printed),
            Ok(Err(error)) => break Err(error).context("read what a process prints"),
            Err(RecvTimeoutError::Timeout) => break Ok(None),
            Err(RecvTimeoutError::Disconnected) => break wait(&mut process, patience),
        }
    };
    let took = began.elapsed();
    if let Ok(Some(status)) = ended {
        ensure!(status.success(), "{status}: {}", text(errors).trim());
        return Ok(took);
    }
    let killed = kill(&mut process, patience);
    ended?;
    killed?;
    // Its output ends with the last process that has it.
    let rest = printed.recv_timeout(patience);
    let is_left = matches!(rest, Err(RecvTimeoutError::Timeout));
    let left = if is_left { ", not killed" } else { "" };
    let (seconds, errors) = (patience.as_secs(), text(errors));
    bail!("nothing more after {seconds} s{left} {}", errors.trim());
}

/// How soon a process ends that prints no more, mostly. The time that it takes is measured, so
/// nothing sleeps for that long.
const PROMPT: Duration = Duration::from_millis(20);

/// Waits for the end of a process that prints no more; `None` if it does not end.
fn wait(process: &mut Child, patience: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        let status = process.try_wait().context("wait for a process")?;
        if status.is_some() || began.elapsed() >= patience {
            return Ok(status);
        }
        if began.elapsed() < PROMPT {
            thread::yield_now();
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Kills a process and what it has started. The kernel may not end it: a call that does not return
/// holds it.
fn kill(process: &mut Child, patience: Duration) -> anyhow::Result<()> {
    let group = i32::try_from(process.id()).map(Pid::from_raw);
    let killed = group.map(|group| killpg(group, Signal::SIGKILL));
    // Otherwise it has ended.
    if let Ok(Ok(())) = killed {
        wait(process, patience)?;
    }
    Ok(())
}

/// What was written to a file.
fn text(mut file: File) -> String {
    let mut bytes = Vec::new();
    let read: io::Result<_> = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("cannot read its errors: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run(patience: Duration, script: &str) -> (Vec<String>, Option<String>) {
        let mut lines = Vec::new();
        let done = run_within(patience, shell(script), |line| lines.push(line.to_owned()));
        (lines, done.err().map(|error| error.to_string()))
    }

    #[test]
    fn lines_are_passed_on_and_failures_reported() {
        let (lines, failure) = run(PATIENCE, "echo one; echo two");
        assert_eq!((lines.join(" "), failure), ("one two".to_owned(), None));
        let (lines, failure) = run(PATIENCE, "echo one; echo because >&2; exit 3");
        assert_eq!(lines, ["one"]);
        assert_eq!(failure.unwrap(), "exit status: 3: because");
    }

    #[test]
    fn a_process_that_stops_printing_is_killed_with_its_children() {
        // The pipe stays open until the child of the shell is gone, too.
        let script = "echo one; echo because >&2; sleep 1000 & wait";
        // The shell starts within the time.
        let (lines, failure) = run(Duration::from_secs(10), script);
        assert_eq!(lines, ["one"]);
        assert_eq!(failure.unwrap(), "nothing more after 10 s because");
    }
}
