//! One side of a scenario: a process that does commands.

use std::fmt;
use std::io::{BufRead, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::C_ACTOR;
use crate::child;
use crate::rdma_core::RdmaCore;

/// Longer than an actor waits for an event.
const PATIENCE: Duration = Duration::from_secs(60);
const END_OF_ANSWER: &str = ".";
/// What the process never hears of: it is killed.
const DIE: &str = "die";
/// Nothing changes after this what the process may do.
const UNPRIVILEGED: &str = "unprivileged";
/// Destroys all the process has made.
const RESET: &str = "reset";

/// What an actor is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// librdmacm.
    C,
    /// This library.
    Ours,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "C",
            Self::Ours => "ours",
        })
    }
}

/// Actors that wait for their next scenario: starting one takes longer than
/// most scenarios do.
pub(super) struct Company {
    /// Whose librdmacm its C actors are.
    pub(super) rdma_core: RdmaCore,
    idle: Mutex<Vec<Actor>>,
}

impl Company {
    pub(super) fn new(rdma_core: RdmaCore) -> Self {
        let idle = Mutex::default();
        Self { rdma_core, idle }
    }

    pub(super) fn hire(&self, kind: Kind) -> Actor {
        let mut idle = self.idle();
        let found = idle.iter().position(|actor| actor.kind == kind);
        let actor = found.map(|place| idle.swap_remove(place));
        drop(idle);
        actor.unwrap_or_else(|| Actor::start(kind, self.rdma_core))
    }

    /// Keeps an actor, as if nothing had been, unless that cannot be had.
    pub(super) fn take_back(&self, mut actor: Actor) {
        if !actor.spent {
            actor.tell(RESET);
            if actor.answer().is_ok() {
                self.idle().push(actor);
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Actor>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process, which dies with this value.
pub(super) struct Actor {
    kind: Kind,
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    dead: bool,
    /// Whether it is good for one scenario alone.
    spent: bool,
}

impl Actor {
    fn start(kind: Kind, rdma_core: RdmaCore) -> Self {
        let mut command = match kind {
            Kind::C => Command::new(rdma_core.program(C_ACTOR)),
            Kind::Ours => child::task("actor"),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let commands = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self {
            kind,
            process,
            commands,
            answers,
            dead: false,
            spent: false,
        }
    }

    /// Has it begin a command.
    pub(super) fn tell(&mut self, command: &str) {
        self.spent |= matches!(command, DIE | UNPRIVILEGED);
        if command == DIE {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
            self.dead = true;
        } else {
            // One that died of it says so when it is to answer.
            let _ = writeln!(self.commands, "{command}");
        }
    }

    /// The lines it answers; the trouble where it answers none.
    pub(super) fn answer(&mut self) -> Result<Vec<String>, String> {
        if self.dead {
            return Ok(vec!["dead".to_owned()]);
        }
        let mut lines = Vec::new();
        loop {
            match self.line()?.trim_end() {
                END_OF_ANSWER => return Ok(lines),
                line => lines.push(line.to_owned()),
            }
        }
    }

    fn line(&mut self) -> Result<String, String> {
        if self.answers.buffer().is_empty() {
            let answers = self.answers.get_ref().as_fd();
            let mut fds = [PollFd::new(answers, PollFlags::POLLIN)];
            let patience = PollTimeout::try_from(PATIENCE).unwrap();
            if poll(&mut fds, patience).unwrap() == 0 {
                return Err("no answer".to_owned());
            }
        }
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(size) if size > 0 => Ok(line),
            end => Err(format!("{end:?}: {}", self.last_words())),
        }
    }

    fn last_words(&mut self) -> String {
        let complaint = self.process.stderr.take();
        complaint
            .and_then(|complaint| std::io::read_to_string(complaint).ok())
            .unwrap_or_default()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
