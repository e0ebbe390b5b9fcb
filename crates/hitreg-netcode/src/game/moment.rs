//! The world of a game that has recordings but no server: the reported bodies of one moment.

use super::{BadCells, Body};
use hitreg_log::units::EntityId;

/// The bodies of one moment, ascending by entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment<B> {
    /// Each body with its entity id.
    pub entities: Vec<(EntityId, B)>,
}

impl<B: Body + Default> Moment<B> {
    /// A moment before any player has entered: each of `players` players has the default body.
    pub fn empty(players: u16) -> Moment<B> {
        Moment { entities: (0..players).map(|player| (EntityId(player), B::default())).collect() }
    }
}

impl<B: Body> Moment<B> {
    /// Appends all bodies to `words`.
    pub fn save(&self, words: &mut Vec<u32>) {
        for (entity, body) in &self.entities {
            words.push(u32::from(entity.0));
            body.append_to(words);
        }
    }

    /// Reads a moment from the words that [`Moment::save`] wrote.
    ///
    /// # Errors
    /// When the words are not a saved moment.
    pub fn load(words: &[u32]) -> Result<Moment<B>, BadCells> {
        let read = |row: &[u32]| {
            let entity = row.first().copied().unwrap_or(u32::MAX);
            let bad = |_| BadCells { what: "an entity's number".to_owned(), found: entity };
            Ok((EntityId(u16::try_from(entity).map_err(bad)?), B::read(row.get(1..).unwrap_or(&[]))?))
        };
        Ok(Moment { entities: words.chunks(1 + B::CELLS).map(read).collect::<Result<_, _>>()? })
    }
}
