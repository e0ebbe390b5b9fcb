//! The three positions of a shot's target: where the shooter's screen showed it, where the server judged it, and where
//! it was on the server at that time.

use glam::{DVec3, Vec3};
use serde::{Serialize, Serializer};

use super::line::{AimLine, LineOffset, above};
use super::{TraceRows, cell, measure};
use hitreg_log::trace::schema::views;
use hitreg_log::trace::{Table, Trace};

hitreg_log::named! {
    /// One of the three positions of a target.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PositionKind {
        /// On the shooter's screen.
        Drawn = "drawn",
        /// Where the server judged it, after the rewind.
        Judged = "judged",
        /// On the server after the tick that judged the shot.
        Present = "present",
    }
}

/// One of the target's positions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TargetPosition {
    /// Which of the three positions this is.
    pub which: PositionKind,
    /// The server time of the position, in microseconds.
    pub at_us: Option<i64>,
    /// The position; `None` if the tables lack it.
    #[serde(serialize_with = "serialize_known_place")]
    pub origin: Option<DVec3>,
    /// The offset from the shot's aim line.
    pub off: Option<LineOffset>,
    /// The table from which the position was read, or how it was derived.
    pub known_by: &'static str,
}

impl TargetPosition {
    pub(super) fn unknown(which: PositionKind, at_us: Option<i64>) -> TargetPosition {
        TargetPosition { which, at_us, origin: None, off: None, known_by: "not known" }
    }

    pub(super) fn of(
        which: PositionKind,
        at_us: Option<i64>,
        origin: DVec3,
        line: Option<&AimLine>,
        known_by: &'static str,
    ) -> TargetPosition {
        TargetPosition { which, at_us, origin: Some(origin), off: line.map(|line| line.off(origin)), known_by }
    }
}

/// The position of an entity after a tick, by its body.
pub(super) fn body(reader: &TraceRows<'_>, tick: u32, entity: u32) -> Option<DVec3> {
    reader.body(tick, entity).and_then(|(bodies, row)| origin(bodies, row))
}

/// The eyes of an entity after a tick, and whether their height is known; else its origin.
pub(super) fn eyes(reader: &TraceRows<'_>, tick: u32, entity: u32) -> Option<(DVec3, bool)> {
    let (bodies, row) = reader.body(tick, entity)?;
    let (origin, height) = (origin(bodies, row)?, coordinate(bodies, "view_ofs_z", row));
    let height = height.filter(|_| bodies.column("origin.z").is_some());
    Some((height.map_or(origin, |height| DVec3 { z: above(origin.z, height), ..origin }), height.is_some()))
}

fn origin(table: &Table, row: usize) -> Option<DVec3> {
    let part = |name: &str| coordinate(table, name, row);
    Some(DVec3::new(part("origin.x")?, part("origin.y")?, part("origin.z").unwrap_or(0.0)))
}

/// A coordinate in a table, in the precision of its column; `None` if it is unknown.
pub(super) fn coordinate(table: &Table, column: &str, row: usize) -> Option<f64> {
    table.column(column)?.data.real(row).filter(|value| value.is_finite())
}

/// A coordinate with the digits of its own precision.
#[derive(Serialize)]
#[serde(untagged)]
enum Coordinate {
    Single(f32),
    Double(f64),
}

impl Coordinate {
    fn of(value: f64) -> Coordinate {
        let narrow = value as f32;
        if f64::from(narrow) == value { Coordinate::Single(narrow) } else { Coordinate::Double(value) }
    }
}

/// Writes a position as an array of its coordinates.
pub(super) fn serialize_place<S: Serializer>(place: &DVec3, to: S) -> Result<S::Ok, S::Error> {
    place.to_array().map(Coordinate::of).serialize(to)
}

fn serialize_known_place<S: Serializer>(place: &Option<DVec3>, to: S) -> Result<S::Ok, S::Error> {
    place.map(|place| place.to_array().map(Coordinate::of)).serialize(to)
}

/// The row of the `views` table with an entity's view in the frame of a usercmd.
pub(super) fn view(reader: &TraceRows<'_>, player: u32, command: u32, entity: u32) -> Option<usize> {
    reader.views.at([player, entity], command).next()
}

/// The drawn position in a row of the `views` table.
pub(super) fn drawn(trace: &Trace, row: usize) -> Option<DVec3> {
    Some(drawn_in(trace, row)?.as_dvec3())
}

fn drawn_in(trace: &Trace, row: usize) -> Option<Vec3> {
    let [x, y, z] = views::Columns::of(trace).origin;
    Some(Vec3::new(measure(x, row)?, measure(y, row)?, measure(z, row)?))
}

/// Where a player's client drew an entity at a server time, interpolated between its frames. The server rewinds targets
/// to the same position, because it uses the same snapshots.
pub(super) fn drawn_at(reader: &TraceRows<'_>, player: u32, entity: u32, at_us: i64) -> Option<DVec3> {
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
    let (from, to) = (drawn_in(trace, from)?, drawn_in(trace, to)?);
    let fraction = if to_us == from_us {
        0.0
    } else {
        at_us.saturating_sub(from_us) as f32 / to_us.saturating_sub(from_us) as f32
    };
    Some(from.lerp(to, fraction).as_dvec3())
}
