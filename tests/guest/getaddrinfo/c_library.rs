//! The process that answers with librdmacm.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::question::Question;
use crate::rdma_core::RdmaCore;

pub(super) const PROGRAM: &str = "rdmacm-c-getaddrinfo";
const END_OF_ANSWER: &str = ".";

pub(super) struct CLibrary {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl CLibrary {
    pub(super) fn start(rdma_core: RdmaCore) -> Self {
        let mut process = Command::new(rdma_core.program(PROGRAM))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self {
            process,
            questions,
            answers,
        }
    }

    /// The lines of an answer.
    pub(super) fn ask(&mut self, question: &Question) -> Vec<String> {
        writeln!(self.questions, "{question}").unwrap();
        let mut lines = Vec::new();
        for line in self.answers.by_ref().lines() {
            match line.unwrap() {
                end if end == END_OF_ANSWER => return lines,
                line => lines.push(line),
            }
        }
        panic!("the C program ended at: {question}");
    }
}

impl Drop for CLibrary {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
