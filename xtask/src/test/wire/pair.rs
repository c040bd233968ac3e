//! Two guests, their wires, and what they have said.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rdmacm_init::{Answer, CmEvent, Message, Order, Step};

use crate::guest::{Guest, InteractiveGuest, Machine, Station, Wire};

/// Longer than all acts together; a guest that stands still counts too.
const LIFE: Duration = Duration::from_secs(900);
/// MiB: the program is small.
const MEMORY: u32 = 512;
/// How long one guest is listened to before the other's turn comes.
const MOMENT: Duration = Duration::from_millis(10);

/// A guest at each station.
pub(super) struct Pair {
    guest: Guest,
    program: PathBuf,
    wires: [Wire; 2],
    near: Party,
    /// None while it is dead.
    far: Option<Party>,
}

/// A guest and its words.
struct Party {
    guest: InteractiveGuest,
    /// Its network cards, until they are plugged in.
    cards: Vec<UnixStream>,
    orders: u64,
    answers: HashMap<u64, Answer>,
    events: Vec<CmEvent>,
}

impl Pair {
    /// Starts both.
    pub(super) fn start(guest: &Guest, program: &Path) -> anyhow::Result<Self> {
        let wires = [Wire::default(), Wire::default()];
        let mut near = Party::start(guest, program, Station::Near)?;
        near.plug(&wires, Station::Near)?;
        let mut far = Party::start(guest, program, Station::Far)?;
        far.plug(&wires, Station::Far)?;
        let mut pair = Self {
            guest: guest.clone(),
            program: program.to_owned(),
            wires,
            near,
            far: Some(far),
        };
        pair.wait_until_up(Station::Near)?;
        pair.wait_until_up(Station::Far)?;
        Ok(pair)
    }

    /// A guest whose network stands only half answers some of what it is
    /// asked, so it is waited for: until its program does something.
    fn wait_until_up(&mut self, station: Station) -> anyhow::Result<()> {
        let line = "true".to_owned();
        let order = self.order(station, Step::Run { line })?;
        while self.answer(station, order)?.is_none() {
            self.listen()?;
        }
        Ok(())
    }

    fn party(&mut self, station: Station) -> anyhow::Result<&mut Party> {
        match station {
            Station::Near => Ok(&mut self.near),
            Station::Far => self.far.as_mut().context("the far guest is dead"),
        }
    }

    /// Gives an order; its number.
    pub(super) fn order(&mut self, station: Station, step: Step) -> anyhow::Result<u64> {
        let party = self.party(station)?;
        party.orders += 1;
        let number = party.orders;
        let order = serde_json::to_string(&Order { number, step }).context("write an order")?;
        party.guest.tell(&order)?;
        Ok(number)
    }

    /// The answer to an order, once it is there.
    pub(super) fn answer(
        &mut self,
        station: Station,
        order: u64,
    ) -> anyhow::Result<Option<Answer>> {
        Ok(self.party(station)?.answers.remove(&order))
    }

    /// The first event for this uid, once it is there.
    pub(super) fn happening(
        &mut self,
        station: Station,
        uid: u64,
    ) -> anyhow::Result<Option<CmEvent>> {
        let events = &mut self.party(station)?.events;
        let place = events.iter().position(|one| one.uid == uid);
        Ok(place.map(|place| events.remove(place)))
    }

    /// Listens to both for a moment; trouble with either is an error.
    pub(super) fn listen(&mut self) -> anyhow::Result<()> {
        self.near.listen(MOMENT).context("the near guest")?;
        if let Some(far) = &mut self.far {
            far.listen(MOMENT).context("the far guest")?;
        }
        Ok(())
    }

    /// The far guest stands still.
    pub(super) fn freeze(&mut self) -> anyhow::Result<()> {
        self.party(Station::Far)?.guest.freeze()
    }

    /// The far guest goes on.
    pub(super) fn thaw(&mut self) -> anyhow::Result<()> {
        self.party(Station::Far)?.guest.thaw()
    }

    /// The far guest dies at once, without a last word on the wire.
    pub(super) fn kill(&mut self) {
        self.far = None;
    }

    /// Another guest comes up in place of the one that died, with its
    /// addresses, but off the wires. A boot may take longer than the near guest asks a
    /// silent peer, so that stands still meanwhile.
    pub(super) fn restart(&mut self) -> anyhow::Result<()> {
        self.far = None;
        self.near.guest.freeze()?;
        let far = Party::start(&self.guest, &self.program, Station::Far)?;
        self.far = Some(far);
        self.wait_until_up(Station::Far)?;
        self.near.guest.thaw()
    }

    /// The far guest's cards are plugged into the wires.
    pub(super) fn plug(&mut self) -> anyhow::Result<()> {
        let far = self.far.as_mut().context("the far guest is dead")?;
        far.plug(&self.wires, Station::Far)
    }

    /// Ends both in order.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.near.guest.end().context("the near guest")?;
        match self.far {
            Some(far) => far.guest.end().context("the far guest"),
            None => Ok(()),
        }
    }
}

impl Party {
    fn start(guest: &Guest, program: &Path, station: Station) -> anyhow::Result<Self> {
        let machine = Machine {
            timeout: LIFE,
            memory: MEMORY,
            station: Some(station),
            ..Machine::default()
        };
        let argv = [program.to_string_lossy().into_owned()];
        let mut running = InteractiveGuest::start(guest, &machine, &argv)?;
        Ok(Self {
            cards: running.wires(),
            guest: running,
            orders: 0,
            answers: HashMap::new(),
            events: Vec::new(),
        })
    }

    fn plug(&mut self, wires: &[Wire], station: Station) -> anyhow::Result<()> {
        let cards = wires.iter().zip(self.cards.drain(..));
        for (wire, card) in cards {
            wire.plug(station, card)?;
        }
        Ok(())
    }

    fn listen(&mut self, moment: Duration) -> anyhow::Result<()> {
        let mut wait = moment;
        while let Some(line) = self.guest.hear(wait)? {
            let word = serde_json::from_str(&line).map_err(|error| anyhow!("{error}: {line}"))?;
            match word {
                Message::Answer { number, answer } => drop(self.answers.insert(number, answer)),
                Message::Event(happening) => self.events.push(happening),
            }
            // What is there already, and no more.
            wait = Duration::ZERO;
        }
        Ok(())
    }
}
