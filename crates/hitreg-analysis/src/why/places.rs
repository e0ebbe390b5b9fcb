//! The three positions of a shot's target: where the shooter's screen showed it, where the server judged it, and where
//! it was on the server at that time. Also the aim line of the shot, and the distance of positions from it.

use glam::{DVec3, Vec3};
use serde::{Serialize, Serializer};

use super::{TraceRows, cell, measure};
use hitreg_log::trace::schema::{bodies, frames, is_bodies, views};
use hitreg_log::trace::{Column, ColumnData, Table, Trace};

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
    /// The largest error of the position, in units. Only positions from `views` have one, in a game with positions in
    /// double precision.
    pub uncertainty_units: f32,
    /// The table from which the position was read, how it was derived, or why there is none.
    pub known_by: &'static str,
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
fn coordinate(table: &Table, column: &str, row: usize) -> Option<f64> {
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
fn serialize_place<S: Serializer>(place: &DVec3, to: S) -> Result<S::Ok, S::Error> {
    place.to_array().map(Coordinate::of).serialize(to)
}

fn serialize_known_place<S: Serializer>(place: &Option<DVec3>, to: S) -> Result<S::Ok, S::Error> {
    place.map(|place| place.to_array().map(Coordinate::of)).serialize(to)
}

/// The drawn position in a row of the `views` table.
pub(super) fn drawn(trace: &Trace, row: usize) -> Option<Vec3> {
    let [x, y, z] = views::Columns::of(trace).origin;
    Some(Vec3::new(measure(x, row)?, measure(y, row)?, measure(z, row)?))
}

/// The largest error of a position from `views`, in units. The table has single precision: a game with positions in double
/// precision loses up to one step of it.
pub(super) fn view_uncertainty(trace: &Trace, place: DVec3) -> f32 {
    let is_double = |table: &Table| {
        let place = match &*table.name {
            frames::NAME => "own.origin.",
            name if is_bodies(name) => "origin.",
            _ => return false,
        };
        let is_place = |column: &&Column| column.name.starts_with(place);
        table.columns.iter().filter(is_place).any(|column| matches!(column.data, ColumnData::F64(_)))
    };
    if !trace.tables.iter().any(is_double) {
        return 0.0;
    }
    let farthest = place.abs().max_element() as f32;
    farthest.next_up() - farthest
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
    let (from, to) = (drawn(trace, from)?, drawn(trace, to)?);
    let fraction = if to_us == from_us {
        0.0
    } else {
        at_us.saturating_sub(from_us) as f32 / to_us.saturating_sub(from_us) as f32
    };
    Some(from.lerp(to, fraction).as_dvec3())
}

/// The shooter's position and view direction on its own screen. Pellets spread around this line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AimLine {
    /// The shooter's eye position; its origin if the eye height is unknown.
    #[serde(serialize_with = "serialize_place")]
    pub from: DVec3,
    /// Pitch in degrees; down is positive.
    pub pitch: f32,
    /// Yaw in degrees, counter-clockwise from +x.
    pub yaw: f32,
    /// Whether the eye height is known. Without it, vertical offsets are unknown.
    pub has_height: bool,
    /// The axes of the game's positions.
    #[serde(flatten)]
    pub axes: Axes,
}

/// The axes of a game's positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Axes {
    /// Whether positions have no z: the game takes place in a plane.
    pub is_flat: bool,
    /// Whether y points down, so that a greater yaw is a turn to the right.
    #[serde(skip)]
    pub is_y_down: bool,
}

/// The source of the direction of a line of fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AimSource {
    /// The pitch and yaw of the usercmd, with the server's turn.
    Usercmd,
    /// The field `viewangles` of the predicted body: pitch and yaw.
    Body,
    /// The field `viewangles` of the predicted body, which is the yaw alone.
    BodyYaw,
}

/// The columns of `frames` with the view angles of the predicted body: pitch, yaw, and the yaw of a game with one angle.
const OWN_PITCH: &str = "own.viewangles.x";
const OWN_YAW: &str = "own.viewangles.y";
const OWN_ANGLE: &str = "own.viewangles";

/// The columns of `frames` with the turn that a Quake III server adds to the pitch and yaw of usercmds, in 65,536ths of
/// a full turn.
const PITCH_TURN: &str = "own.delta_angles.x";
const YAW_TURN: &str = "own.delta_angles.y";

impl AimSource {
    /// The source in a trace. Every usercmd has a pitch and a yaw, but a game with an aim of its own leaves them 0. Then
    /// the predicted bodies have the direction. `None` if they have no view angles in degrees.
    pub(super) fn of(trace: &Trace) -> Option<AimSource> {
        if first_with_angles(&frames::Columns::of(trace)).is_some() {
            return Some(AimSource::Usercmd);
        }
        let has =
            |name: &str| trace.table(frames::NAME).and_then(|table| table.column(name)).is_some_and(Column::is_angle);
        // A field with a fourth part is a rotation, not angles.
        let is_rotation = has("own.viewangles.w");
        match () {
            () if has(OWN_YAW) && !is_rotation => Some(AimSource::Body),
            () if has(OWN_ANGLE) => Some(AimSource::BodyYaw),
            () => None,
        }
    }

    /// The pitch and yaw in a row of `frames`, in degrees; `None` if they are unknown.
    fn angles(self, frames: &Table, row: usize) -> Option<(f32, f32)> {
        let angle = |name: &str| coordinate(frames, name, row).map(|angle| angle as f32);
        let turned = |name: &str, turn: &str| match frames.u32s(turn).get(row) {
            Some(turn) => angle(name).map(|angle| half_turns(f64::from(angle) + f64::from(*turn) * 360.0 / 65_536.0)),
            None => angle(name),
        };
        match self {
            AimSource::Usercmd => turned("pitch", PITCH_TURN).zip(turned("yaw", YAW_TURN)),
            AimSource::Body => Some((angle(OWN_PITCH).unwrap_or(0.0), angle(OWN_YAW)?)),
            AimSource::BodyYaw => Some((0.0, angle(OWN_ANGLE)?)),
        }
    }
}

/// An angle in degrees as -180 to 180.
fn half_turns(angle: f64) -> f32 {
    ((angle + 180.0).rem_euclid(360.0) - 180.0) as f32
}

/// The first row of `frames` whose usercmd has a pitch or a yaw.
pub(super) fn first_with_angles(frames: &frames::Columns<'_>) -> Option<usize> {
    let first = |angles: &[f32]| angles.iter().position(|angle| *angle != 0.0);
    first(frames.yaw).or_else(|| first(frames.pitch))
}

impl Axes {
    pub(super) fn of(trace: &Trace) -> Axes {
        let has = |table: &str, column: &str| trace.table(table).is_some_and(|table| table.column(column).is_some());
        let has_axis = |axis: &str| {
            has(bodies::NAME, &format!("origin.{axis}")) || has(frames::NAME, &format!("own.origin.{axis}"))
        };
        Axes { is_flat: has_axis("x") && !has_axis("z"), is_y_down: trace.header.is_y_down() }
    }
}

/// The height of the eyes above a position: in single precision, as games compute it, if both values have it.
pub(super) fn above(z: f64, height: f64) -> f64 {
    let narrow = [z, height].map(|value| value as f32);
    if narrow.map(f64::from) == [z, height] { f64::from(narrow[0] + narrow[1]) } else { z + height }
}

/// A position relative to an aim line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LineOffset {
    /// Distance ahead along the line, in units.
    pub ahead_units: f32,
    /// Distance to the right of the line, in units.
    pub right_units: f32,
    /// Height above the line, in units; `None` if the eye height is unknown.
    pub up_units: Option<f32>,
    /// Distance from the line, in units. It is horizontal if the eye height is unknown.
    pub distance_units: f32,
}

impl AimLine {
    /// The aim line of the usercmd in a row of the `frames` table. It begins at the predicted body, or at `eyes` of the
    /// server's body if the trace has no predictions; see [`eyes`]. `None` if the game has no view angles.
    pub(super) fn of(reader: &TraceRows<'_>, row: usize, eyes: Option<(DVec3, bool)>) -> Option<AimLine> {
        let frames = reader.trace.table(frames::NAME)?;
        let (pitch, yaw) = reader.aim?.angles(frames, row)?;
        let own = |name: &str| coordinate(frames, &format!("own.{name}"), row);
        let axes = Axes::of(reader.trace);
        let Some((x, y)) = own("origin.x").zip(own("origin.y")) else {
            let (from, has_height) = eyes?;
            return Some(AimLine { from, pitch, yaw, has_height, axes });
        };
        let has_body = cell(frames::Columns::read(frames).has_body, row).is_none_or(|has_body| has_body == 1);
        let eyes = own("origin.z").zip(own("view_ofs_z")).map(|(z, height)| above(z, height));
        has_body.then_some(AimLine {
            from: DVec3::new(x, y, eyes.or(own("origin.z")).unwrap_or(0.0)),
            pitch,
            yaw,
            has_height: eyes.is_some(),
            axes,
        })
    }

    /// The offset of a position from this line.
    pub fn off(&self, place: DVec3) -> LineOffset {
        let (sin_yaw, cos_yaw) = libm::sincosf(self.yaw.to_radians());
        let (sin_pitch, cos_pitch) = libm::sincosf(if self.has_height { self.pitch.to_radians() } else { 0.0 });
        let forward = Vec3::new(cos_pitch * cos_yaw, cos_pitch * sin_yaw, -sin_pitch);
        let right = Vec3::new(sin_yaw, -cos_yaw, 0.0) * if self.axes.is_y_down { -1.0 } else { 1.0 };
        let up = Vec3::new(sin_pitch * cos_yaw, sin_pitch * sin_yaw, cos_pitch);
        let to = (place - self.from).as_vec3();
        let (right_units, up_units) = (to.dot(right), self.has_height.then(|| to.dot(up)));
        let distance_units = libm::hypotf(right_units, up_units.unwrap_or(0.0));
        LineOffset { ahead_units: to.dot(forward), right_units, up_units, distance_units }
    }
}

impl LineOffset {
    /// The side of the line on which the position is: `left` or `right`.
    pub fn side(&self) -> &'static str {
        if self.right_units < 0.0 { "left" } else { "right" }
    }

    /// Whether the position is behind the shooter.
    pub fn is_behind(&self) -> bool {
        self.ahead_units < 0.0
    }

    /// The distance of the position from the line's start, in units.
    pub(crate) fn distance_from_eyes(&self) -> f32 {
        libm::hypotf(self.distance_units, self.ahead_units)
    }

    /// The angle between the line and the position, in degrees.
    pub fn degrees(&self) -> f32 {
        libm::atan2f(self.distance_units, self.ahead_units).to_degrees()
    }
}
