//! The processes of actors.

use std::io::{BufRead, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use rdmacm_tests::scenarios::{
    Actor, DEAD, DIE, Library, LibraryActor, RESET, ThisMachine, UNPRIVILEGED,
};

use super::C_ACTOR;
use crate::child;
use crate::rdma_core::RdmaCore;

/// Longer than an actor waits for an event.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const END_OF_ANSWER: &str = ".";
/// Actors that wait for their next scenario: starting one takes longer than most
/// scenarios.
pub(super) struct ProcessPool {
    /// The release of the librdmacm of its C actors.
    pub(super) rdma_core: RdmaCore,
    idle: Mutex<Vec<ActorProcess>>,
}

impl ProcessPool {
    pub(super) fn new(rdma_core: RdmaCore) -> Self {
        let idle = Mutex::default();
        Self { rdma_core, idle }
    }

    pub(super) fn take(&self, library: Library) -> ActorProcess {
        let mut idle = self.idle();
        let index = idle.iter().position(|actor| actor.library == library);
        let actor = index.map(|index| idle.swap_remove(index));
        drop(idle);
        actor.unwrap_or_else(|| ActorProcess::start(library, self.rdma_core))
    }

    /// Keeps an actor without its objects for another scenario, if possible.
    pub(super) fn put_back(&self, mut actor: ActorProcess) {
        if !actor.is_used_up {
            actor.send(RESET);
            if actor.answer().is_ok() {
                self.idle().push(actor);
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<ActorProcess>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process, which is killed with this value.
pub(super) struct ActorProcess {
    library: Library,
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    dead: bool,
    /// It cannot run another scenario.
    is_used_up: bool,
}

impl ActorProcess {
    fn start(library: Library, rdma_core: RdmaCore) -> Self {
        let mut command = match library {
            Library::C => Command::new(rdma_core.program(C_ACTOR)),
            Library::Ours => child::task("actor"),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let commands = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self {
            library,
            process,
            commands,
            answers,
            dead: false,
            is_used_up: false,
        }
    }

    fn line(&mut self) -> Result<String, String> {
        if self.answers.buffer().is_empty() {
            let answers = self.answers.get_ref().as_fd();
            let mut fds = [PollFd::new(answers, PollFlags::POLLIN)];
            let timeout = PollTimeout::try_from(ANSWER_TIMEOUT).unwrap();
            if poll(&mut fds, timeout).unwrap() == 0 {
                return Err("no answer".to_owned());
            }
        }
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(size) if size > 0 => Ok(line),
            end => Err(format!("{end:?}: {}", self.stderr_text())),
        }
    }

    fn stderr_text(&mut self) -> String {
        let stderr = self.process.stderr.take();
        stderr
            .and_then(|stderr| std::io::read_to_string(stderr).ok())
            .unwrap_or_default()
    }
}

impl Actor for ActorProcess {
    fn send(&mut self, command: &str) {
        self.is_used_up |= matches!(command, DIE | UNPRIVILEGED);
        if command == DIE {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
            self.dead = true;
        } else {
            // If the process has ended, its answer fails.
            let _ = writeln!(self.commands, "{command}");
        }
    }

    fn answer(&mut self) -> Result<Vec<String>, String> {
        if self.dead {
            return Ok(vec![DEAD.to_owned()]);
        }
        let mut lines = Vec::new();
        loop {
            match self.line()?.trim_end() {
                END_OF_ANSWER => return Ok(lines),
                line => lines.push(line.to_owned()),
            }
        }
    }
}

impl Drop for ActorProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Executes the commands of the standard input with this library until it ends.
pub(crate) fn run() {
    let mut actor = LibraryActor::new(ThisMachine);
    let mut output = std::io::stdout();
    for command in std::io::stdin().lock().lines() {
        actor.send(&command.unwrap());
        for line in actor.answer().unwrap() {
            writeln!(output, "{line}").unwrap();
        }
        writeln!(output, "{END_OF_ANSWER}").unwrap();
        output.flush().unwrap();
    }
}
