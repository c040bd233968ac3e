//! Two guests, the wires between them, and the answers and events that arrived.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rdmacm_init::{Answer, CmEvent, Message, NumberedStep, Step};

use crate::guest::{Guest, InteractiveGuest, Machine, Wire, WireEnd};

/// Longer than all groups together; the time that a guest is frozen counts too.
const GUEST_TIMEOUT: Duration = Duration::from_secs(900);
/// MiB: the program is small.
const MEMORY_MIB: u32 = 512;
/// How long to wait for a line of one guest before reading from the other.
const POLL_TIME: Duration = Duration::from_millis(10);

/// A guest at each end of the wires.
pub(super) struct Pair {
    guest: Guest,
    program: PathBuf,
    wires: [Wire; 2],
    near: RunningGuest,
    /// `None` while no far guest runs.
    far: Option<RunningGuest>,
}

/// A guest, and what its program has written.
struct RunningGuest {
    guest: InteractiveGuest,
    /// Its network cards, until they are attached to the wires.
    cards: Vec<UnixStream>,
    last_step: u64,
    answers: HashMap<u64, Answer>,
    events: Vec<CmEvent>,
}

impl Pair {
    /// Boots both guests.
    pub(super) fn start(guest: &Guest, program: &Path) -> anyhow::Result<Self> {
        let wires = [Wire::default(), Wire::default()];
        let mut near = RunningGuest::start(guest, program, WireEnd::Near)?;
        near.attach(&wires, WireEnd::Near)?;
        let mut far = RunningGuest::start(guest, program, WireEnd::Far)?;
        far.attach(&wires, WireEnd::Far)?;
        let mut pair = Self {
            guest: guest.clone(),
            program: program.to_owned(),
            wires,
            near,
            far: Some(far),
        };
        pair.wait_until_up(WireEnd::Near)?;
        pair.wait_until_up(WireEnd::Far)?;
        Ok(pair)
    }

    /// Waits until the program in the guest answers a step: before that the network may be
    /// only partly set up.
    fn wait_until_up(&mut self, end: WireEnd) -> anyhow::Result<()> {
        let line = "true".to_owned();
        let number = self.send_step(end, Step::Run { line })?;
        while self.take_answer(end, number)?.is_none() {
            self.receive()?;
        }
        Ok(())
    }

    fn guest_at(&mut self, end: WireEnd) -> anyhow::Result<&mut RunningGuest> {
        match end {
            WireEnd::Near => Ok(&mut self.near),
            WireEnd::Far => self.far.as_mut().context("the far guest is dead"),
        }
    }

    /// Sends a step and returns its number.
    pub(super) fn send_step(&mut self, end: WireEnd, step: Step) -> anyhow::Result<u64> {
        let running = self.guest_at(end)?;
        running.last_step += 1;
        let number = running.last_step;
        let line =
            serde_json::to_string(&NumberedStep { number, step }).context("encode a step")?;
        running.guest.write_line(&line)?;
        Ok(number)
    }

    /// Takes the answer to a step, if it has arrived.
    pub(super) fn take_answer(
        &mut self,
        end: WireEnd,
        number: u64,
    ) -> anyhow::Result<Option<Answer>> {
        Ok(self.guest_at(end)?.answers.remove(&number))
    }

    /// Takes the first event with this uid, if one has arrived.
    pub(super) fn take_event(&mut self, end: WireEnd, uid: u64) -> anyhow::Result<Option<CmEvent>> {
        let events = &mut self.guest_at(end)?.events;
        let position = events.iter().position(|one| one.uid == uid);
        Ok(position.map(|position| events.remove(position)))
    }

    /// Receives answers and events of both guests for a short time. Fails if a guest failed.
    pub(super) fn receive(&mut self) -> anyhow::Result<()> {
        self.near.receive(POLL_TIME).context("the near guest")?;
        if let Some(far) = &mut self.far {
            far.receive(POLL_TIME).context("the far guest")?;
        }
        Ok(())
    }

    /// Stops the far guest's processors and clocks.
    pub(super) fn freeze(&mut self) -> anyhow::Result<()> {
        self.guest_at(WireEnd::Far)?.guest.freeze()
    }

    /// Lets the far guest run again.
    pub(super) fn resume(&mut self) -> anyhow::Result<()> {
        self.guest_at(WireEnd::Far)?.guest.resume()
    }

    /// Kills the far guest, which sends nothing more.
    pub(super) fn kill(&mut self) {
        self.far = None;
    }

    /// Boots another far guest with the same addresses, which is not attached to the wires. A
    /// boot may take longer than the near guest retries, so the near guest is frozen meanwhile.
    pub(super) fn restart(&mut self) -> anyhow::Result<()> {
        self.far = None;
        self.near.guest.freeze()?;
        let far = RunningGuest::start(&self.guest, &self.program, WireEnd::Far)?;
        self.far = Some(far);
        self.wait_until_up(WireEnd::Far)?;
        self.near.guest.resume()
    }

    /// Attaches the far guest's cards to the wires.
    pub(super) fn attach_network(&mut self) -> anyhow::Result<()> {
        let far = self.far.as_mut().context("the far guest is dead")?;
        far.attach(&self.wires, WireEnd::Far)
    }

    /// Shuts both guests down.
    pub(super) fn shut_down(self) -> anyhow::Result<()> {
        self.near.guest.shut_down().context("the near guest")?;
        match self.far {
            Some(far) => far.guest.shut_down().context("the far guest"),
            None => Ok(()),
        }
    }
}

impl RunningGuest {
    fn start(guest: &Guest, program: &Path, end: WireEnd) -> anyhow::Result<Self> {
        let machine = Machine {
            timeout: GUEST_TIMEOUT,
            memory: MEMORY_MIB,
            wire_end: Some(end),
            ..Machine::default()
        };
        let argv = [program.to_string_lossy().into_owned()];
        let mut running = InteractiveGuest::start(guest, &machine, &argv)?;
        Ok(Self {
            cards: running.take_cards(),
            guest: running,
            last_step: 0,
            answers: HashMap::new(),
            events: Vec::new(),
        })
    }

    fn attach(&mut self, wires: &[Wire], end: WireEnd) -> anyhow::Result<()> {
        let cards = wires.iter().zip(self.cards.drain(..));
        for (wire, card) in cards {
            wire.attach(end, card)?;
        }
        Ok(())
    }

    fn receive(&mut self, timeout: Duration) -> anyhow::Result<()> {
        let mut wait = timeout;
        while let Some(line) = self.guest.read_line(wait)? {
            let message =
                serde_json::from_str(&line).map_err(|error| anyhow!("{error}: {line}"))?;
            match message {
                Message::Answer { number, answer } => drop(self.answers.insert(number, answer)),
                Message::Event(event) => self.events.push(event),
            }
            // Take the lines that have arrived, without waiting for more.
            wait = Duration::ZERO;
        }
        Ok(())
    }
}
