//! Packs views relative to the states that they were drawn from. Nearly every row of `views` lies between two states
//! in `bodies`. So a chunk holds two moments for each frame, the states of these moments once, and only the other rows
//! in full. Views grow with the square of the player count, but this data grows linearly.

mod pack;
mod unpack;

use serde::{Deserialize, Serialize};

use super::past::DrawnColumns;
use crate::trace::ColumnData;

pub(super) use pack::encode;
pub(super) use unpack::decode;

/// The transform of columns that are packed this way.
pub(super) const TRANSFORM: &str = "drawn";

/// The columns that are packed this way. A chunk with any other column is not.
const COLUMNS: [&str; 10] =
    ["player", "command", "drawn_at_us", "entity", "origin.x", "origin.y", "origin.z", "pitch", "yaw", "how"];

/// The `how` of a row that lies between two states.
const BETWEEN: &str = "interpolated";

/// The content of a chunk of views, in place of its columns.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct DrawnMap<B> {
    /// Runs of rows with the same player, usercmd and time.
    frames: u32,
    /// Distinct lists of entities.
    lists: u32,
    /// Moments with states.
    moments: u32,
    /// Entities with states.
    entities: u32,
    /// Rows stored in full.
    others: u32,
    /// The packed columns, in the order of docs/format.md.
    packed: Vec<B>,
}

/// All columns that are packed this way, row by row.
#[derive(Default)]
pub(super) struct DrawnRows {
    player: Vec<u32>,
    command: Vec<u32>,
    drawn_at_us: Vec<i64>,
    entity: Vec<u32>,
    seen: [Vec<f32>; 5],
    how: Vec<u32>,
}

impl DrawnRows {
    fn with_room(rows: usize) -> DrawnRows {
        let (room, seen) = (|| Vec::with_capacity(rows), [(); 5].map(|()| Vec::with_capacity(rows)));
        DrawnRows {
            player: room(),
            command: room(),
            drawn_at_us: Vec::with_capacity(rows),
            entity: room(),
            seen,
            how: room(),
        }
    }

    /// Adds the rows of a frame, without what was seen.
    fn push_frame(&mut self, (player, command, at): (u32, u32, i64), entities: &[u32]) {
        self.entity.extend_from_slice(entities);
        let rows = self.entity.len();
        self.player.resize(rows, player);
        self.command.resize(rows, command);
        self.drawn_at_us.resize(rows, at);
    }

    fn push_seen(&mut self, [x, y, z, pitch, yaw]: DrawnColumns, how: u32) {
        let [xs, ys, zs, pitches, yaws] = &mut self.seen;
        xs.push(x);
        ys.push(y);
        zs.push(z);
        pitches.push(pitch);
        yaws.push(yaw);
        self.how.push(how);
    }

    /// Takes a column by name; `None` if the type does not match. Works once for each column.
    pub(super) fn take(&mut self, name: &str, kind: &str, names: &[String]) -> Option<ColumnData> {
        let take = std::mem::take::<Vec<u32>>;
        match (COLUMNS.iter().position(|column| *column == name)?, kind) {
            (0, "u32") => Some(ColumnData::U32(take(&mut self.player))),
            (1, "u32") => Some(ColumnData::U32(take(&mut self.command))),
            (2, "i64") => Some(ColumnData::I64(std::mem::take(&mut self.drawn_at_us))),
            (3, "u32") => Some(ColumnData::U32(take(&mut self.entity))),
            (part @ 4..=8, "f32") => Some(ColumnData::F32(std::mem::take(&mut self.seen[part - 4]))),
            (9, "name") => Some(ColumnData::Name { names: names.to_vec(), codes: take(&mut self.how) }),
            _ => None,
        }
    }
}

/// Returns the names of the column `how`; empty if the chunk has no such column.
pub(super) fn placement_names<'n>(columns: impl Iterator<Item = (&'n str, &'n [String])>) -> &'n [String] {
    columns.filter(|(name, _)| *name == COLUMNS[9]).map(|(_, names)| names).next().unwrap_or(&[])
}
