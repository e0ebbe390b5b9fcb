//! Watches a closed loop: fills the tables, and compares each tick's hash with the recorded one.

use super::super::feed::SharedFeed;
use super::super::tables::TOGETHER;
use super::super::{HashDifference, Part, ReplayFindings, TraceTables, TrafficBytes};
use super::ReplayMachine;
use crate::game::Game;
use crate::pipeline::{Event, Netcode, Rollbacks, ServerPipeline, TickOutcome};
use crate::session::{Observer, SessionEvent, TransportKind};
use hitreg_log::trace::Table;
use hitreg_log::units::Micros;

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
    to: Option<&'a mut dyn FnMut(Table)>,
    /// The replayed part of the session.
    part: Part,
    phase: ReplayPhase,
    /// Until this time, only tick hashes are compared.
    away_until: Micros,
    /// The last time at which hashes are compared: after a missing part, no replay equals the recording.
    compares_until: Micros,
    /// When all tables were last passed on.
    passed_on: Micros,
    findings: ReplayFindings,
    traffic: TrafficBytes,
    progress: &'a mut dyn FnMut(Micros),
}

impl<'a, 'f> HashChecker<'a, 'f> {
    pub(super) fn new(
        tables: TraceTables,
        feed: SharedFeed<'f>,
        (part, to): (Part, Option<&'a mut dyn FnMut(Table)>),
        compares_until: Micros,
        progress: &'a mut dyn FnMut(Micros),
    ) -> HashChecker<'a, 'f> {
        let phase = if part == Part::WHOLE { ReplayPhase::Within } else { ReplayPhase::Before };
        HashChecker {
            tables,
            feed,
            to,
            part,
            phase,
            away_until: part.from,
            compares_until,
            passed_on: Micros::ZERO,
            findings: ReplayFindings::default(),
            traffic: TrafficBytes::default(),
            progress,
        }
    }

    /// Ignores everything but tick hashes until `at`.
    pub(super) fn look_away_until(&mut self, at: Micros) {
        if self.phase == ReplayPhase::Before {
            (self.phase, self.away_until) = (ReplayPhase::Away, at);
        }
    }

    /// Returns the result, besides the tables.
    pub(super) fn findings<G: Netcode>(&self, machine: &mut ReplayMachine<'_, G>) -> ReplayFindings {
        let Rollbacks { checked: rollbacks, failed: rollback_error } = machine.server().rollbacks().unwrap_or_default();
        let traffic = (machine.transport() != TransportKind::Unencoded).then_some(self.traffic);
        ReplayFindings { traffic, rollbacks, rollback_error, ..self.findings.clone() }
    }

    /// Advances the phase to `at`. Returns whether to record what happens then.
    fn advance(&mut self, at: Micros) -> bool {
        if self.phase == ReplayPhase::Away && at >= self.away_until {
            self.phase = ReplayPhase::Before;
        }
        if self.phase == ReplayPhase::Before && at >= self.part.from {
            self.tables.begin_part();
            (self.phase, self.passed_on) = (ReplayPhase::Within, at);
        }
        if self.phase == ReplayPhase::Within && at >= self.part.to {
            self.phase = ReplayPhase::After;
        }
        matches!(self.phase, ReplayPhase::Before | ReplayPhase::Within)
    }

    /// Compares a tick's hash with the recorded one, and records the tick if `event` is given.
    fn ticked<G: Game>(&mut self, at: Micros, outcome: TickOutcome, event: Option<SessionEvent<'_, G>>) {
        (self.progress)(at);
        let hash = {
            let mut feed = self.feed.borrow_mut();
            feed.reached(at);
            feed.hash_of(outcome.tick)
        };
        if let Some(event) = event {
            self.tables.event(at, event);
            self.pass_on();
        }
        if let Some(hash) = hash.filter(|_| self.phase != ReplayPhase::After && at <= self.compares_until) {
            self.findings.hashes_compared += 1;
            self.findings.hashes_before += u64::from(self.phase != ReplayPhase::Within);
            if hash != outcome.hash {
                let different = HashDifference { tick: outcome.tick, at, recorded: hash, replayed: Some(outcome.hash) };
                self.findings.first_difference.get_or_insert(different);
            }
        }
        self.pass_all_on(at);
    }

    fn pass_on(&mut self) {
        match &mut self.to {
            Some(_) if self.phase == ReplayPhase::Before => self.tables.take_full(&mut |_| {}),
            Some(to) => self.tables.take_full(to),
            None => {}
        }
    }

    /// Passes all rows on from time to time, so that no table lags far behind the others.
    fn pass_all_on(&mut self, at: Micros) {
        if let Some(to) = &mut self.to
            && self.phase == ReplayPhase::Within
            && at.0.saturating_sub(self.passed_on.0) > TOGETHER.0
        {
            self.passed_on = at;
            self.tables.take(1, to);
        }
    }
}

impl<G: Game> Observer<G> for HashChecker<'_, '_> {
    fn looks(&mut self, at: Micros) -> bool {
        self.advance(at) && Observer::<G>::looks(&mut self.tables, at)
    }

    fn event(&mut self, at: Micros, event: SessionEvent<'_, G>) {
        let is_recorded = self.advance(at);
        match &event {
            SessionEvent::PacketSent { packet, .. } => self.traffic.up_bytes += u64::from(packet.bytes),
            SessionEvent::SnapshotSent { size, .. } => self.traffic.down_bytes += u64::from(size.bytes),
            _ => {}
        }
        match event {
            SessionEvent::Ticked { outcome, .. } => self.ticked(at, outcome, is_recorded.then_some(event)),
            SessionEvent::Frame { .. } if is_recorded => {
                self.tables.event(at, event);
                self.pass_on();
            }
            // The rows that wait for an arrival may be of the part.
            SessionEvent::PacketReached { .. } => self.tables.event(at, event),
            SessionEvent::Server { event: Event::Judged(shot), .. } if !is_recorded => {
                self.tables.drop_predicted(shot);
            }
            SessionEvent::SnapshotReceived { player, snapshot, .. } if !is_recorded => {
                self.tables.snapshot_reached(player, snapshot.seq, at);
            }
            _ if is_recorded => self.tables.event(at, event),
            _ => {}
        }
    }
}
