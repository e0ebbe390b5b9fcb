//! Counts what is made of a log, so that it stops before that is more than a file of its size has a right to: of memory where all
//! of it stays there, and of work where rows go on as they are made.

use std::cell::Cell;

use super::ReplayError;
use crate::game::{Body, Game, Verdict};
use crate::packet::{HeardPacket, Snapshot};
use crate::pipeline::{Commanded, Judged, Reconciled, Ticked};
use crate::session::{InputSource, Observer, Packed, Screen, Shown};
use hitreg_log::record::{Allowance, ArrivalRecord, Execution, PacketRecord, Presence};
use hitreg_log::units::{CommandSeq, Micros, PlayerId, Tick};
use hitreg_log::usercmd::Input;

/// About what a row of each kind takes, in bytes; those of bodies have their cells besides.
const FRAME: usize = 128;
const VIEW: usize = 48;
const TICK: usize = 32;
const BODY: usize = 8;
const EXECUTED: usize = 16;
const SHOT: usize = 256;
const EFFECT: usize = 48;
const SNAPSHOT: usize = 64;
/// A cell, and a part of its copy while rows are turned into columns.
const CELL: usize = 6;
/// A usercmd that nobody has acked, with the body after it and the packets that carry it; the first of them are not counted.
const UNHEARD: usize = 768;
const UNHEARD_FEW: usize = 1024;
/// What a client remembers of each of the others while it runs.
const REMEMBERED: usize = 1600;
/// A packet or a snapshot, where the trace says what went over the network.
const SENT_ROW: usize = 96;
/// An entity in a snapshot: little to hold, but work.
const SENT: usize = 2;

/// How much has been made.
#[derive(Debug)]
pub(super) struct Made {
    bytes: Cell<usize>,
    most: Allowance,
}

impl Made {
    pub(super) fn new(most: Allowance) -> Made {
        Made { bytes: Cell::new(0), most }
    }

    /// A server and so many clients begin to run.
    pub(super) fn begin(&self, players: usize) -> Result<(), ReplayError> {
        self.add(players * players * REMEMBERED);
        self.check()
    }

    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// Whether it is time to stop.
    pub(super) fn is_too_much(&self) -> bool {
        self.bytes.get() > self.most.bytes
    }

    /// The same input, which ends when it is time to stop.
    pub(super) fn bound<'a, I>(&'a self, input: &'a mut I) -> Bound<'a, I> {
        Bound { made: self, input }
    }

    /// What comes of it at the end.
    pub(super) fn check(&self) -> Result<(), ReplayError> {
        if self.is_too_much() { Err(ReplayError::TooLarge { limit_bytes: self.most.bytes }) } else { Ok(()) }
    }
}

/// Input that ends when too much has been made of it.
pub(super) struct Bound<'a, I> {
    made: &'a Made,
    input: &'a mut I,
}

impl<G: Game, I: InputSource<G>> InputSource<G> for Bound<'_, I> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        if self.made.is_too_much() { None } else { self.input.next_frame(player) }
    }

    fn input(&mut self, at: Micros, screen: &Screen<'_, G>) -> Input {
        self.input.input(at, screen)
    }

    fn looks(&self) -> bool {
        self.input.looks()
    }

    fn has_more(&self, player: PlayerId) -> bool {
        !self.made.is_too_much() && self.input.has_more(player)
    }

    fn next_heard(&mut self, player: PlayerId) -> Option<(Micros, HeardPacket)> {
        if self.made.is_too_much() { None } else { self.input.next_heard(player) }
    }
}

/// An observer whose memory is counted.
pub(super) struct Counted<'a, O> {
    pub(super) made: &'a Made,
    pub(super) observer: &'a mut O,
    /// How many frames of each player there were since it was last sent something.
    unheard: Vec<usize>,
}

impl<'a, O> Counted<'a, O> {
    pub(super) fn new(made: &'a Made, observer: &'a mut O) -> Self {
        Counted { made, observer, unheard: Vec::new() }
    }

    /// A client keeps what no snapshot has acked, and so does the link what is on its way.
    fn keep(&mut self, player: PlayerId) {
        let index = usize::from(player.0);
        if self.unheard.len() <= index {
            self.unheard.resize(index + 1, 0);
        }
        self.unheard[index] += 1;
        if self.unheard[index] > UNHEARD_FEW {
            self.made.add(UNHEARD);
        }
    }
}

impl<G: Game, O: Observer<G>> Observer<G> for Counted<'_, O> {
    fn tick_begins(&mut self, at: Micros) {
        self.observer.tick_begins(at);
    }

    fn looks(&mut self, at: Micros) -> bool {
        self.observer.looks(at)
    }

    fn frame(&mut self, player: PlayerId, at: Micros, commanded: &Commanded<G>, shown: &Shown<'_, G::Body>) {
        let shots = commanded.shots.len() * SHOT + commanded.effects.len() * EFFECT;
        self.keep(player);
        self.made.add(FRAME + CELL * G::Body::CELLS + shown.drawn.len() * VIEW + shots);
        self.observer.frame(player, at, commanded, shown);
    }

    fn packet_sent(&mut self, player: PlayerId, packet: PacketRecord) {
        self.made.add(SENT_ROW);
        self.observer.packet_sent(player, packet);
    }

    fn packet_reached(&mut self, player: PlayerId, arrival: ArrivalRecord) {
        self.observer.packet_reached(player, arrival);
    }

    fn packet_heard(&mut self, player: PlayerId, at: Micros, heard: &HeardPacket) {
        self.observer.packet_heard(player, at, heard);
    }

    fn executed(&mut self, player: PlayerId, command: CommandSeq, tick: Tick, how: Execution) {
        self.made.add(EXECUTED);
        self.observer.executed(player, command, tick, how);
    }

    fn presence(&mut self, player: PlayerId, at: Micros, tick: Tick, change: Presence) {
        self.observer.presence(player, at, tick, change);
    }

    fn judged(&mut self, at: Micros, tick: Tick, judged: &Judged<G>) {
        self.made.add(SHOT);
        self.observer.judged(at, tick, judged);
    }

    fn impact(&mut self, at: Micros, tick: Tick, by: PlayerId, with: CommandSeq, weapon: &'static str, v: &Verdict) {
        self.made.add(SHOT);
        self.observer.impact(at, tick, by, with, weapon, v);
    }

    fn ticked(&mut self, at: Micros, ticked: Ticked, world: &G::World) {
        self.made.add(TICK + G::entities(world).len() * (BODY + CELL * G::Body::CELLS));
        self.observer.ticked(at, ticked, world);
    }

    fn snapshot_sent(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<G::Body>, packed: Packed) {
        self.made.add(SENT_ROW + SENT * snapshot.frame.entities.len());
        self.observer.snapshot_sent(player, at, snapshot, packed);
    }

    fn snapshot_received(
        &mut self,
        player: PlayerId,
        at: Micros,
        snapshot: &Snapshot<G::Body>,
        reconciled: Option<&Reconciled>,
    ) {
        if let Some(unheard) = self.unheard.get_mut(usize::from(player.0)) {
            *unheard = 0;
        }
        self.made.add(SNAPSHOT + snapshot.effects.len() * EFFECT);
        self.observer.snapshot_received(player, at, snapshot, reconciled);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::arena::{Arena, ArenaBody, ArenaRules};
    use crate::game::Simulate;
    use crate::link::{LinkModel, Loss};
    use crate::session::record_synthetic;
    use crate::session::scenario::Scenario;

    /// Counts by itself what a session makes, by the sizes that rows take.
    #[derive(Default)]
    struct Tally {
        bytes: usize,
        /// Of player 0, and of player 1.
        frames: [usize; 2],
        kinds: [usize; 6],
    }

    impl Observer<Arena> for Tally {
        fn frame(&mut self, by: PlayerId, _: Micros, made: &Commanded<Arena>, shown: &Shown<'_, ArenaBody>) {
            self.bytes += 128 + 6 * ArenaBody::CELLS + 48 * shown.drawn.len();
            self.bytes += 256 * made.shots.len() + 48 * made.effects.len();
            self.frames[usize::from(by.0)] += 1;
            self.kinds[0] += made.shots.len();
            self.kinds[1] += made.effects.len();
        }

        fn packet_sent(&mut self, _: PlayerId, _: PacketRecord) {
            self.bytes += 96;
        }

        fn executed(&mut self, _: PlayerId, _: CommandSeq, _: Tick, _: Execution) {
            self.bytes += 16;
        }

        fn judged(&mut self, _: Micros, _: Tick, _: &Judged<Arena>) {
            self.bytes += 256;
            self.kinds[2] += 1;
        }

        fn impact(&mut self, _: Micros, _: Tick, _: PlayerId, _: CommandSeq, _: &'static str, _: &Verdict) {
            self.bytes += 256;
            self.kinds[3] += 1;
        }

        fn ticked(&mut self, _: Micros, _: Ticked, world: &<Arena as Simulate>::World) {
            self.bytes += 32 + Arena::entities(world).len() * (8 + 6 * ArenaBody::CELLS);
        }

        fn snapshot_sent(&mut self, _: PlayerId, _: Micros, snapshot: &Snapshot<ArenaBody>, _: Packed) {
            self.bytes += 96 + 2 * snapshot.frame.entities.len();
            self.kinds[4] += 1;
        }

        fn snapshot_received(
            &mut self,
            _: PlayerId,
            _: Micros,
            snapshot: &Snapshot<ArenaBody>,
            _: Option<&Reconciled>,
        ) {
            self.bytes += 64 + 48 * snapshot.effects.len();
            self.kinds[5] += snapshot.effects.len();
        }
    }

    fn count(scenario: &Scenario) -> (usize, Tally) {
        let (made, mut tally) = (Made::new(Allowance::default()), Tally::default());
        let rules = Arc::new(ArenaRules::default());
        record_synthetic::<Arena>(scenario, &rules, &mut Counted::new(&made, &mut tally)).expect("a scenario");
        (made.bytes.get(), tally)
    }

    #[test]
    fn all_that_a_session_makes_is_counted() {
        let (bytes, tally) = count(&Scenario { players: 2, seconds: 12.0, ..Scenario::default() });
        assert!(tally.kinds.iter().all(|number| *number > 0), "{:?} of each kind", tally.kinds);
        assert_eq!(bytes, tally.bytes);
    }

    #[test]
    fn usercmds_that_nobody_acks_are_counted_beyond_the_first() {
        let deaf = LinkModel { loss: Loss::Random(1.0), ..LinkModel::default() };
        let links = vec![LinkModel::default(), deaf];
        let (bytes, tally) = count(&Scenario { players: 2, seconds: 20.0, links, ..Scenario::default() });
        let beyond = tally.frames[1].checked_sub(1024).expect("a long session");
        assert!(beyond > 100 && tally.frames[0] > 1124);
        assert_eq!(bytes, tally.bytes + 768 * beyond);
    }

    #[test]
    fn what_is_too_much_is_more_than_the_most() {
        let made = Made::new(Allowance { bytes: 100 });
        made.add(100);
        assert!(!made.is_too_much() && made.check().is_ok());
        made.add(1);
        assert!(made.is_too_much() && made.check().is_err());
    }

    #[test]
    fn clients_remember_each_other() {
        let made = |players| Made::new(Allowance { bytes: 10 * 10 * REMEMBERED }).begin(players).is_ok();
        assert!(made(3) && made(10));
        assert!(!made(11) && !made(1_000));
    }
}
