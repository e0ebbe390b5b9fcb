//! Decodes players in a server's recording (`.mvd`), which contains only changes.

use super::error::QwdResult;
use super::players::read_slot;
use super::protocol::Extensions;
use super::recording::OtherPlayer;
use super::wire::read_coord;
use crate::quakeworld::bytes::Bytes;
use crate::quakeworld::movement::decode_angle16;
use hitreg_log::sorted::SortedMap;

const ORIGIN: [u16; 3] = [1 << 0, 1 << 1, 1 << 2];
const ANGLES: [u16; 3] = [1 << 3, 1 << 4, 1 << 5];
const EFFECTS: u16 = 1 << 6;
const SKIN: u16 = 1 << 7;
const DEAD: u16 = 1 << 8;
const GIB: u16 = 1 << 9;
const WEAPON_FRAME: u16 = 1 << 10;
const MODEL: u16 = 1 << 11;

/// The last known state of each player, by slot.
#[derive(Debug, Default)]
pub(crate) struct ServedPlayers {
    players: SortedMap<u8, ServedPlayer>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ServedPlayer {
    origin: [f32; 3],
    angles: [f32; 3],
    model: u8,
}

impl ServedPlayers {
    /// Reads the message about one player; a player with the model `head` is a gibbed head.
    pub(crate) fn read(&mut self, bytes: &mut Bytes<'_>, ext: Extensions, head: Option<u8>) -> QwdResult<OtherPlayer> {
        let slot = read_slot(bytes)?;
        let flags = bytes.u16()?;
        bytes.u8()?; // the frame of its animation
        let mut player = self.players.get(&slot).copied().unwrap_or_default();
        for (value, flag) in player.origin.iter_mut().zip(ORIGIN) {
            if flags & flag != 0 {
                *value = read_coord(bytes, ext)?;
            }
        }
        for (value, flag) in player.angles.iter_mut().zip(ANGLES) {
            if flags & flag != 0 {
                *value = decode_angle16(bytes.i16()?);
            }
        }
        if flags & MODEL != 0 {
            player.model = bytes.u8()?;
        }
        for flag in [SKIN, EFFECTS, WEAPON_FRAME] {
            if flags & flag != 0 {
                bytes.u8()?;
            }
        }
        self.players.insert(slot, player);
        let ServedPlayer { origin, angles, model } = player;
        let gib = flags & GIB != 0 || head == Some(model);
        let (dead, velocity, command) = (flags & DEAD != 0, [0; 3], None);
        Ok(OtherPlayer { slot, origin, velocity, angles, age_ms: 0, dead, gib, command, bot: false })
    }
}
