//! Usercmds in the `frames` table, and their packets in the table `packets`.

use glam::Vec3;

use super::frames::Row;
use super::packets;
use crate::record::{PacketRecord, is_frames_column};
use crate::trace::{Column, Table};
use crate::units::{Micros, PlayerId};
use crate::usercmd::Usercmd;

/// Returns the columns of the usercmd fields that the game declares.
pub fn own_input(frames: &Table) -> impl Iterator<Item = &Column> {
    frames.columns.iter().filter(|column| !is_frames_column(&column.name))
}

impl Row<'_> {
    /// Returns the row of a client frame with its usercmd and without any results.
    pub fn of_usercmd(player: PlayerId, at: Micros, command: &Usercmd) -> Self {
        let input = &command.input;
        Row {
            player: player.0.into(),
            at_us: at.0,
            command: command.seq.0,
            lerp_msec: command.lerp_msec.into(),
            msec: input.msec.into(),
            server_time_us: command.server_time.0,
            pitch: input.viewangles.x,
            yaw: input.viewangles.y,
            roll: input.viewangles.z,
            forwardmove: input.forwardmove,
            sidemove: input.sidemove,
            upmove: input.upmove,
            buttons: input.buttons.into(),
            impulse: input.impulse.into(),
            ran: 0,
            first_effects: 0,
            has_body: 0,
            drawn: Vec3::ZERO,
        }
    }
}

impl packets::Row<'_> {
    /// Returns the row of a sent packet that has not arrived, without its size.
    pub fn of_packet(player: PlayerId, packet: &PacketRecord) -> Self {
        packets::Row {
            player: player.0.into(),
            packet: packet.number,
            at_us: packet.at.0,
            arrived: 0,
            took_ms: f32::NAN,
            newest: packet.newest.0,
            usercmds: packet.count.into(),
            ack: packet.ack.0,
            bytes: None,
        }
    }
}
