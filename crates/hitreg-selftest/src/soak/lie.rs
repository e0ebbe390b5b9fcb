//! Lies of a client: changes of the real client's packets before sending.

use serde::Serialize;

use hitreg_log::rng::Rng;
use hitreg_log::units::{CommandSeq, Micros, SnapshotSeq};
use hitreg_netcode::packet::ClientPacket;

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

    /// Makes a packet claim this instead of the truth. `newest` is the newest snapshot received.
    pub(crate) fn put_in(self, packet: &mut ClientPacket, newest: SnapshotSeq) {
        if self.gap > 0 {
            // Numbers within a packet must be consecutive.
            packet.commands.drain(..packet.commands.len().saturating_sub(1));
        }
        for command in &mut packet.commands {
            command.seq = CommandSeq(command.seq.0.saturating_mul(1 + self.gap));
            command.server_time += Micros::from_ms(self.clock_ms.into());
            command.lerp_msec = self.lerp_ms.unwrap_or(command.lerp_msec);
            command.input.msec = self.msec.unwrap_or(command.input.msec);
        }
        packet.ack = SnapshotSeq(newest.0.saturating_add_signed(self.ack_back.saturating_neg()));
    }
}
