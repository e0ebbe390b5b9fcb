//! Watches a closed loop: fills the tables, and compares each tick's hash with the recorded one.

use super::super::feed::SharedFeed;
use super::super::source::StreamReport;
use super::super::tables::TOGETHER;
use super::super::{HashDifference, Part, TraceTables, TrafficBytes};
use super::ReplayMachine;
use crate::game::{Game, ShotVerdict};
use crate::packet::Snapshot;
use crate::pipeline::{ClientFrameOutput, JudgedShot, Netcode, ReconcileOutcome, ServerPipeline, TickOutcome};
use crate::session::{Observer, ScreenView, SnapshotSize};
use hitreg_log::record::{ArrivalRecord, Execution, PacketRecord};
use hitreg_log::trace::Table;
use hitreg_log::units::{CommandSeq, Micros, PlayerId, Tick};

/// The position of the replay relative to the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplayPhase {
    /// So long before the part that none of its rows depends on it.
    Away,
    /// Before the part: rows are made for later lookups, then discarded.
    Before,
    Within,
    /// After the part; its rows may still wait for arrivals or verdicts.
    After,
}

/// An observer that fills the tables and compares each tick's hash with the recorded one.
pub(super) struct HashChecker<'a, 'f> {
    pub(super) tables: TraceTables,
    feed: SharedFeed<'f>,
    /// Receives the rows of full tables.
    pub(super) to: Option<&'a mut dyn FnMut(Table)>,
    /// The replayed part of the session.
    part: Part,
    place: ReplayPhase,
    /// Until this time, only tick hashes are compared.
    away_until: Micros,
    /// When all tables were last passed on.
    passed_on: Micros,
    pub(super) first_difference: Option<HashDifference>,
    pub(super) compared: u64,
    compared_before: u64,
    pub(super) traffic: TrafficBytes,
    progress: &'a mut dyn FnMut(Micros),
}

impl<'a, 'f> HashChecker<'a, 'f> {
    pub(super) fn new(
        tables: TraceTables,
        feed: SharedFeed<'f>,
        (part, to): (Part, Option<&'a mut dyn FnMut(Table)>),
        progress: &'a mut dyn FnMut(Micros),
    ) -> HashChecker<'a, 'f> {
        let place = if part == Part::WHOLE { ReplayPhase::Within } else { ReplayPhase::Before };
        let (passed_on, first_difference, compared, traffic) = (Micros::ZERO, None, 0, TrafficBytes::default());
        let compared_before = 0;
        HashChecker {
            tables,
            feed,
            to,
            part,
            place,
            away_until: part.from,
            passed_on,
            first_difference,
            compared,
            compared_before,
            traffic,
            progress,
        }
    }

    /// Ignores everything but tick hashes until `at`.
    pub(super) fn look_away_until(&mut self, at: Micros) {
        if self.place == ReplayPhase::Before {
            (self.place, self.away_until) = (ReplayPhase::Away, at);
        }
    }

    /// Returns the result, besides the tables.
    pub(super) fn report<G: Netcode>(&self, machine: &mut ReplayMachine<'_, G>) -> StreamReport {
        let rollbacks = machine.server().rollbacks().unwrap_or_default();
        StreamReport {
            first_difference: self.first_difference,
            hashes_compared: self.compared,
            hashes_before: self.compared_before,
            traffic: self.traffic,
            rollbacks: rollbacks.checked,
            rollback_error: rollbacks.failed,
            jumps: Vec::new(),
        }
    }

    /// Advances the place to `at`. Returns whether to record what happens then.
    fn goes_on(&mut self, at: Micros) -> bool {
        if self.place == ReplayPhase::Away && at >= self.away_until {
            self.place = ReplayPhase::Before;
        }
        if self.place == ReplayPhase::Before && at >= self.part.from {
            self.tables.begin_part();
            (self.place, self.passed_on) = (ReplayPhase::Within, at);
        }
        if self.place == ReplayPhase::Within && at >= self.part.to {
            self.place = ReplayPhase::After;
        }
        self.is_looking()
    }

    fn is_looking(&self) -> bool {
        matches!(self.place, ReplayPhase::Before | ReplayPhase::Within)
    }

    fn pass_on(&mut self) {
        match &mut self.to {
            Some(_) if self.place == ReplayPhase::Before => self.tables.take_full(&mut |_| {}),
            Some(to) => self.tables.take_full(to),
            None => {}
        }
    }

    /// Passes all rows on from time to time, so that no table lags far behind the others.
    fn pass_all_on(&mut self, at: Micros) {
        if let Some(to) = &mut self.to
            && self.place == ReplayPhase::Within
            && at.0.saturating_sub(self.passed_on.0) > TOGETHER.0
        {
            self.passed_on = at;
            self.tables.take(1, to);
        }
    }
}

impl<G: Game> Observer<G> for HashChecker<'_, '_> {
    fn tick_begins(&mut self, at: Micros) {
        self.goes_on(at);
    }

    fn looks(&mut self, at: Micros) -> bool {
        self.goes_on(at) && Observer::<G>::looks(&mut self.tables, at)
    }

    fn frame(
        &mut self,
        player: PlayerId,
        at: Micros,
        commanded: &ClientFrameOutput<G>,
        shown: &ScreenView<'_, G::Body>,
    ) {
        if self.goes_on(at) {
            self.tables.frame(player, at, commanded, shown);
            self.pass_on();
        }
    }

    fn packet_sent(&mut self, player: PlayerId, packet: PacketRecord) {
        self.traffic.up_bytes += u64::from(packet.bytes);
        if self.goes_on(packet.at) {
            Observer::<G>::packet_sent(&mut self.tables, player, packet);
        }
    }

    fn snapshot_sent(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<G::Body>, packed: SnapshotSize) {
        self.traffic.down_bytes += u64::from(packed.bytes);
        if self.goes_on(at) {
            Observer::<G>::snapshot_sent(&mut self.tables, player, at, snapshot, packed);
        }
    }

    fn packet_reached(&mut self, player: PlayerId, arrival: ArrivalRecord) {
        Observer::<G>::packet_reached(&mut self.tables, player, arrival);
    }

    fn executed(&mut self, player: PlayerId, command: CommandSeq, tick: Tick, how: Execution) {
        // The usercmd runs in the tick that has begun, whose time set the place.
        if self.is_looking() {
            Observer::<G>::executed(&mut self.tables, player, command, tick, how);
        }
    }

    fn judged(&mut self, at: Micros, tick: Tick, judged: &JudgedShot<G>) {
        match self.goes_on(at) {
            true => self.tables.judged(at, tick, judged),
            false => self.tables.judged_later(judged),
        }
    }

    fn impact(
        &mut self,
        at: Micros,
        tick: Tick,
        by: PlayerId,
        with: CommandSeq,
        weapon: &'static str,
        v: &ShotVerdict,
    ) {
        if self.goes_on(at) {
            Observer::<G>::impact(&mut self.tables, at, tick, by, with, weapon, v);
        }
    }

    fn ticked(&mut self, at: Micros, ticked: TickOutcome, world: &G::World) {
        (self.progress)(at);
        let hash = {
            let mut feed = self.feed.borrow_mut();
            feed.reached(at);
            feed.hash_of(ticked.tick)
        };
        if self.goes_on(at) {
            Observer::<G>::ticked(&mut self.tables, at, ticked, world);
            self.pass_on();
        }
        if let Some(hash) = hash.filter(|_| self.place != ReplayPhase::After) {
            self.compared += 1;
            self.compared_before += u64::from(self.place != ReplayPhase::Within);
            if hash != ticked.hash && self.first_difference.is_none() {
                let replayed = Some(ticked.hash);
                self.first_difference = Some(HashDifference { tick: ticked.tick, at, recorded: hash, replayed });
            }
        }
        self.pass_all_on(at);
    }

    fn snapshot_received(
        &mut self,
        player: PlayerId,
        at: Micros,
        snapshot: &Snapshot<G::Body>,
        reconciled: Option<&ReconcileOutcome>,
    ) {
        match self.goes_on(at) {
            true => Observer::<G>::snapshot_received(&mut self.tables, player, at, snapshot, reconciled),
            false => self.tables.snapshot_reached(player, snapshot.seq, at),
        }
    }
}
