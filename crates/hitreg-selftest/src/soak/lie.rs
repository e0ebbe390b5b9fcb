//! A lying client: the real client, with its packets changed before sending.

use serde::Serialize;

use hitreg_arena::{Arena, ArenaBody};
use hitreg_log::rng::Rng;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq};
use hitreg_log::usercmd::Input;
use hitreg_netcode::client::Client;
use hitreg_netcode::game::PlacedBody;
use hitreg_netcode::packet::{ClientPacket, Snapshot};
use hitreg_netcode::pipeline::{ClientFrameOutput, ClientPipeline, ReconcileOutcome, Setup};

/// The false claims of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FalseClaims {
    /// The offset of the claimed clock in ms.
    pub clock_ms: i32,
    /// The claimed drawing delay behind the clock, in ms.
    pub lerp_ms: Option<u16>,
    /// The claimed duration of each usercmd, in ms.
    pub msec: Option<u8>,
    /// The number of usercmd numbers skipped before each usercmd.
    pub gap: u32,
    /// How many snapshots the ack is older than the newest received. Negative values ack snapshots that the client
    /// cannot have.
    pub ack_back: i32,
}

impl FalseClaims {
    pub(super) fn of(rng: &mut Rng) -> FalseClaims {
        let clock_ms = match rng.below(8) {
            0 => 0,
            1 => i32::MAX - rng.below(2) as i32,
            2 => i32::MIN,
            _ => rng.below(1_000) as i32 - 500,
        };
        let lerp_ms = rng.chance(0.3).then(|| rng.below(1 << 16) as u16);
        let msec = rng.chance(0.4).then(|| rng.below(256) as u8);
        let gap = if rng.chance(0.4) { rng.below(40) as u32 } else { 0 };
        let ack_back = if rng.chance(0.3) { rng.below(80) as i32 - 10 } else { 0 };
        FalseClaims { clock_ms, lerp_ms, msec, gap, ack_back }
    }
}

/// A client that may lie.
pub(super) struct LyingClient {
    client: Client<Arena>,
    lie: Option<FalseClaims>,
    newest: SnapshotSeq,
}

impl LyingClient {
    pub(super) fn with(self, lie: Option<FalseClaims>) -> LyingClient {
        LyingClient { lie, ..self }
    }
}

impl ClientPipeline<Arena> for LyingClient {
    fn new(setup: Setup<Arena>, player: PlayerId) -> LyingClient {
        LyingClient { client: Client::new(setup, player), lie: None, newest: SnapshotSeq(0) }
    }

    fn number_from(&mut self, first: CommandSeq) {
        self.client.number_from(first);
    }

    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<ArenaBody>) -> Option<ReconcileOutcome> {
        self.newest = self.newest.max(snapshot.seq);
        self.client.handle_snapshot(now, snapshot)
    }

    fn look(&mut self, now: Micros) {
        self.client.look(now);
    }

    fn command(&mut self, now: Micros, input: &Input) -> ClientFrameOutput<Arena> {
        let mut commanded = self.client.command(now, input);
        let Some(lie) = self.lie else { return commanded };
        let packet = &mut commanded.packet;
        if lie.gap > 0 {
            // Numbers within a packet must be consecutive.
            packet.commands.drain(..packet.commands.len().saturating_sub(1));
        }
        for command in &mut packet.commands {
            command.seq = CommandSeq(command.seq.0.saturating_mul(1 + lie.gap));
            command.server_time += Micros::from_ms(lie.clock_ms.into());
            command.lerp_msec = lie.lerp_ms.unwrap_or(command.lerp_msec);
            command.input.msec = lie.msec.unwrap_or(command.input.msec);
        }
        packet.ack = SnapshotSeq(self.newest.0.saturating_add_signed(lie.ack_back.saturating_neg()));
        commanded
    }

    fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        self.client.handle_sent(packet, bytes);
    }

    fn drawn(&self) -> &[(EntityId, PlacedBody<ArenaBody>)] {
        self.client.drawn()
    }

    fn drawn_at(&self) -> Micros {
        self.client.drawn_at()
    }

    fn predicted(&self) -> Option<&ArenaBody> {
        self.client.predicted()
    }
}
