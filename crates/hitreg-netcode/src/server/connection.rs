//! The server's state for one client.

use std::collections::VecDeque;
use std::sync::Arc;

use super::zone::ZoneOfKnowledge;
use crate::game::{Effect, Game};
use crate::history::{FRAMES_KEPT, History};
use crate::pacing::Calibration;
use crate::packet::Echo;
use crate::settings::Settings;
use crate::state::{state, value};
use hitreg_log::record::OutOfSequence;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, Micros, SnapshotSeq};
use hitreg_log::usercmd::{Input, Usercmd};

/// The most warnings in one snapshot; the newest are kept.
const WARNINGS_MAX: usize = 8;

/// The arrival of a usercmd.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketArrival {
    /// The time.
    pub(super) at: Micros,
    /// The send time of the newest snapshot that the client had, by the acks so far; `None` without an ack.
    pub(super) newest: Option<Micros>,
}

value!(PacketArrival { at, newest });

/// The longest duration that a usercmd can state.
const MSEC_MAX: Micros = Micros::from_ms(u8::MAX as i64);

/// Returns the most simulated time that a client carries from one tick to the next: the setting, and the time of one
/// usercmd. A usercmd may be longer than a tick, so even a client without delay saves up for it. Durations are whole
/// milliseconds, so those of some usercmds may exceed their time by one.
pub(super) fn credit_max(settings: &Settings) -> Micros {
    let usercmd = (settings.client.cmd_hz.interval() + Micros::from_ms(1)).min(MSEC_MAX);
    Micros::from_ms(settings.server.command_credit_ms) + usercmd
}

pub(super) struct PlayerConnection<G: Game> {
    /// The player's settings.
    pub(super) settings: Arc<Settings>,
    /// Whether any packet has arrived.
    pub(super) is_heard: bool,
    /// Whether the player has left. It then gets no snapshots.
    pub(super) has_left: bool,
    /// The newest usercmd that ran or was given up.
    pub(super) last_command: CommandSeq,
    /// Its input, to replace usercmds that are lost.
    pub(super) last_input: Input,
    /// Usercmds that were missing when due and may still arrive late.
    pub(super) missing: VecDeque<CommandSeq>,
    /// The simulated time that the client may still use.
    pub(super) credit: Micros,
    /// The frames that this client has of the snapshots sent to it: the only ones that it can have drawn.
    pub(super) history: History<G::Body>,
    /// The send times of the snapshots that a later ack may name.
    pub(super) sent: VecDeque<(SnapshotSeq, Micros)>,
    /// The newest acked snapshot, its send time, and the round trip until its first ack.
    pub(super) acked: SnapshotSeq,
    pub(super) acked_sent: Option<Micros>,
    pub(super) round_trip: Option<Micros>,
    /// The number of the last snapshot.
    pub(super) snapshot: SnapshotSeq,
    /// The time at which the next snapshot is due.
    pub(super) due_at: Micros,
    /// The time from which the rate allows the next snapshot.
    pub(super) rate_free_at: Micros,
    /// The number of updates that the rate has held back since the last snapshot.
    pub(super) held_back: u8,
    /// Usercmds that wait for their tick.
    pub(super) waiting: SortedMap<CommandSeq, (PacketArrival, Usercmd)>,
    /// The measurement of how early input arrives.
    pub(super) calibration: Calibration,
    /// The newest packet, its arrival time, and the number of packet numbers skipped so far.
    newest_packet: Option<(u32, Micros, u32)>,
    /// Warnings for the next snapshot.
    pub(super) warnings: Vec<OutOfSequence>,
    /// Effects for the next snapshot.
    pub(super) effects: Vec<Effect>,
    /// The filter for what the client receives.
    pub(super) zone: ZoneOfKnowledge,
}

state!(PlayerConnection<G: Game> {
    is_heard,
    has_left,
    last_command,
    last_input,
    missing,
    credit,
    history,
    sent,
    acked,
    acked_sent,
    round_trip,
    snapshot,
    due_at,
    rate_free_at,
    held_back,
    waiting,
    calibration,
    newest_packet,
    warnings,
    effects,
    zone,
} but { settings });

impl<G: Game> PlayerConnection<G> {
    pub(super) fn new(settings: Arc<Settings>) -> PlayerConnection<G> {
        PlayerConnection {
            is_heard: false,
            has_left: false,
            last_command: CommandSeq(0),
            last_input: Input::default(),
            missing: VecDeque::new(),
            credit: credit_max(&settings),
            history: History::default(),
            sent: VecDeque::with_capacity(FRAMES_KEPT),
            acked: SnapshotSeq(0),
            acked_sent: None,
            round_trip: None,
            snapshot: SnapshotSeq(0),
            due_at: Micros::ZERO,
            rate_free_at: Micros::ZERO,
            held_back: 0,
            waiting: SortedMap::new(),
            calibration: Calibration::default(),
            newest_packet: None,
            warnings: Vec::new(),
            effects: Vec::new(),
            zone: ZoneOfKnowledge::default(),
            settings,
        }
    }

    /// Measures the round trip of a snapshot at its first ack, as Quake III does. It includes the client's delay before
    /// sending. Packets repeat the ack until the next snapshot arrives; later acks would add that wait.
    pub(super) fn measure_latency(&mut self, now: Micros, ack: SnapshotSeq) {
        if ack <= self.acked {
            return;
        }
        if let Some((_, sent)) = self.sent.iter().rev().find(|(seq, _)| *seq == ack) {
            self.acked = ack;
            self.acked_sent = Some(*sent);
            self.round_trip = Some(now - *sent);
            while self.sent.front().is_some_and(|(seq, _)| *seq <= ack) {
                self.sent.pop_front();
            }
        }
    }

    /// Records a packet. An overtaken packet stays counted as lost, because its usercmds already arrived as repeats.
    pub(super) fn note_packet(&mut self, now: Micros, number: u32) {
        let (newest, lost) =
            self.newest_packet.map_or((number.saturating_sub(1), 0), |(newest, _, lost)| (newest, lost));
        if number > newest {
            self.newest_packet = Some((number, now, lost.wrapping_add(number - newest - 1)));
        }
    }

    /// Returns the echo of the client's packets for a snapshot sent at `now`.
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

    /// Deducts the duration of a usercmd from the time that the client may still use. Returns false when there is not
    /// enough.
    pub(super) fn spend(&mut self, msec: u8) -> bool {
        let cost = Micros::from_ms(msec.into());
        let is_enough = cost <= self.credit;
        if is_enough {
            self.credit = self.credit - cost;
        }
        is_enough
    }
}
