//! Reads the messages about players: those for a client, and those in a server's recording (`.mvd`), which contain only
//! changes.

use super::wire::{Bytes, read_coord, read_delta, read_origin};
use super::{Extension, Extensions, OtherPlayer, OwnState, QwdError, QwdResult, ServerExtensions};
use crate::quakeworld::movement::decode_angle16;
use hitreg_log::sorted::SortedMap;

/// Number of player slots of a server.
pub(crate) const PLAYERS_MAX: u8 = 32;

/// Height of a head's origin above a standing player's, in units: a head's box starts at its origin, a player's 24
/// units below.
const HEAD_RAISE: f32 = 24.0;

/// Last animation frames of the player's deaths. From then on the game slows the body.
const LAST_OF_DEATH: [u8; 6] = [49, 60, 69, 84, 93, 102];

const MSEC: u32 = 1 << 0;
const COMMAND: u32 = 1 << 1;
const VELOCITY: [u32; 3] = [1 << 2, 1 << 3, 1 << 4];
const MODEL: u32 = 1 << 5;
const SKIN: u32 = 1 << 6;
const EFFECTS: u32 = 1 << 7;
const WEAPON_FRAME: u32 = 1 << 8;
const DEAD: u32 = 1 << 9;
const GIB: u32 = 1 << 10;
const MOVE_CODE_SHIFT: u32 = 11;
const MOVE_CODE_MASK: u32 = 7;
const EXTRA_FLAGS: u32 = 1 << 15;
const ALPHA: u32 = 1 << 17;
const COLOUR: u32 = 1 << 19;

/// Reads the number of a player's slot.
pub(crate) fn read_slot(bytes: &mut Bytes<'_>) -> QwdResult<u8> {
    let offset = bytes.offset();
    let slot = bytes.u8()?;
    if slot >= PLAYERS_MAX {
        return Err(QwdError::out_of_bounds(offset, "a player's slot", slot, PLAYERS_MAX));
    }
    Ok(slot)
}

/// A player message, before it is assigned to the own or another player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlayerMessage {
    pub(crate) state: OtherPlayer,
    move_code: u32,
    frame: u8,
}

impl PlayerMessage {
    /// Reads a message. A player with the model `head` is a gibbed head, which old servers do not mark in another way.
    pub(crate) fn read(bytes: &mut Bytes<'_>, ext: Extensions, head: Option<u8>) -> QwdResult<PlayerMessage> {
        let slot = read_slot(bytes)?;
        let mut flags = u32::from(bytes.u16()?);
        if ext.has(Extension::Transparency) && flags & EXTRA_FLAGS != 0 {
            flags |= u32::from(bytes.u8()?) << 16;
        }
        let origin = [read_origin(bytes, ext)?, read_origin(bytes, ext)?, read_origin(bytes, ext)?];
        let frame = bytes.u8()?;
        let age_ms = if flags & MSEC != 0 { bytes.u8()? } else { 0 };
        let command = if flags & COMMAND != 0 { Some(read_delta(bytes)?) } else { None };
        let mut velocity = [0; 3];
        for (speed, flag) in velocity.iter_mut().zip(VELOCITY) {
            if flags & flag != 0 {
                *speed = bytes.i16()?;
            }
        }
        let model = if flags & MODEL != 0 { Some(bytes.u8()?) } else { None };
        for flag in [SKIN, EFFECTS] {
            if flags & flag != 0 {
                bytes.u8()?;
            }
        }
        if flags & WEAPON_FRAME != 0 {
            bytes.u8()?;
            if ext.mvd1 & Extensions::WEAPON_PREDICTION != 0 && bytes.u8()? != 0 {
                bytes.take(22)?;
            }
        }
        if ext.has(Extension::Transparency) && flags & ALPHA != 0 {
            bytes.u8()?;
        }
        if ext.has(Extension::Colour) && ext.has(Extension::Transparency) && flags & COLOUR != 0 {
            bytes.take(3)?;
        }
        let (dead, gib) = (flags & DEAD != 0, flags & GIB != 0 || (model.is_some() && model == head));
        let angles = command.map_or([0.0; 3], |command| command.angles);
        let state = OtherPlayer { slot, origin, velocity, angles, age_ms, dead, gib, command, bot: false };
        Ok(PlayerMessage { state, frame, move_code: flags >> MOVE_CODE_SHIFT & MOVE_CODE_MASK })
    }

    /// Returns the message as the recording player's own state.
    pub(crate) fn own(&self, server: ServerExtensions, over: bool) -> OwnState {
        let OtherPlayer { mut origin, velocity, dead, gib, .. } = self.state;
        if gib {
            origin[2] += HEAD_RAISE;
        }
        let normal = self.move_code <= 1;
        let jump_held = (server.says_jump_held() && normal).then_some(self.move_code == 1);
        let movable = !server.says_jump_held() || normal;
        let lies = dead && (gib || LAST_OF_DEATH.contains(&self.frame));
        OwnState { origin, velocity, dead, gib, lies, jump_held, movable, over }
    }
}

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
    const ORIGIN: [u16; 3] = [1 << 0, 1 << 1, 1 << 2];
    const ANGLES: [u16; 3] = [1 << 3, 1 << 4, 1 << 5];
    const EFFECTS: u16 = 1 << 6;
    const SKIN: u16 = 1 << 7;
    const DEAD: u16 = 1 << 8;
    const GIB: u16 = 1 << 9;
    const WEAPON_FRAME: u16 = 1 << 10;
    const MODEL: u16 = 1 << 11;

    /// Reads the message about one player; a player with the model `head` is a gibbed head.
    pub(crate) fn read(&mut self, bytes: &mut Bytes<'_>, ext: Extensions, head: Option<u8>) -> QwdResult<OtherPlayer> {
        let slot = read_slot(bytes)?;
        let flags = bytes.u16()?;
        bytes.u8()?; // the frame of its animation
        let mut player = self.players.get(&slot).copied().unwrap_or_default();
        for (value, flag) in player.origin.iter_mut().zip(Self::ORIGIN) {
            if flags & flag != 0 {
                *value = read_coord(bytes, ext)?;
            }
        }
        for (value, flag) in player.angles.iter_mut().zip(Self::ANGLES) {
            if flags & flag != 0 {
                *value = decode_angle16(bytes.i16()?);
            }
        }
        if flags & Self::MODEL != 0 {
            player.model = bytes.u8()?;
        }
        for flag in [Self::SKIN, Self::EFFECTS, Self::WEAPON_FRAME] {
            if flags & flag != 0 {
                bytes.u8()?;
            }
        }
        self.players.insert(slot, player);
        let ServedPlayer { origin, angles, model } = player;
        let gib = flags & Self::GIB != 0 || head == Some(model);
        let dead = flags & Self::DEAD != 0;
        Ok(OtherPlayer { slot, origin, angles, dead, gib, ..OtherPlayer::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_state_has_origin_and_velocity() {
        let mut data = vec![3];
        data.extend((VELOCITY[0] as u16 | VELOCITY[2] as u16 | (1 << MOVE_CODE_SHIFT) as u16).to_le_bytes());
        data.extend([8, 0, 0xf8, 0xff, 1, 0, 99]);
        data.extend([0x40, 0x01, 0xf6, 0xff]);
        let mut bytes = Bytes::new(&data, 0);
        let info = PlayerMessage::read(&mut bytes, Extensions::default(), None).expect("whole");
        assert!(bytes.is_empty());
        let own = info.own(ServerExtensions(1), false);
        assert_eq!((own.origin, own.velocity, own.jump_held), ([1.0, -1.0, 0.125], [320, 0, -10], Some(true)));
        assert_eq!(info.own(ServerExtensions(0), false).jump_held, None);
    }

    #[test]
    fn slot_numbers_have_a_limit() {
        let error = PlayerMessage::read(&mut Bytes::new(&[32, 0, 0], 7), Extensions::default(), None);
        assert_eq!(error, Err(QwdError::out_of_bounds(7, "a player's slot", 32, 32)));
    }
}
