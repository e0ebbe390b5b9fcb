//! What the server knows of one client.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::zone::ZoneOfKnowledge;
use crate::game::{Effect, Game};
use crate::history::{FRAMES_KEPT, History};
use crate::pacing::Calibration;
use crate::packet::Echo;
use crate::settings::Settings;
use crate::state::fields;
use hitreg_log::record::OutOfSequence;
use hitreg_log::units::{CommandSeq, Micros, SnapshotSeq};
use hitreg_log::usercmd::{Input, Usercmd};

/// More warnings do not go with one snapshot; the newest count.
const WARNINGS_MAX: usize = 8;

pub(super) struct Connection<G: Game> {
    /// The settings of its player.
    pub(super) settings: Arc<Settings>,
    /// Whether anything of it has arrived.
    pub(super) is_heard: bool,
    /// The newest usercmd that was dealt with.
    pub(super) last_command: CommandSeq,
    /// What it said, to repeat it for those that never come.
    pub(super) last_input: Input,
    /// Commands that never came in time, in case they come late.
    pub(super) missing: VecDeque<CommandSeq>,
    /// How much simulated time the client may still use.
    pub(super) credit: Micros,
    /// The frames that were sent to this client: what it can have seen.
    pub(super) history: History<G::Body>,
    /// When each of the last snapshots was sent.
    pub(super) sent: VecDeque<(SnapshotSeq, Micros)>,
    /// The round trip as last measured.
    pub(super) round_trip: Option<Micros>,
    /// The last snapshot.
    pub(super) snapshot: SnapshotSeq,
    /// When the next snapshot is due.
    pub(super) due_at: Micros,
    /// When the rate allows the next packet.
    pub(super) rate_free_at: Micros,
    /// Usercmds whose tick has not come yet, with their arrival.
    pub(super) waiting: BTreeMap<CommandSeq, (Micros, Usercmd)>,
    /// How early input arrives.
    pub(super) calibration: Calibration,
    /// The newest packet that came, when, and how many numbers were passed over up to it.
    newest_packet: Option<(u32, Micros, u32)>,
    /// What the next snapshot warns of.
    pub(super) warnings: Vec<OutOfSequence>,
    /// Sounds and sights for the next snapshot.
    pub(super) effects: Vec<Effect>,
    /// What it is told of.
    pub(super) zone: ZoneOfKnowledge,
}

impl<G: Game> Connection<G> {
    fields!(
        G::Body,
        Connection {
            is_heard,
            last_command,
            last_input,
            missing,
            credit,
            history,
            sent,
            round_trip,
            snapshot,
            due_at,
            rate_free_at,
            waiting,
            newest_packet,
            warnings,
            effects,
        } in place { calibration, zone } but { settings }
    );

    pub(super) fn new(settings: Arc<Settings>) -> Connection<G> {
        Connection {
            is_heard: false,
            last_command: CommandSeq(0),
            last_input: Input::default(),
            missing: VecDeque::new(),
            credit: Micros::from_ms(settings.server.command_credit_ms),
            history: History::default(),
            sent: VecDeque::with_capacity(FRAMES_KEPT),
            round_trip: None,
            snapshot: SnapshotSeq(0),
            due_at: Micros::ZERO,
            rate_free_at: Micros::ZERO,
            waiting: BTreeMap::new(),
            calibration: Calibration::default(),
            newest_packet: None,
            warnings: Vec::new(),
            effects: Vec::new(),
            zone: ZoneOfKnowledge::default(),
            settings,
        }
    }

    /// The round trip, from the snapshot that a packet acks. It includes what the client waited with its packet.
    pub(super) fn measure_latency(&mut self, now: Micros, ack: SnapshotSeq) {
        if let Some((_, sent)) = self.sent.iter().rev().find(|(seq, _)| *seq == ack) {
            self.round_trip = Some(now - *sent);
        }
    }

    /// Takes note of a packet. One that was overtaken was counted as lost, and stays so: it came no sooner than its repeats.
    pub(super) fn note_packet(&mut self, now: Micros, number: u32) {
        let (newest, lost) =
            self.newest_packet.map_or((number.saturating_sub(1), 0), |(newest, _, lost)| (newest, lost));
        if number > newest {
            self.newest_packet = Some((number, now, lost.wrapping_add(number - newest - 1)));
        }
    }

    /// What a snapshot that leaves at `now` says of the client's packets.
    pub(super) fn echo(&self, now: Micros) -> Option<Echo> {
        let (number, arrived, lost) = self.newest_packet?;
        let held_ms = ((now - arrived).0 / 1000).clamp(0, u16::MAX.into()) as u16;
        Some(Echo { packet: number as u16, held_ms, lost: lost as u16 })
    }

    /// Keeps a warning for the next snapshot.
    pub(super) fn warn(&mut self, warning: OutOfSequence) {
        if self.warnings.len() == WARNINGS_MAX {
            self.warnings.remove(0);
        }
        self.warnings.push(warning);
    }

    pub(super) fn remember_missing(&mut self, seq: CommandSeq) {
        self.missing.push_back(seq);
        if self.missing.len() > FRAMES_KEPT {
            self.missing.pop_front();
        }
    }

    pub(super) fn grant_time(&mut self, dt: Micros, most: Micros) {
        self.credit = (self.credit + dt).min(most);
    }

    /// Takes the time of a usercmd from what the client may still use; false when there is not enough.
    pub(super) fn spend(&mut self, msec: u8) -> bool {
        let cost = Micros::from_ms(msec.into());
        let is_enough = cost <= self.credit;
        if is_enough {
            self.credit = self.credit - cost;
        }
        is_enough
    }

    pub(super) fn remember_sent(&mut self, seq: SnapshotSeq, at: Micros) {
        self.sent.push_back((seq, at));
        if self.sent.len() > FRAMES_KEPT {
            self.sent.pop_front();
        }
    }
}
