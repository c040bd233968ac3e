//! The transcripts of librdmacm on both sides, on the new kernel.
//!
//! Each line is an answer: `a COMMAND | LINE | LINE`. The name of the scenario stands
//! above them, without a space at the beginning.

use std::collections::HashMap;

use super::library::Library;
use super::transcript::{Answer, Transcript};
use crate::Soft;

const RXE: &str = include_str!("../../scenarios/recorded/rxe.txt");
const SIW: &str = include_str!("../../scenarios/recorded/siw.txt");
const SEPARATOR: &str = " | ";
const INDENT: &str = "  ";

/// The transcripts of a device, by the names of the scenarios.
///
/// # Panics
/// If the recording is malformed.
#[must_use]
pub fn recorded(soft: Soft) -> HashMap<&'static str, Transcript> {
    let recording = match soft {
        Soft::Rxe => RXE,
        Soft::Siw => SIW,
    };
    let mut transcripts = HashMap::new();
    let mut scenario = "";
    for line in recording.lines() {
        match line.strip_prefix(INDENT) {
            None => {
                scenario = line;
                let transcript = Transcript::new([Library::C, Library::C]);
                assert!(
                    transcripts.insert(line, transcript).is_none(),
                    "twice: {line}"
                );
            }
            Some(line) => {
                let transcript = transcripts.get_mut(scenario).unwrap();
                transcript.push(answer(line).unwrap_or_else(|| panic!("malformed: {line}")));
            }
        }
    }
    transcripts
}

/// A transcript in the format of the recording.
#[must_use]
pub fn record(scenario: &str, transcript: &Transcript) -> String {
    let mut text = format!("{scenario}\n");
    for answer in transcript.answers() {
        let fields = [vec![answer.to_string()], answer.lines.clone()].concat();
        text = text + INDENT + &fields.join(SEPARATOR) + "\n";
    }
    text
}

fn answer(line: &str) -> Option<Answer> {
    let mut fields = line.split(SEPARATOR);
    let (side, command) = fields.next()?.split_once(' ')?;
    Some(Answer {
        side: ["a", "b"].iter().position(|known| *known == side)?,
        command: command.to_owned(),
        lines: fields.map(str::to_owned).collect(),
    })
}
