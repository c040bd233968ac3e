//! Scripts of commands for two actors, which librdmacm and this library answer alike.
//!
//! An actor executes each command with one call of its library. This library's actor runs
//! in a process of its own on a real kernel, or on a simulated host.

use std::fmt;

mod actor;
mod difference;
mod library;
mod names;
mod recording;
mod scenario;
mod script;
mod transcript;

pub use actor::{LibraryActor, Machine, ThisMachine};
pub use library::Library;
pub use recording::{record, recorded};
pub use scenario::{Process, Scenario, Step};
pub use script::scenarios;
pub use transcript::{Answer, Transcript};

use crate::Site;
use names::Names;

/// Kills the process of an actor.
pub const DIE: &str = "die";
/// The answer of an actor whose process has been killed.
pub const DEAD: &str = "dead";
/// Destroys all objects of an actor.
pub const RESET: &str = "reset";
/// Gives up the privileges of an actor's process for good.
pub const UNPRIVILEGED: &str = "unprivileged";

/// One side of a scenario.
pub trait Actor {
    /// Begins to execute a command.
    fn send(&mut self, command: &str);

    /// The lines of its answer.
    ///
    /// # Errors
    /// Why there is none.
    fn answer(&mut self) -> Result<Vec<String>, String>;
}

/// Runs a scenario with actors that use these libraries, at the addresses of a device.
///
/// # Errors
/// That of an actor, with the answers so far.
pub fn run<A: Actor>(
    scenario: &Scenario,
    site: &Site,
    libraries: [Library; 2],
    actors: &mut [A; 2],
) -> Result<Transcript, String> {
    let mut names = Names::new(site);
    let mut transcript = Transcript::new(libraries);
    for step in &scenario.steps {
        let command = names.fill_in(&step.command);
        for side in step.process.sides() {
            actors[*side].send(&command);
        }
        for side in step.process.sides() {
            let answer = actors[*side].answer();
            let lines = answer.map_err(|reason| interrupted(&transcript, step, &reason))?;
            transcript.push(Answer {
                side: *side,
                command: step.command.clone(),
                lines: lines.iter().map(|line| names.name(line)).collect(),
            });
        }
    }
    Ok(transcript)
}

fn interrupted(transcript: &Transcript, step: &Step, reason: &dyn fmt::Display) -> String {
    format!("{transcript}{}: {reason}", step.command)
}
