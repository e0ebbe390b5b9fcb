//! The recorded events of a session, by kind and in order of time. Measures read nothing else.

use glam::Vec3;

use crate::claims::script::IntendedFrame;
use hitreg_arena::{Arena, ArenaBody, ArenaEffect};
use hitreg_log::record::{ArrivalRecord, Execution, PacketRecord};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::{Effect, HitResult, Judge as _, PlacedBody, ShotVerdict, Simulate as _};
use hitreg_netcode::pipeline::{Comparison, Correction, TickEvent};
use hitreg_netcode::session::{Observer, SessionEvent, SnapshotSize};
use hitreg_netcode::wire::SnapshotBitCounts;

/// The events of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionWatch {
    pub(super) frames: Vec<ObservedFrame>,
    pub(super) ticks: Vec<ObservedTick>,
    pub(super) sent: Vec<ObservedSend>,
    pub(super) received: Vec<ObservedSnapshot>,
    pub(super) packets: Vec<(PlayerId, PacketRecord)>,
    pub(super) reached: Vec<(PlayerId, ArrivalRecord)>,
    pub(super) executed: Vec<ObservedExecution>,
    pub(super) shots: Vec<ObservedShot>,
    pub(super) impacts: Vec<(Micros, ShotVerdict)>,
    /// Each frame's intention; set after the session.
    pub(super) meant: Vec<IntendedFrame>,
    /// The index of each usercmd's frame.
    by_command: SortedMap<(PlayerId, CommandSeq), usize>,
    /// The number of players; set after the session.
    pub(super) players: u16,
    /// The time of the inspected frames; set after the session.
    pub(super) inspect: (Micros, Micros),
}

/// One client frame.
#[derive(Clone, Debug)]
pub(super) struct ObservedFrame {
    pub(super) player: PlayerId,
    pub(super) at: Micros,
    pub(super) command: Usercmd,
    /// The predicted own body.
    pub(super) own: Option<ArenaBody>,
    /// The origin at which the own body is drawn.
    pub(super) own_drawn: Option<Vec3>,
    /// The own body as drawn, when drawing by category.
    pub(super) own_placed: Option<PlacedBody<ArenaBody>>,
    pub(super) ran: u32,
    /// The number of usercmds in the packet.
    pub(super) carried: usize,
    pub(super) effects: Vec<Effect>,
    /// The client's verdicts on its shots.
    pub(super) shots: Vec<(CommandSeq, ShotVerdict)>,
    pub(super) drawn: Vec<(EntityId, PlacedBody<ArenaBody>)>,
    pub(super) drawn_at: Micros,
}

/// The world after a tick.
#[derive(Clone, Debug)]
pub(super) struct ObservedTick {
    pub(super) at: Micros,
    /// The hash of the complete world.
    pub(super) hash: u64,
    pub(super) bodies: Vec<(EntityId, ArenaBody)>,
}

/// A sent snapshot.
#[derive(Clone, Debug)]
pub(super) struct ObservedSend {
    pub(super) player: PlayerId,
    pub(super) at: Micros,
    /// The calibration helper.
    pub(super) helper_ms: Option<i16>,
    /// How many ticks each usercmd of a warning was ahead.
    pub(super) warnings: Vec<i16>,
    /// Whether the client's prediction matched the server's avatar.
    pub(super) saw_avatar_right: Option<bool>,
    pub(super) bytes: u16,
    /// The bits of its datagrams by purpose.
    pub(super) bit_counts: Option<SnapshotBitCounts>,
}

/// A usercmd that the server ran or dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedExecution {
    pub(super) player: PlayerId,
    pub(super) command: CommandSeq,
    pub(super) tick: Tick,
    pub(super) how: Execution,
}

/// A received snapshot.
#[derive(Clone, Debug)]
pub(super) struct ObservedSnapshot {
    pub(super) player: PlayerId,
    pub(super) at: Micros,
    pub(super) seq: SnapshotSeq,
    pub(super) ack: CommandSeq,
    pub(super) server_time: Micros,
    pub(super) bodies: Vec<(EntityId, ArenaBody)>,
    pub(super) effects: Vec<Effect>,
    pub(super) comparison: Option<Comparison>,
    pub(super) correction: Option<Correction>,
}

/// A judged shot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObservedShot {
    pub(super) shooter: PlayerId,
    pub(super) command: CommandSeq,
    pub(super) at: Micros,
    pub(super) muzzle: Vec3,
    pub(super) verdict: ShotVerdict,
    pub(super) rewound_by: Micros,
    pub(super) targets: Vec<(EntityId, ArenaBody)>,
}

impl SessionWatch {
    /// Whether this time is in the inspected part of the session.
    pub(super) fn inspects(&self, at: Micros) -> bool {
        (self.inspect.0..self.inspect.1).contains(&at)
    }

    /// A sum over the inspected part, per second.
    pub(super) fn per_s(&self, sum: usize) -> f64 {
        sum as f64 / (self.inspect.1 - self.inspect.0).as_s_f64()
    }

    pub(super) fn hits(&self) -> impl Iterator<Item = &ObservedShot> {
        self.shots.iter().filter(|shot| shot.verdict.reason == HitResult::Hit)
    }

    /// Returns the judged shots of one player.
    pub(super) fn shots_of(&self, player: u16) -> impl Iterator<Item = &ObservedShot> {
        self.shots.iter().filter(move |shot| shot.shooter.0 == player)
    }

    /// The snapshots that corrected a player's prediction.
    pub(super) fn corrected(&self, player: u16) -> impl Iterator<Item = &ObservedSnapshot> {
        self.received_by(player).filter(|snapshot| snapshot.correction.is_some())
    }

    /// Returns the frames of one player.
    pub(super) fn frames_of(&self, player: u16) -> impl DoubleEndedIterator<Item = &ObservedFrame> {
        self.frames.iter().filter(move |frame| frame.player.0 == player)
    }

    /// The frames of all players in the inspected part.
    pub(super) fn all_inspected(&self) -> impl Iterator<Item = &ObservedFrame> {
        self.frames.iter().filter(|frame| self.inspects(frame.at))
    }

    /// Returns the inspected frames of one player.
    pub(super) fn inspected(&self, player: u16) -> impl DoubleEndedIterator<Item = &ObservedFrame> {
        self.frames_of(player).filter(|frame| self.inspects(frame.at))
    }

    /// Returns the packets that one player sent within the inspected time.
    pub(super) fn packets_of(&self, player: u16) -> impl Iterator<Item = &PacketRecord> {
        let sent = self.packets.iter().filter(move |(sender, _)| sender.0 == player).map(|(_, packet)| packet);
        sent.filter(|packet| self.inspects(packet.at))
    }

    /// Returns the newest snapshot that one player has at a time.
    pub(super) fn newest_for(&self, player: u16, at: Micros) -> Option<&ObservedSnapshot> {
        self.received_by(player).filter(|snapshot| snapshot.at <= at).max_by_key(|snapshot| snapshot.seq)
    }

    /// Returns an entity's body in the newest snapshot that one player has at a time.
    pub(super) fn newest_body(&self, player: u16, at: Micros, entity: u16) -> Option<&ArenaBody> {
        body_of(&self.newest_for(player, at)?.bodies, entity)
    }

    /// Returns the tick at this time.
    pub(super) fn tick_at(&self, at: Micros) -> Option<&ObservedTick> {
        self.ticks.iter().find(|tick| tick.at == at)
    }

    /// Returns the snapshots that one player received.
    pub(super) fn received_by(&self, player: u16) -> impl DoubleEndedIterator<Item = &ObservedSnapshot> {
        self.received.iter().filter(move |snapshot| snapshot.player.0 == player)
    }

    /// Returns the send times of snapshots to one player.
    pub(super) fn sent_to(&self, player: u16) -> impl Iterator<Item = &ObservedSend> {
        self.sent.iter().filter(move |sent| sent.player.0 == player)
    }

    /// Returns the frame in which a player made a usercmd.
    pub(super) fn frame_of(&self, player: PlayerId, command: CommandSeq) -> Option<&ObservedFrame> {
        Some(&self.frames[self.index_of(player, command)?])
    }

    /// Returns a player's lead before its target in a usercmd, in units.
    pub(super) fn lead_of(&self, player: PlayerId, command: CommandSeq) -> Option<f32> {
        Some(self.meant.get(self.index_of(player, command)?)?.lead_units)
    }

    fn index_of(&self, player: PlayerId, command: CommandSeq) -> Option<usize> {
        self.by_command.get(&(player, command)).copied()
    }

    /// Returns an entity's origin on the server, interpolated linearly between ticks.
    pub(super) fn truth(&self, entity: u16, at: Micros) -> Option<Vec3> {
        let origin = |tick: &ObservedTick| body_of(&tick.bodies, entity).map(|body| body.origin);
        let after = self.ticks.partition_point(|tick| tick.at < at);
        let next = self.ticks.get(after)?;
        let Some(before) = after.checked_sub(1).map(|index| &self.ticks[index]) else { return origin(next) };
        let share = (at - before.at).0 as f32 / (next.at - before.at).0 as f32;
        Some(origin(before)?.lerp(origin(next)?, share))
    }
}

/// Returns one entity's body.
pub(super) fn body_of(bodies: &[(EntityId, ArenaBody)], entity: u16) -> Option<&ArenaBody> {
    bodies.iter().find(|(id, _)| id.0 == entity).map(|(_, body)| body)
}

impl ObservedFrame {
    /// Returns whether the client plays such an effect.
    pub(super) fn plays(&self, kind: ArenaEffect) -> bool {
        self.effects.iter().any(|effect| effect.kind == kind as u8)
    }

    /// Returns one other entity as drawn.
    pub(super) fn drawn(&self, entity: u16) -> Option<&PlacedBody<ArenaBody>> {
        self.drawn.iter().find(|(id, _)| id.0 == entity).map(|(_, placed)| placed)
    }
}

impl Observer<Arena> for SessionWatch {
    fn event(&mut self, at: Micros, event: &SessionEvent<'_, Arena>) {
        match *event {
            SessionEvent::Frame { player, output, ref screen } => {
                self.by_command.insert((player, output.command.seq), self.frames.len());
                self.frames.push(ObservedFrame {
                    player,
                    at,
                    command: output.command.clone(),
                    own: output.predicted,
                    own_drawn: output.drawn_origin,
                    own_placed: output.own.clone(),
                    ran: output.ran,
                    carried: output.packet.commands.len(),
                    effects: output.effects.clone(),
                    shots: output.shots.iter().map(|shot| (shot.command, shot.verdict.clone())).collect(),
                    drawn: screen.drawn.to_vec(),
                    drawn_at: screen.drawn_at,
                });
            }
            SessionEvent::PacketSent { player, packet, .. } => self.packets.push((player, packet)),
            SessionEvent::PacketReached { player, packet: received } => {
                self.reached.push((player, ArrivalRecord { number: received.packet.number, at }));
            }
            SessionEvent::Server { tick, event } => match event {
                &TickEvent::Executed { player, command, how } => {
                    self.executed.push(ObservedExecution { player, command, tick, how });
                }
                TickEvent::Presence { .. } => {}
                TickEvent::Judged(shot) => self.shots.push(ObservedShot {
                    shooter: shot.shooter,
                    command: shot.command,
                    at,
                    muzzle: Arena::aim(&shot.fire).0,
                    verdict: shot.verdict.clone(),
                    rewound_by: shot.rewind.by,
                    targets: shot.rewind.targets.clone(),
                }),
                TickEvent::Impact { verdict, .. } => self.impacts.push((at, verdict.clone())),
            },
            SessionEvent::Ticked { outcome, world } => {
                self.ticks.push(ObservedTick { at, hash: outcome.hash, bodies: Arena::entities(world).to_vec() });
            }
            SessionEvent::SnapshotSent { player, snapshot, size } => {
                let warnings = snapshot.warnings.iter().map(|warning| warning.difference).collect();
                let (helper_ms, SnapshotSize { bytes, saw_avatar_right, bit_counts, .. }) = (snapshot.helper_ms, size);
                self.sent.push(ObservedSend { player, at, helper_ms, warnings, saw_avatar_right, bytes, bit_counts });
            }
            SessionEvent::SnapshotReceived { player, snapshot, reconciled } => self.received.push(ObservedSnapshot {
                player,
                at,
                seq: snapshot.seq,
                ack: snapshot.ack,
                server_time: snapshot.frame.server_time,
                bodies: snapshot.frame.entities.clone(),
                effects: snapshot.effects.clone(),
                comparison: reconciled.and_then(|r| r.comparison),
                correction: reconciled.and_then(|r| r.correction.clone()),
            }),
        }
    }
}
