//! Snapshots: a playerState and the visible entities, relative to an earlier snapshot or to the baselines.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bits::HuffmanReader;
use super::delta::{NO_ENTITY, read_entity, read_player};
use super::fields::{EntityCells, PLAYER_CELLS, PlayerCells, player};
use super::message::{ENTITY_NUMBERS, Gamestate, MessageError, read_entity_number};
use crate::quake3::movement::flag;
use hitreg_log::units::PlayerId;

/// How many messages old the base of a snapshot may be.
const KEPT: usize = 32;
const NO_PLAYER: PlayerCells = [0; PLAYER_CELLS];

/// A snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quake3Snapshot {
    /// Number of its message.
    pub(crate) message: u32,
    /// Server time, in ms.
    pub(crate) server_time: i32,
    /// Bit 0: held back by the rate limit; bit 1: client not active yet; bit 2: the server restarted.
    pub(crate) flags: u8,
    pub(crate) player: PlayerCells,
    /// Entities by number, ascending.
    pub(crate) entities: Vec<(u16, Arc<EntityCells>)>,
}

impl Quake3Snapshot {
    /// Returns whether it has a player's own state. A spectator receives the state of the player whom it follows.
    pub(crate) fn is_own(&self, slot: PlayerId) -> bool {
        self.player[player("client_num")] == u32::from(slot.0) && self.player[player("pm_flags")] & flag::FOLLOW == 0
    }
}

/// The snapshots that later ones may be relative to.
#[derive(Clone, Debug, Default)]
pub(crate) struct SnapshotHistory {
    kept: VecDeque<Arc<Quake3Snapshot>>,
}

impl SnapshotHistory {
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Reads a snapshot after its kind byte.
    pub(crate) fn read(
        &mut self,
        bits: &mut HuffmanReader<'_>,
        message: u32,
        gamestate: &Gamestate,
    ) -> Result<Arc<Quake3Snapshot>, MessageError> {
        let server_time = bits.long()?;
        let back = bits.byte()?;
        let flags = bits.byte()?;
        let areas = bits.byte()?;
        for _ in 0..areas {
            bits.byte()?;
        }
        let base = match back {
            0 => None,
            back => {
                let number = i64::from(message) - i64::from(back);
                let known = self.kept.iter().find(|kept| i64::from(kept.message) == number);
                Some(known.ok_or(MessageError::NoBase(number))?)
            }
        };
        let player = read_player(bits, base.map_or(&NO_PLAYER, |base| &base.player))?;
        let entities = read_entities(bits, base.map_or(&[][..], |base| &base.entities), gamestate)?;
        let snapshot = Arc::new(Quake3Snapshot { message, server_time, flags, player, entities });
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Arc::clone(&snapshot));
        Ok(snapshot)
    }
}

/// Reads the entities. Numbers ascend, so entities of the base between two numbers are unchanged.
fn read_entities(
    bits: &mut HuffmanReader<'_>,
    base: &[(u16, Arc<EntityCells>)],
    gamestate: &Gamestate,
) -> Result<Vec<(u16, Arc<EntityCells>)>, MessageError> {
    let mut old = base.iter().peekable();
    let mut entities: Vec<(u16, Arc<EntityCells>)> = Vec::with_capacity(base.len());
    let mut last = None;
    loop {
        let number = read_entity_number(bits)?;
        if last.is_some_and(|last| number <= last) {
            return Err(MessageError::Bounds { what: "after a higher one, entity", found: i64::from(number) });
        }
        last = Some(number);
        while let Some(kept) = old.next_if(|(before, _)| *before < number) {
            entities.push(kept.clone());
        }
        if number == ENTITY_NUMBERS - 1 {
            return Ok(entities);
        }
        let before = old.next_if(|(before, _)| *before == number);
        let from = before.map(|(_, cells)| &**cells).or(gamestate.baselines.get(&number)).unwrap_or(&NO_ENTITY);
        if let Some(cells) = read_entity(bits, from)? {
            entities.push((number, Arc::new(cells)));
        }
    }
}
