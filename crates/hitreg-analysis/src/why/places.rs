//! The three targets of a shot: where its shooter's screen showed it, where the server judged it, and where the server had it
//! by then.

use glam::Vec3;
use serde::Serialize;

use super::line::{Line, Off};
use super::{Reader, cell, measure};
use hitreg_log::trace::schema::{bodies, views};
use hitreg_log::trace::{Table, Trace};

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// On the shooter's screen.
    Drawn,
    /// Where the server judged it.
    Judged,
    /// Where the server had it after the tick in which it judged.
    Present,
}

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Which.
    pub which: Which,
    /// The server time that it is of.
    pub at_us: Option<i64>,
    /// Where; `None` where the tables do not say.
    pub origin: Option<[f32; 3]>,
    /// How far off the line of the shot.
    pub off: Option<Off>,
    /// What says where.
    pub known_by: &'static str,
}

impl Which {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Which::Drawn => "drawn",
            Which::Judged => "judged",
            Which::Present => "present",
        }
    }
}

impl Place {
    pub(super) fn unknown(which: Which, at_us: Option<i64>) -> Place {
        Place { which, at_us, origin: None, off: None, known_by: "not known" }
    }

    pub(super) fn of(
        which: Which,
        at_us: Option<i64>,
        origin: Vec3,
        line: Option<&Line>,
        known_by: &'static str,
    ) -> Place {
        let origin = origin.to_array();
        Place { which, at_us, origin: Some(origin), off: line.map(|line| line.off(origin)), known_by }
    }
}

/// The entity in the `bodies` table after a tick.
pub(super) fn body(reader: &Reader<'_>, tick: u32, entity: u32) -> Option<Vec3> {
    origin(reader.trace.table(bodies::NAME)?, reader.bodies.at([entity, 0], tick).next()?)
}

fn origin(table: &Table, row: usize) -> Option<Vec3> {
    let part = |name: &str| measure(table.f32s(name), row);
    Some(Vec3::new(part("origin.x")?, part("origin.y")?, part("origin.z").unwrap_or(0.0)))
}

/// The row of the `views` table that has an entity in the frame of a usercmd.
pub(super) fn view(reader: &Reader<'_>, player: u32, command: u32, entity: u32) -> Option<usize> {
    reader.views.at([player, entity], command).next()
}

/// Where a row of the `views` table has it.
pub(super) fn drawn(trace: &Trace, row: usize) -> Option<Vec3> {
    let [x, y, z] = views::Columns::of(trace).origin;
    Some(Vec3::new(measure(x, row)?, measure(y, row)?, measure(z, row)?))
}

/// Where a player's client drew an entity for a server time: between the frames before and after it. The server places
/// targets as that client does, from the same snapshots.
pub(super) fn drawn_at(reader: &Reader<'_>, player: u32, entity: u32, at_us: i64) -> Option<Vec3> {
    let trace = reader.trace;
    let views = views::Columns::of(trace);
    let [mut before, mut after]: [Option<(i64, usize)>; 2] = [None, None];
    for row in reader.views.rows([player, entity]).iter().map(|row| *row as usize) {
        let Some(at) = cell(views.drawn_at_us, row) else { continue };
        if at <= at_us && before.is_none_or(|(best, _)| at > best) {
            before = Some((at, row));
        }
        if at >= at_us && after.is_none_or(|(best, _)| at < best) {
            after = Some((at, row));
        }
    }
    let ((from_us, from), (to_us, to)) = (before?, after?);
    let (from, to) = (drawn(trace, from)?, drawn(trace, to)?);
    let fraction = if to_us == from_us {
        0.0
    } else {
        at_us.saturating_sub(from_us) as f32 / to_us.saturating_sub(from_us) as f32
    };
    Some(from.lerp(to, fraction))
}
