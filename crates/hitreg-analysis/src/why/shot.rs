//! Explains one shot: the shooter's view and input, the server's judgement, and the three positions of the target.

use serde::Serialize;

use super::line::AimLine;
use super::places::{self, PositionKind, TargetPosition};
use super::{DrawnSnapshots, ShotName, TraceRows, UsercmdPath, cell, measure};
use crate::shot_counter::is_reported;
use hitreg_log::trace::schema::{IMPACT, executed, frames, is_judged, shots, ticks, views};
use hitreg_log::trace::{NameColumn, Trace};
use hitreg_log::units::EntityId;

/// Positions within this distance count as equal, in units. Rounding on different paths makes the bits differ.
const SAME_UNITS: f32 = 0.01;

/// A shot, or the impact of a projectile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShotExplanation {
    /// The shooter.
    pub shooter: u32,
    /// The usercmd that fired.
    pub command: u32,
    /// The index of the shot within its usercmd; from 255 down for impacts.
    pub index: u32,
    /// Whether it is the impact of a projectile.
    pub is_impact: bool,
    /// The weapon.
    pub weapon: String,
    /// The client frame that made the usercmd.
    pub made: Option<ClientFrame>,
    /// The result on the shooter's screen.
    pub screen: ShotResult,
    /// The result on the server.
    pub server: ShotResult,
    /// How the server judged it; `None` if the server never did, or if the replay has no server.
    pub judged: Option<JudgedOutcome>,
    /// The tick in which the usercmd was due, and how the server handled it at last; `None` if the trace does not say.
    #[serde(skip)]
    pub executed: Option<(u32, String)>,
    /// What the replay ran instead of the server; `None` if it ran the server.
    #[serde(skip)]
    pub without_server: Option<ClientReplay>,
    /// The result that the recorded server reported, if this shot is judged again.
    pub given: Option<ReportedHit>,
    /// Whether only the recorded server reported this shot, and the replay has no shot to judge.
    pub is_reported: bool,
    /// The result of the projectile's impact, if this shot is its launch.
    pub impact: Option<ShotResult>,
    /// The aim line on the shooter's screen.
    pub line: Option<AimLine>,
    /// Whether the game has view angles. Without them, it has an aim of its own, and no line is known.
    pub has_view_angles: bool,
    /// The target: the player hit on the server, else the player hit on the screen, else the target drawn nearest to
    /// the line.
    pub about: Option<String>,
    /// The target for which the trace measured the view error. The angle is its drawn distance from the aim in degrees,
    /// when the server ran the usercmd.
    pub aimed_at: Option<(String, Option<f32>)>,
    /// How that target was chosen: `hit`, `predicted_hit` or `nearest`.
    pub aimed_by: Option<String>,
    /// Distance between the drawn and the judged position of the target, in units. `None` if the trace measured another
    /// target.
    pub view_error_units: Option<f32>,
    /// The packets of the usercmd, from the log.
    pub carried: Option<UsercmdPath>,
    /// Whether the trace says what any client drew.
    #[serde(skip)]
    pub has_views: bool,
    /// How the client drew the target.
    pub drawn: Option<DrawnTarget>,
    /// The snapshots between which the client drew the target, from the log.
    pub drawn_from: Option<DrawnSnapshots>,
    /// The positions of the target: drawn, judged, present.
    pub places: Vec<TargetPosition>,
}

/// A replay without the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientReplay {
    /// Of one client's own log.
    OneClient,
    /// Of the clients in a log.
    OpenLoop,
}

/// The client frame of a usercmd.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClientFrame {
    /// The session time of the frame, in microseconds.
    pub at_us: Option<i64>,
    /// The server time that the client's clock showed, in microseconds.
    pub server_time_us: Option<i64>,
    /// The interpolation delay, in milliseconds.
    pub lerp_msec: Option<u32>,
}

/// The result of a shot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShotResult {
    /// `hit`, or the reason for the miss; empty if the trace does not say.
    pub reason: String,
    /// The player that was hit.
    pub target: Option<String>,
    /// The hit group of the body.
    pub hitgroup: Option<String>,
    /// The damage.
    pub damage: Option<i64>,
}

/// How the server judged a shot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedOutcome {
    /// The session time of the judgement, in microseconds.
    pub at_us: Option<i64>,
    /// The tick of the judgement.
    pub tick: Option<u32>,
    /// The tick in which the usercmd was due, and what the server did with it.
    pub ran: Option<(u32, String)>,
    /// The session time of that tick, in microseconds.
    #[serde(skip)]
    pub ran_at_us: Option<i64>,
    /// The rewind, in microseconds.
    pub rewind_us: Option<i64>,
    /// The limit that bounded the rewind.
    pub limit: String,
    /// Whether the target was visible from the muzzle at its present position.
    pub visible_at_present: String,
    /// How long the target had been in cover on its own screen, in milliseconds.
    pub in_cover_ms: Option<f32>,
}

/// The result of a shot that the recorded server reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportedHit {
    /// The player that it reported as hit, such as `p3`, or `?` if that was not recorded. `None` if it reported no hit.
    pub target: Option<String>,
    /// The reported damage; `None` if it was not recorded.
    pub damage: Option<f32>,
    /// How far this build's shot misses that player, in units.
    pub off_units: Option<f32>,
    /// How far `off_units` exceeds the weapon's spread, in units.
    pub beyond_spread_units: Option<f32>,
}

/// How the client drew a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawnTarget {
    /// The server time of the drawn position, in microseconds.
    pub at_us: Option<i64>,
    /// The age of the drawn position at the time of the frame, in microseconds. `None` if the frame has the time of
    /// another clock than the server's.
    pub age_us: Option<i64>,
    /// `interpolated`, `extrapolated`, `held` or `teleported`.
    pub how: String,
    /// The category of the entity, if the client draws by category.
    pub category: Option<String>,
}

/// A name from a column; `None` for `none` and the empty name.
fn named(names: NameColumn<'_>, row: usize) -> Option<String> {
    Some(names.get(row)).filter(|name| !matches!(*name, "" | "none")).map(str::to_owned)
}

impl ShotExplanation {
    /// The name of the shot in commands and reports.
    pub fn name(&self) -> ShotName {
        let index = Some(self.index).filter(|index| *index > 0);
        ShotName { shooter: self.shooter, command: self.command, index }
    }

    pub(super) fn read(reader: &TraceRows<'_>, row: usize) -> ShotExplanation {
        let trace = reader.trace;
        let shots = shots::Columns::of(trace);
        let [shooter, command, index] =
            [shots.shooter, shots.command, shots.index].map(|column| cell(column, row).unwrap_or_default());
        let frame = reader.frames.at([shooter, 0], command).next();
        let made = frame.map(|row| made(trace, row));
        let mut server = came([shots.reason, shots.target, shots.hitgroup], shots.damage, row);
        let is_judged = is_judged(&server.reason);
        let without_server = (trace.header.is_open() && !is_judged).then(|| match trace.header.is_of_one_client() {
            true => ClientReplay::OneClient,
            false => ClientReplay::OpenLoop,
        });
        if without_server.is_some() {
            server.reason.clear();
        }
        let screen = came(
            [shots.predicted_reason, shots.predicted_target, shots.predicted_hitgroup],
            shots.predicted_damage,
            row,
        );
        let aimed_at = named(shots.aimed_at, row);
        let about = server.target.clone().or_else(|| screen.target.clone()).or_else(|| aimed_at.clone());
        let is_impact = cell(shots.impact, row).map_or(index == u32::from(IMPACT), |impact| impact == 1);
        // An impact has no aim; the line belongs to its launch.
        let eyes = cell(shots.tick, row).and_then(|tick| places::eyes(reader, tick, shooter));
        let line = frame.filter(|_| !is_impact).and_then(|row| AimLine::of(reader, row, eyes));
        let given = shots.given_target.iter().nth(row).map(|_| ReportedHit {
            target: named(shots.given_target, row),
            damage: measure(shots.given_damage, row),
            off_units: measure(shots.off_units, row),
            beyond_spread_units: measure(shots.beyond_spread_units, row),
        });
        let is_reported = is_reported(&shots, row);
        let mut shot = ShotExplanation {
            shooter,
            command,
            index,
            is_impact,
            weapon: shots.weapon.get(row).to_owned(),
            made,
            judged: is_judged.then(|| judged(reader, row, is_reported)),
            executed: executed(reader, shooter, command).last(),
            without_server,
            given,
            is_reported,
            impact: if is_impact { None } else { impact(reader, shooter, command) },
            line,
            has_view_angles: reader.aim.is_some() || frame.is_none(),
            view_error_units: measure(shots.view_error_units, row).filter(|_| about == aimed_at),
            about,
            aimed_by: named(shots.aimed_by, row),
            aimed_at: aimed_at.map(|name| (name, measure(shots.aim_off_degrees, row))),
            screen,
            server,
            carried: None,
            has_views: trace.table(views::NAME).is_some_and(|views| views.rows() > 0),
            drawn: None,
            drawn_from: None,
            places: Vec::new(),
        };
        if let Some(entity) = shot.about.as_deref().and_then(EntityId::named) {
            shot.place(reader, entity.0.into());
        }
        shot
    }

    /// Adds how the client drew the target, and the target's positions.
    fn place(&mut self, reader: &TraceRows<'_>, entity: u32) {
        let trace = reader.trace;
        let views = views::Columns::of(trace);
        let view = places::view(reader, self.shooter, self.command, entity);
        // A client's own log has the times of the client's clock.
        let frame_us = self.made.and_then(|made| made.at_us).filter(|_| !trace.header.is_of_one_client());
        self.drawn = view.map(|row| {
            let at_us = cell(views.drawn_at_us, row);
            DrawnTarget {
                at_us,
                age_us: frame_us.zip(at_us).map(|(frame, drawn)| frame.saturating_sub(drawn)),
                how: views.how.get(row).to_owned(),
                category: named(views.category, row),
            }
        });
        let drawn_us = self.drawn.as_ref().and_then(|drawn| drawn.at_us);
        let drawn = view.and_then(|row| places::drawn(trace, row));
        let line = self.line;
        let place = |which, at_us, origin: Option<_>, known_by| match origin {
            Some(origin) => TargetPosition::of(which, at_us, origin, line.as_ref(), known_by),
            None => TargetPosition::unknown(which, at_us),
        };
        let judged = self.judged.clone();
        let tick = judged.as_ref().and_then(|judged| judged.tick);
        let present = tick.and_then(|tick| places::body(reader, tick, entity));
        let present_us = judged.as_ref().and_then(|judged| judged.at_us);
        let judged_us =
            present_us.zip(judged.and_then(|judged| judged.rewind_us)).map(|(at, rewind)| at.saturating_sub(rewind));

        // The tables do not contain the judged position. A candidate counts only if its distance from the drawn
        // position equals the view error.
        let error = self.view_error_units;
        let fits = |origin: &glam::DVec3, within: f32| {
            let apart = |drawn: glam::DVec3| (*origin - drawn).as_vec3().length();
            drawn.zip(error).is_some_and(|(drawn, error)| (apart(drawn) - error).abs() <= within)
        };
        let (judged, known_by) = if error == Some(0.0) {
            (drawn, "view error 0")
        } else if judged_us.is_some() && judged_us == present_us && !self.has_views {
            // Without views there is no view error. The log says that the server did not rewind.
            (present, "bodies")
        } else if judged_us.is_some() && judged_us == present_us {
            let before = tick.and_then(|tick| places::body(reader, tick.checked_sub(1)?, entity));
            let bodies = [present, before];
            (bodies.into_iter().flatten().find(|body| fits(body, SAME_UNITS)), "bodies")
        } else {
            let between = judged_us.and_then(|at| places::drawn_at(reader, self.shooter, entity, at));
            // A snapshot between two frames can change the direction of movement, so this position is only approximate.
            (between.filter(|origin| fits(origin, 0.5)), "views, near")
        };
        self.places = vec![
            place(PositionKind::Drawn, drawn_us, drawn, "views"),
            place(PositionKind::Judged, judged_us, judged, known_by),
            place(PositionKind::Present, present_us, present, "bodies"),
        ];
    }

    /// One of the three positions of the target.
    pub fn place_of(&self, which: PositionKind) -> Option<&TargetPosition> {
        self.places.iter().find(|place| place.which == which)
    }
}

/// The target that the explanation of a shot is about, by its row in the `shots` table; `None` if no target is known.
pub(crate) fn shot_target(trace: &Trace, row: usize) -> Option<u32> {
    let shots = shots::Columns::of(trace);
    let about = [shots.target, shots.predicted_target, shots.aimed_at].into_iter().find_map(|names| named(names, row));
    EntityId::named(&about?).map(|entity| entity.0.into())
}

fn made(trace: &Trace, row: usize) -> ClientFrame {
    let frames = frames::Columns::of(trace);
    ClientFrame {
        at_us: cell(frames.at_us, row),
        server_time_us: cell(frames.server_time_us, row),
        lerp_msec: cell(frames.lerp_msec, row),
    }
}

pub(super) fn came([reason, target, hitgroup]: [NameColumn<'_>; 3], damage: &[i64], row: usize) -> ShotResult {
    let target = named(target, row);
    ShotResult {
        reason: reason.get(row).to_owned(),
        hitgroup: named(hitgroup, row).and_then(hitgroup_in_words),
        damage: cell(damage, row).filter(|_| target.is_some()),
        target,
    }
}

/// A recorded hitgroup has a number and no name; 0 says nothing.
fn hitgroup_in_words(name: String) -> Option<String> {
    match name.parse::<u8>() {
        Ok(0) => None,
        Ok(number) => Some(format!("hitgroup {number}")),
        Err(_) => Some(name),
    }
}

fn impact(reader: &TraceRows<'_>, shooter: u32, command: u32) -> Option<ShotResult> {
    let shots = shots::Columns::of(reader.trace);
    let row = reader.shots.at([shooter, 0], command).find(|row| cell(shots.impact, *row) == Some(1))?;
    Some(came([shots.reason, shots.target, shots.hitgroup], shots.damage, row))
}

/// The ticks in which the server handled a usercmd, and how. A stand-in whose usercmd arrives late has two rows.
fn executed(reader: &TraceRows<'_>, player: u32, command: u32) -> impl Iterator<Item = (u32, String)> {
    let executed = executed::Columns::of(reader.trace);
    let rows = reader.executed.at([player, 0], command);
    rows.filter_map(move |row| Some((cell(executed.tick, row)?, executed.how.get(row).to_owned())))
}

/// How the server judged a shot. The rewind of a shot that a recorded server only reported is unknown.
fn judged(reader: &TraceRows<'_>, row: usize, is_reported: bool) -> JudgedOutcome {
    let trace = reader.trace;
    let shots = shots::Columns::of(trace);
    let of_it = cell(shots.shooter, row).zip(cell(shots.command, row));
    let ran = of_it.and_then(|(shooter, command)| executed(reader, shooter, command).next());
    let tick = cell(shots.tick, row);
    let ticks = ticks::Columns::of(trace);
    let time_of = |tick: u32| cell(ticks.at_us, ticks.tick.iter().position(|known| *known == tick)?);
    JudgedOutcome {
        at_us: cell(shots.at_us, row).or_else(|| time_of(tick?)),
        tick,
        ran_at_us: ran.as_ref().and_then(|(tick, _)| time_of(*tick)),
        ran,
        rewind_us: cell(shots.rewind_us, row).filter(|_| !is_reported),
        limit: if is_reported { String::new() } else { shots.limit.get(row).to_owned() },
        visible_at_present: shots.visible_at_present.get(row).to_owned(),
        in_cover_ms: measure(shots.in_cover_ms, row),
    }
}
