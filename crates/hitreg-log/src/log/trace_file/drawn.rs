//! Views packed against what they were drawn from. Nearly every row of `views` lies between two states that `bodies` has, so a
//! chunk holds for each frame which two moments those were, the states of these moments once, and as they are only the rows
//! that come out otherwise. Views grow with the square of the players, and all this with their number.

mod pack;
mod unpack;

use serde::{Deserialize, Serialize};

use super::past::Seen;
use crate::trace::Data;

pub(super) use pack::encode;
pub(super) use unpack::decode;

/// The transform of columns that are told so.
pub(super) const TRANSFORM: &str = "drawn";

/// The columns that are; a chunk with any other is not packed so.
const COLUMNS: [&str; 10] =
    ["player", "command", "drawn_at_us", "entity", "origin.x", "origin.y", "origin.z", "pitch", "yaw", "how"];

/// How a row is drawn that lies between two states.
const BETWEEN: &str = "interpolated";

/// What a chunk of views holds in place of its columns.
#[derive(Serialize, Deserialize)]
pub(super) struct DrawnMap<B> {
    /// Runs of rows of one player, usercmd and time.
    frames: u32,
    /// Lists of entities, each told once.
    lists: u32,
    /// Moments of which there are states.
    moments: u32,
    /// Entities of which there are states.
    entities: u32,
    /// Rows that are told as they are.
    others: u32,
    /// As docs/format.md lists them.
    packed: Vec<B>,
}

/// Every column that is packed so, row by row.
#[derive(Default)]
pub(super) struct Rows {
    player: Vec<u32>,
    command: Vec<u32>,
    drawn_at_us: Vec<i64>,
    entity: Vec<u32>,
    seen: [Vec<f32>; 5],
    how: Vec<u32>,
}

impl Rows {
    fn with_room(rows: usize) -> Rows {
        let (room, seen) = (|| Vec::with_capacity(rows), [(); 5].map(|()| Vec::with_capacity(rows)));
        Rows {
            player: room(),
            command: room(),
            drawn_at_us: Vec::with_capacity(rows),
            entity: room(),
            seen,
            how: room(),
        }
    }

    fn push(&mut self, (player, command, at): (u32, u32, i64), entity: u32, seen: Seen, how: u32) {
        self.player.push(player);
        self.command.push(command);
        self.drawn_at_us.push(at);
        self.entity.push(entity);
        self.seen.iter_mut().zip(seen).for_each(|(column, value)| column.push(value));
        self.how.push(how);
    }

    /// A column by its name, of a type that it can have; once.
    pub(super) fn take(&mut self, name: &str, kind: &str, names: &[String]) -> Option<Data> {
        let take = std::mem::take::<Vec<u32>>;
        match (COLUMNS.iter().position(|column| *column == name)?, kind) {
            (0, "u32") => Some(Data::U32(take(&mut self.player))),
            (1, "u32") => Some(Data::U32(take(&mut self.command))),
            (2, "i64") => Some(Data::I64(std::mem::take(&mut self.drawn_at_us))),
            (3, "u32") => Some(Data::U32(take(&mut self.entity))),
            (part @ 4..=8, "f32") => Some(Data::F32(std::mem::take(&mut self.seen[part - 4]))),
            (9, "name") => Some(Data::Name { names: names.to_vec(), codes: take(&mut self.how) }),
            _ => None,
        }
    }
}

/// The names of the ways of drawing, where a chunk has columns that are told so.
pub(super) fn ways<'n>(columns: impl Iterator<Item = (&'n str, &'n [String])>) -> &'n [String] {
    columns.filter(|(name, _)| *name == COLUMNS[9]).map(|(_, names)| names).next().unwrap_or(&[])
}
