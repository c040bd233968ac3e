//! Runs other programs. Errors contain the command line.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The folders of the system's programs, including those that a user's `PATH` may lack.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How often a long step shows its progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// The number of lines of a log that a failure shows.
const TAIL: usize = 30;

/// Runs a program with this process's standard streams.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = line(command);
    let status = command
        .status()
        .with_context(|| format!("start `{line}`"))?;
    if !status.success() {
        bail!("`{line}`: {status}");
    }
    Ok(())
}

/// Returns the output of a program. The error contains its standard error.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let line = line(command);
    let output = command
        .output()
        .with_context(|| format!("start `{line}`"))?;
    if !output.status.success() {
        bail!(
            "`{line}`: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed no UTF-8"))
}

/// Runs a program that prints much: its output goes to a log, and the user sees the number of
/// lines.
pub(crate) fn logged(what: &str, command: &mut Command, log: &Path) -> anyhow::Result<()> {
    let line = line(command);
    let mut file = std::fs::File::create(log).with_context(|| format!("make {}", log.display()))?;
    let errors = file.try_clone().context("share the log")?;
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .with_context(|| format!("start `{line}`"))?;
    let mut child = KillOnDrop(child);
    let stdout = child.0.stdout.take().context("a piped output")?;
    let mut progress = Progress::new(what);
    for text in BufReader::new(stdout).split(b'\n') {
        let mut text = text.with_context(|| format!("read from `{line}`"))?;
        text.push(b'\n');
        file.write_all(&text).context("write the log")?;
        progress.step();
    }
    let status = child
        .0
        .wait()
        .with_context(|| format!("wait for `{line}`"))?;
    progress.end();
    if !status.success() {
        let text = std::fs::read(log).unwrap_or_default();
        bail!(
            "`{line}`: {status}; the end of its log:\n{}",
            tail(&String::from_utf8_lossy(&text))
        );
    }
    Ok(())
}

/// A child process that is killed when dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // It has ended, unless an error ended the wait.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a child process, and those that it has started by now and that have not ended.
pub(crate) fn kill_with_descendants(child: u32) -> anyhow::Result<()> {
    let parents = parents().context("list processes")?;
    let mut killed = vec![i32::try_from(child)?];
    let mut next = 0;
    while let Some(&process) = killed.get(next) {
        // It may have ended meanwhile.
        let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        let children = parents.iter().filter(|(_, parent)| *parent == process);
        killed.extend(children.map(|(child, _)| child));
        next += 1;
    }
    Ok(())
}

/// The number of each process, and that of its parent.
fn parents() -> anyhow::Result<Vec<(i32, i32)>> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let process = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let stat = std::fs::read_to_string(entry.path().join("stat"));
        if let (Some(process), Some(parent)) = (process, stat.ok().as_deref().and_then(parent)) {
            parents.push((process, parent));
        }
    }
    Ok(parents)
}

/// The parent in a process's `stat` (proc(5)): behind its name, which is in parentheses, and its
/// state.
fn parent(stat: &str) -> Option<i32> {
    let (_, behind_the_name) = stat.rsplit_once(')')?;
    behind_the_name
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// The last lines of a text.
fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

/// A command line as a user would type it.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Progress output: one line that is rewritten on a terminal, several lines elsewhere.
struct Progress<'what> {
    what: &'what str,
    start: Instant,
    shown: Instant,
    steps: usize,
    terminal: bool,
}

impl<'what> Progress<'what> {
    fn new(what: &'what str) -> Self {
        let now = Instant::now();
        eprintln!("  {what} ...");
        Self {
            what,
            start: now,
            shown: now,
            steps: 0,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        let interval = if self.terminal {
            PROGRESS_INTERVAL / 50
        } else {
            PROGRESS_INTERVAL
        };
        if self.shown.elapsed() >= interval {
            self.shown = Instant::now();
            let end = if self.terminal { "\r" } else { "\n" };
            eprint!(
                "  {}: {} steps, {} s{end}",
                self.what,
                self.steps,
                self.seconds()
            );
        }
    }

    fn end(&self) {
        eprintln!(
            "  {}: {} steps in {} s",
            self.what,
            self.steps,
            self.seconds()
        );
    }

    fn seconds(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_contains_the_command_line_and_standard_error() {
        let error = output(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("sh -c") && error.contains('3') && error.contains("no"),
            "{error}"
        );
    }

    #[test]
    fn descendants_are_killed_too() {
        let mut shell = Command::new("sh");
        // It says so when all of them run.
        shell.args(["-c", "sh -c 'sleep 60 & echo a; wait; echo b'; echo c"]);
        let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        kill_with_descendants(child.id()).unwrap();
        child.wait().unwrap();
        let began = Instant::now();
        // Each of them has the pipe open.
        let rest = std::io::read_to_string(output).unwrap();
        assert_eq!((line.as_str(), rest.as_str()), ("a\n", ""));
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (a) 9 (b) S 3 7 7 0 -1"), Some(3));
        assert_eq!(parent("7 (sh"), None);
    }

    #[test]
    fn an_error_of_a_logged_program_shows_the_end_of_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", "seq 100; exit 1"]);
        let error = logged("count", &mut command, &log).unwrap_err().to_string();
        assert!(
            error.contains("\n100") && !error.contains("\n50\n"),
            "{error}"
        );
    }
}
