//! Explains one shot: the shooter's view and input, the server's judgement, the three positions of the target, what only
//! the log knows, and the results under other rules.

use std::cmp::Reverse;

use glam::DVec3;
use serde::Serialize;

use super::places::{self, AimLine, PositionKind, TargetPosition};
use super::{ShotName, TraceRows, cell, measure};
use crate::summary::is_named;
use hitreg_log::record::{ArrivalTable, PlayerRecords, Session, SnapshotRecord, value_of_setting};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{IMPACT, NOT_PREDICTED, bodies, executed, frames, is_judged, shots, ticks, views};
use hitreg_log::trace::{NameColumn, Table, Trace};
use hitreg_log::units::{EntityId, Micros};

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
    /// The result on the shooter's screen; its reason is empty if the trace does not say.
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
    /// The target: the one hit on the server, else the one hit on the screen, else the target drawn nearest to
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
    pub drawn_from: Option<PlacingSnapshots>,
    /// The snapshots between which the server placed the target, if the client drew it without one of them.
    pub judged_from: Option<PlacingSnapshots>,
    /// Those of them that the client did not have when it drew the target.
    #[serde(skip)]
    pub unreceived: [Option<SnapshotName>; 2],
    /// The target's last teleport or spawn between its drawn state and the judgement, if it is the reason that there is
    /// no view error.
    pub relocated: Option<Relocation>,
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

impl ClientFrame {
    /// The server time for which the client drew the others, in microseconds.
    pub fn drawn_at_us(&self) -> Option<i64> {
        Some(self.server_time_us?.saturating_sub(i64::from(self.lerp_msec?) * 1000))
    }
}

/// The result of a shot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShotResult {
    /// `hit`, or the reason for the miss; empty if the trace does not say.
    pub reason: String,
    /// The target that was hit.
    pub target: Option<String>,
    /// The hit group of the body.
    pub hitgroup: Option<String>,
    /// The damage.
    pub damage: Option<i64>,
    /// The other targets that were hit, as in the table `shots`.
    pub also_hit: Option<String>,
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

impl JudgedOutcome {
    /// The server time to which the server rewound, in microseconds.
    pub(crate) fn rewound_to_us(&self) -> Option<i64> {
        Some(self.at_us?.saturating_sub(self.rewind_us?))
    }

    /// Whether the usercmd had not arrived, and the server ran the one before in its place.
    pub fn is_stand_in(&self) -> bool {
        self.ran.as_ref().is_some_and(|(_, how)| how == "stood_in")
    }
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

/// A teleport or spawn of a target after the time that the shooter saw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Relocation {
    /// `teleported`, `spawned`, or `teleported or spawned` if the bodies do not say whether they are alive.
    pub how: &'static str,
    /// The tick of the teleport or spawn.
    pub tick: u32,
    /// The session time of that tick, in microseconds.
    pub at_us: i64,
    /// Whether the server judged the target in the present. Under a rewind limit it may have used a state between the
    /// teleport or spawn and the present.
    pub is_judged_in_present: bool,
}

/// A name from a column; `None` for `none` and the empty name.
fn named(names: NameColumn<'_>, row: usize) -> Option<String> {
    Some(names.get(row)).filter(|name| !matches!(*name, "" | "none")).map(str::to_owned)
}

impl TraceRows<'_> {
    /// Explains the shot in a row of the `shots` table.
    pub fn shot(&self, row: usize) -> ShotExplanation {
        let trace = self.trace;
        let shots = shots::Columns::of(trace);
        let [shooter, command, index] =
            [shots.shooter, shots.command, shots.index].map(|column| cell(column, row).unwrap_or_default());
        let frame = self.frames.at([shooter, 0], command).next();
        let made = frame.map(|row| made(trace, row));
        let mut server = on_server(&shots, row);
        let is_judged = is_judged(&server.reason);
        let without_server = (trace.header.is_open() && !is_judged).then(|| match trace.header.is_of_one_client() {
            true => ClientReplay::OneClient,
            false => ClientReplay::OpenLoop,
        });
        if without_server.is_some() {
            server.reason.clear();
        }
        let mut screen = came(
            [shots.predicted_reason, shots.predicted_target, shots.predicted_hitgroup, shots.predicted_also_hit],
            cell(shots.predicted_damage, row),
            row,
        );
        let aimed_at = named(shots.aimed_at, row);
        let about = server.target.clone().or_else(|| screen.target.clone()).or_else(|| aimed_at.clone());
        let is_impact = cell(shots.impact, row).map_or(index == u32::from(IMPACT), |impact| impact == 1);
        // Only a replay that ran the client's prediction knows that the client did not predict the shot.
        let has_prediction = frame.and_then(|row| cell(frames::Columns::of(trace).has_body, row)).is_some();
        let ran_client = has_prediction && !trace.header.is_open() && !trace.header.is_recorded();
        if screen.reason == NOT_PREDICTED && !ran_client && !is_impact {
            screen.reason.clear();
        }
        // An impact has no aim; the line belongs to its launch.
        let eyes = cell(shots.tick, row).and_then(|tick| places::eyes(self, tick, shooter));
        let line = frame.filter(|_| !is_impact).and_then(|row| AimLine::of(self, row, eyes));
        let given = shots.given_target.iter().nth(row).map(|_| ReportedHit {
            target: named(shots.given_target, row),
            damage: measure(shots.given_damage, row),
            off_units: measure(shots.off_units, row),
            beyond_spread_units: measure(shots.beyond_spread_units, row),
        });
        let mut shot = ShotExplanation {
            shooter,
            command,
            index,
            is_impact,
            weapon: shots.weapon.get(row).to_owned(),
            made,
            judged: is_judged.then(|| judged(self, row)),
            executed: executed(self, shooter, command).last(),
            without_server,
            given,
            is_reported: shots.is_reported(row),
            impact: if is_impact { None } else { impact(self, shooter, command) },
            line,
            has_view_angles: self.aim.is_some() || frame.is_none(),
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
            judged_from: None,
            unreceived: [None; 2],
            relocated: None,
            places: Vec::new(),
        };
        if let Some(entity) = shot.about.as_deref().and_then(EntityId::named) {
            shot.place(self, entity.0.into());
        }
        shot
    }
}

impl ShotExplanation {
    /// The name of the shot in commands and reports.
    pub fn name(&self) -> ShotName {
        let index = Some(self.index).filter(|index| *index > 0);
        ShotName { shooter: self.shooter, command: self.command, index }
    }

    /// Adds how the client drew the target, and the target's positions.
    fn place(&mut self, reader: &TraceRows<'_>, entity: u32) {
        let trace = reader.trace;
        let views = views::Columns::of(trace);
        let view = reader.views.at([self.shooter, entity], self.command).next();
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
        self.relocated = self.relocated(reader, entity);
        let drawn = view.and_then(|row| places::drawn(trace, row)).map(|origin| origin.as_dvec3());
        let line = self.line;
        let judged = self.judged.clone();
        let tick = judged.as_ref().and_then(|judged| judged.tick);
        let place = |which, at_us, origin: Option<DVec3>, known_by: &'static str| TargetPosition {
            which,
            at_us,
            origin,
            off: line.zip(origin).map(|(line, origin)| line.off(origin)),
            uncertainty_units: origin
                .filter(|_| !known_by.starts_with(bodies::NAME))
                .map_or(0.0, |origin| places::view_uncertainty(trace, origin)),
            known_by: match (origin, which, tick) {
                (Some(_), ..) => known_by,
                (None, PositionKind::Present, Some(tick)) if reader.is_removed(tick, entity) => "gone in that tick",
                _ => "not known",
            },
        };
        let present = tick.and_then(|tick| places::body(reader, tick, entity));
        let present_us = judged.as_ref().and_then(|judged| judged.at_us);
        let is_in_present = self.relocated.is_some_and(|relocated| relocated.is_judged_in_present);
        let rewound_to_us = judged.as_ref().and_then(JudgedOutcome::rewound_to_us);
        let judged_us = if is_in_present { present_us } else { rewound_to_us };

        // The tables do not contain the judged position. A candidate counts only if its distance from the drawn
        // position equals the view error.
        let error = self.view_error_units;
        let fits = |origin: &DVec3, within: f32| {
            let apart = |drawn: DVec3| (*origin - drawn).as_vec3().length();
            drawn.zip(error).is_some_and(|(drawn, error)| (apart(drawn) - error).abs() <= within)
        };
        let (judged, known_by) = if error == Some(0.0) {
            (drawn, "view error 0")
        } else if is_in_present {
            // Within the shot's tick, the target may have moved on after the judgement.
            (present, "bodies, near")
        } else if judged_us.is_some() && judged_us == present_us && !self.has_views {
            // Without views there is no view error. The log says that the server did not rewind.
            (present, bodies::NAME)
        } else if judged_us.is_some() && judged_us == present_us {
            let before = tick.and_then(|tick| places::body(reader, tick.checked_sub(1)?, entity));
            (present.into_iter().chain(before).find(|body| fits(body, SAME_UNITS)), bodies::NAME)
        } else {
            let between = judged_us.and_then(|at| places::drawn_at(reader, self.shooter, entity, at));
            // A snapshot between two frames can change the direction of movement, so this position is only approximate.
            let within = error.map_or(0.0, |error| (error / 2.0).min(0.5));
            (between.filter(|origin| fits(origin, within)), "views, near")
        };
        self.places = vec![
            place(PositionKind::Drawn, drawn_us, drawn, "views"),
            place(PositionKind::Judged, judged_us, judged, known_by),
            place(PositionKind::Present, present_us, present, bodies::NAME),
        ];
        if self.server.reason == "launched" {
            // A projectile is not judged at launch.
            self.places.retain(|place| place.which != PositionKind::Judged);
        }
    }

    /// The target's last teleport or spawn since its drawn state, or since the rewound time if that is earlier. `None`
    /// if the view error is known: then the shooter saw the target of the same life, on the same side of a teleport.
    fn relocated(&self, reader: &TraceRows<'_>, entity: u32) -> Option<Relocation> {
        let judged = self.judged.as_ref()?;
        let (drawn_us, rewound_to_us) = (self.drawn.as_ref()?.at_us?, judged.rewound_to_us()?);
        let is_rewindable = self.server.reason != "launched" && !self.is_impact;
        let is_target = self.aimed_at.as_ref().map(|(who, _)| who) == self.about.as_ref();
        if self.view_error_units.is_some() || !is_rewindable || !is_target {
            return None;
        }
        let (how, tick, at_us) = reader.last_relocation(judged.tick?, entity, drawn_us.min(rewound_to_us))?;
        Some(Relocation { how, tick, at_us, is_judged_in_present: matches!(&*judged.limit, "none" | "off") })
    }

    /// One of the three positions of the target.
    pub fn place_of(&self, which: PositionKind) -> Option<&TargetPosition> {
        self.places.iter().find(|place| place.which == which)
    }

    /// Adds the log's data. The trace must be a replay under the log's own settings.
    pub fn know_log(&mut self, session: &Session) {
        let Some(records) = session.players.get(self.shooter as usize) else { return };
        let made_us = self.made.as_ref().and_then(|made| made.at_us);
        self.carried = carried(records, recorded_number(records, self.command, made_us));
        if other_drawing_mode(&session.header.settings, self.shooter).is_none() {
            self.drawn_from = self.snapshots_on_screen(records, self.drawn.as_ref().and_then(|drawn| drawn.at_us));
            let rewound_to_us = self.judged.as_ref().filter(|judged| judged.limit == "none");
            let rewound_to_us = rewound_to_us.and_then(JudgedOutcome::rewound_to_us);
            let by_server = self.snapshots_on_server(records, rewound_to_us);
            let on_screen = self.snapshots_on_screen(records, rewound_to_us);
            self.unreceived =
                by_server.zip(on_screen).map_or([None; 2], |(by_server, on_screen)| by_server.besides(&on_screen));
            self.judged_from = by_server.filter(|_| self.unreceived != [None; 2]);
        }
    }

    /// The snapshots around a time that the client had. Clients that interpolate in the position history draw between
    /// these.
    fn snapshots_on_screen(&self, records: &PlayerRecords, at_us: Option<i64>) -> Option<PlacingSnapshots> {
        let made_us = self.made?.at_us?;
        let arrivals = ArrivalTable::new(&records.received);
        let had =
            |snapshot: &SnapshotRecord| arrivals.of(snapshot.seq.0).next().is_some_and(|at| at <= Micros(made_us));
        self.snapshots_around(records, at_us?, had)
    }

    /// The snapshots around a time by which the server places the target: of those up to the newest that was acked when
    /// the usercmd arrived, received or not.
    fn snapshots_on_server(&self, records: &PlayerRecords, at_us: Option<i64>) -> Option<PlacingSnapshots> {
        let arrived_us = self.carried?.arrived_us?;
        let arrivals = ArrivalTable::new(&records.reached);
        let had_arrived = |number| arrivals.of(number).any(|at| at <= Micros(arrived_us));
        let acks = records.sent.iter().filter(|packet| had_arrived(packet.number)).map(|packet| packet.ack);
        let newest = acks.max()?;
        self.snapshots_around(records, at_us?, |snapshot| snapshot.seq <= newest)
    }

    /// The snapshots with the target around a server time, of those that count.
    fn snapshots_around(
        &self,
        records: &PlayerRecords,
        at_us: i64,
        counts: impl Fn(&SnapshotRecord) -> bool,
    ) -> Option<PlacingSnapshots> {
        let entity = EntityId::named(self.about.as_deref()?)?;
        let [mut before, mut after]: [Option<&SnapshotRecord>; 2] = [None, None];
        let has_target = |snapshot: &&SnapshotRecord| snapshot.entities.contains(&entity) && counts(snapshot);
        for snapshot in records.snapshots.iter().filter(has_target) {
            if snapshot.server_time.0 <= at_us {
                before =
                    before.into_iter().chain([snapshot]).max_by_key(|snapshot| (snapshot.server_time, snapshot.seq));
            } else {
                after = after
                    .into_iter()
                    .chain([snapshot])
                    .min_by_key(|snapshot| (snapshot.server_time, Reverse(snapshot.seq)));
            }
        }
        let [before, after] = [before, after].map(|snapshot| snapshot.map(SnapshotName::of));
        let before = before?;
        let span =
            after.map(|after| after.server_time_us.saturating_sub(before.server_time_us)).filter(|span| *span > 0);
        let fraction = span.map(|span| at_us.saturating_sub(before.server_time_us) as f32 / span as f32);
        Some(PlacingSnapshots { before, after, fraction })
    }

    /// The results of this shot under other rules. Empty if the server only launched it or never judged it, or if only
    /// the recorded server reported it.
    pub fn otherwise(&self, rejudged: &[RejudgedShots]) -> Vec<RejudgedShot> {
        let is_decided_at_once = self.server.reason != "launched" && !self.is_impact && !self.is_reported;
        let Some(judged) = self.judged.as_ref().filter(|_| is_decided_at_once) else { return Vec::new() };
        let asked = rejudged.iter().filter(|rejudged| rejudged.rules.limit.is_none_or(|limit| limit == judged.limit));
        let otherwise = |RejudgedShots { rules, came }: &RejudgedShots| RejudgedShot {
            what: rules.what.to_owned(),
            setting: rules.setting.clone(),
            server: came.get(&[self.shooter, self.command, self.index]).cloned(),
        };
        asked.map(otherwise).collect()
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

/// The server's result of the shot in a row.
fn on_server(shots: &shots::Columns<'_>, row: usize) -> ShotResult {
    came([shots.reason, shots.target, shots.hitgroup, shots.also_hit], shots.known_damage(row), row)
}

fn came([reason, target, hitgroup, also_hit]: [NameColumn<'_>; 4], damage: Option<i64>, row: usize) -> ShotResult {
    let target = named(target, row);
    ShotResult {
        reason: reason.get(row).to_owned(),
        hitgroup: hitgroup_in_words(hitgroup.get(row)),
        damage: damage.filter(|_| target.is_some()),
        target,
        also_hit: named(also_hit, row),
    }
}

/// A hitgroup in words. A recorded hitgroup has a number and no name; 0 says nothing.
pub(crate) fn hitgroup_in_words(name: &str) -> Option<String> {
    match name.parse::<u8>() {
        Ok(0) => None,
        Ok(number) => Some(format!("hitgroup {number}")),
        Err(_) => is_named(name).then(|| name.to_owned()),
    }
}

fn impact(reader: &TraceRows<'_>, shooter: u32, command: u32) -> Option<ShotResult> {
    let shots = shots::Columns::of(reader.trace);
    let row = reader.shots.at([shooter, 0], command).find(|row| cell(shots.impact, *row) == Some(1))?;
    Some(on_server(&shots, row))
}

/// The ticks in which the server handled a usercmd, and how. A stand-in whose usercmd arrives late has two rows.
fn executed(reader: &TraceRows<'_>, player: u32, command: u32) -> impl Iterator<Item = (u32, String)> {
    let executed = executed::Columns::of(reader.trace);
    let rows = reader.executed.at([player, 0], command);
    rows.filter_map(move |row| Some((cell(executed.tick, row)?, executed.how.get(row).to_owned())))
}

/// How the server judged a shot.
fn judged(reader: &TraceRows<'_>, row: usize) -> JudgedOutcome {
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
        rewind_us: shots.known_rewind_us(row),
        limit: if shots.is_judged(row) { shots.limit.get(row).to_owned() } else { String::new() },
        visible_at_present: shots.visible_at_present.get(row).to_owned(),
        in_cover_ms: measure(shots.in_cover_ms, row),
    }
}

/// The packets that carried a usercmd.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsercmdPath {
    /// The time at which the first packet with the usercmd was sent.
    pub sent_us: i64,
    /// The time at which the first of them arrived; `None` if none did or arrivals were not recorded.
    pub arrived_us: Option<i64>,
    /// Whether all of them were lost: none arrived, and a later packet did.
    pub is_lost: bool,
    /// The number of packets that carried it.
    pub packets: u32,
}

/// The snapshots between which a target was placed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlacingSnapshots {
    /// The last snapshot at or before the time of the place.
    pub before: SnapshotName,
    /// The first snapshot after that time; `None` if there was none yet.
    pub after: Option<SnapshotName>,
    /// The time of the place as a fraction of the time between both snapshots, from 0 to 1.
    pub fraction: Option<f32>,
}

impl PlacingSnapshots {
    /// The snapshots that are none of these others.
    fn besides(&self, others: &PlacingSnapshots) -> [Option<SnapshotName>; 2] {
        let others = [Some(others.before), others.after];
        [Some(self.before), self.after].map(|own| own.filter(|_| !others.contains(&own)))
    }
}

/// A snapshot of one client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SnapshotName {
    /// Its sequence number.
    pub seq: u32,
    /// The tick whose state it contains.
    pub tick: u32,
    /// Its server time, in microseconds.
    pub server_time_us: i64,
}

/// The `interpolation.mode` of a player, if it does not draw from the position history that the server rewinds. A log
/// without that setting is of a game that does.
pub(crate) fn other_drawing_mode(settings: &[(String, String)], player: u32) -> Option<&str> {
    const KEY: &str = "interpolation.mode";
    let own = format!("p{player}.{KEY}");
    value_of_setting(settings, &own).or_else(|| value_of_setting(settings, KEY)).filter(|mode| *mode != "history")
}

impl SnapshotName {
    fn of(snapshot: &SnapshotRecord) -> SnapshotName {
        SnapshotName { seq: snapshot.seq.0, tick: snapshot.tick.0, server_time_us: snapshot.server_time.0 }
    }
}

/// The number of a replay's usercmd in the log. After a missing part, a replay has other numbers, but the same times.
fn recorded_number(records: &PlayerRecords, command: u32, made_us: Option<i64>) -> u32 {
    let frame = records.frames.iter().find(|frame| Some(frame.at.0) == made_us);
    frame.map_or(command, |frame| frame.command.seq.0)
}

fn carried(records: &PlayerRecords, command: u32) -> Option<UsercmdPath> {
    let fates = ArrivalTable::new(&records.reached);
    let carries = |newest: u32, count: u8| newest >= command && newest - command < u32::from(count);
    let with = records.sent.iter().filter(|packet| carries(packet.newest.0, packet.count));
    let with: Vec<_> = with.collect();
    let newest = records.reached.iter().map(|arrival| arrival.number).max();
    let arrived_us = with.iter().filter_map(|packet| fates.of(packet.number).next()).map(|at| at.0).min();
    Some(UsercmdPath {
        sent_us: with.iter().map(|packet| packet.at.0).min()?,
        arrived_us,
        is_lost: arrived_us.is_none() && newest.is_some_and(|newest| with.iter().all(|packet| packet.number < newest)),
        packets: with.len() as u32,
    })
}

/// The result of a shot under another setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RejudgedShot {
    /// A description of the rules, such as `without lag compensation`.
    pub what: String,
    /// The changed setting, as `key=value`.
    pub setting: String,
    /// The result of the shot; `None` if it would not have been judged.
    pub server: Option<ShotResult>,
}

/// Rules for judging shots: the log's settings with one setting changed.
#[derive(Clone, Debug)]
pub struct RejudgeRules {
    /// A description of the rules.
    pub what: &'static str,
    /// The changed setting, as `key=value`.
    pub setting: String,
    /// Limits the rules to shots whose rewind met this limit; `None` for all shots.
    pub limit: Option<&'static str>,
}

/// The results of all shots under other rules.
#[derive(Clone, Debug)]
pub struct RejudgedShots {
    rules: RejudgeRules,
    /// By shooter, usercmd and index of the shot.
    came: SortedMap<[u32; 3], ShotResult>,
}

impl RejudgedShots {
    /// Reads the results from the shots of a replay under these rules.
    pub fn of(rules: RejudgeRules, shots: &Table) -> RejudgedShots {
        let table = shots::Columns::read(shots);
        let shot = |row: usize| {
            let name = [table.shooter, table.command, table.index].map(|column| cell(column, row));
            let [Some(shooter), Some(command), Some(index)] = name else { return None };
            Some(([shooter, command, index], on_server(&table, row)))
        };
        RejudgedShots { rules, came: (0..table.rows).filter_map(shot).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::record::{ArrivalRecord, FrameRecord, PacketRecord};
    use hitreg_log::trace::{Column, ColumnData};
    use hitreg_log::units::CommandSeq;
    use hitreg_log::usercmd::Usercmd;

    /// A server's own log, an import, or a build without prediction has no results on screens.
    #[test]
    fn a_shot_is_unpredicted_only_if_its_client_ran() {
        let screen = |mode: &str, of_frames: &[&str]| {
            let number = |name: &str| Column::new(name, ColumnData::U32(vec![1]));
            let text = |name: &str, value: &str| {
                Column::new(name, ColumnData::Name { names: vec![value.to_owned()], codes: vec![0] })
            };
            let reasons = [text("reason", "hit"), text("predicted_reason", NOT_PREDICTED)];
            let shots = ["shooter", "command"].map(number).into_iter().chain(reasons).collect();
            let frames = of_frames.iter().map(|name| number(name)).collect();
            let tables = vec![Table::new(shots::NAME, shots), Table::new(frames::NAME, frames)];
            let mut trace = Trace { tables, ..Trace::default() };
            trace.header.mode = mode.to_owned();
            TraceRows::new(&trace).shot(0).screen.reason
        };
        let all = ["player", "command", "has_body"];
        assert_eq!(screen("closed", &all), NOT_PREDICTED);
        let unknown = [("closed", &all[..2]), ("closed", &[]), ("open", &all), ("recorded", &all)];
        assert!(unknown.iter().all(|(mode, of_frames)| screen(mode, of_frames).is_empty()));
    }

    /// A shot of p0 in tick 5 at entity 8, at (1e7, -2.5e7). Double precision has the positions of bodies.
    fn far_shot(ticks_of_target: &[u32]) -> ShotExplanation {
        TraceRows::new(&far_trace(ticks_of_target)).shot(0)
    }

    fn far_trace(ticks_of_target: &[u32]) -> Trace {
        let number = |name: &str, values: &[u32]| Column::new(name, ColumnData::U32(values.to_vec()));
        let double = |name: &str, values: &[f64]| Column::new(name, ColumnData::F64(values.to_vec()));
        let single = |name: &str, value: f32| Column::new(name, ColumnData::F32(vec![value]));
        let text = |name: &str, value: &str| {
            Column::new(name, ColumnData::Name { names: vec![value.to_owned()], codes: vec![0] })
        };
        let of_shot = [("shooter", 0), ("command", 7), ("tick", 5)].map(|(name, value)| number(name, &[value]));
        let times = ["at_us", "rewind_us"].map(|name| Column::new(name, ColumnData::I64(vec![0])));
        let hit = [text("reason", "hit"), text("target", "entity 8")];
        let shots = of_shot.into_iter().chain(times).chain(hit).collect();
        let of_frame = [number("player", &[0]), number("command", &[7]), single("yaw", 90.0)];
        let own = [double("own.origin.x", &[1e7]), double("own.origin.y", &[-2.5e7 - 100.0])];
        let of_view = [("player", 0), ("command", 7), ("entity", 8)].map(|(name, value)| number(name, &[value]));
        let drawn = [("origin.x", 1e7), ("origin.y", -2.5e7), ("origin.z", 0.0)].map(|(name, at)| single(name, at));
        let ticks: Vec<u32> = [4, 5].iter().chain(ticks_of_target).copied().collect();
        let entities: Vec<u32> = [0, 0].into_iter().chain(ticks_of_target.iter().map(|_| 8)).collect();
        let axes = [("origin.x", 1e7 + 0.25), ("origin.y", -2.5e7 + 0.25)];
        let places = axes.map(|(name, at)| double(name, &vec![at; ticks.len()]));
        let of_body = [number("tick", &ticks), number("entity", &entities)];
        let tables = vec![
            Table::new(shots::NAME, shots),
            Table::new(frames::NAME, of_frame.into_iter().chain(own).collect()),
            Table::new(views::NAME, of_view.into_iter().chain(drawn).collect()),
            Table::new(bodies::NAME, of_body.into_iter().chain(places).collect()),
        ];
        Trace { tables, ..Trace::default() }
    }

    #[test]
    fn a_place_from_views_has_the_step_of_single_precision() {
        let shot = far_shot(&[4, 5]);
        let of = |which| shot.place_of(which).map(|place| (place.known_by, place.uncertainty_units));
        assert_eq!(of(PositionKind::Drawn), Some((views::NAME, 2.0)));
        assert_eq!(of(PositionKind::Present), Some((bodies::NAME, 0.0)));
    }

    /// One coordinate of one class is enough.
    #[test]
    fn positions_of_any_class_may_have_double_precision() {
        let is_in_doubt = |name: &str, singles: &[&str]| {
            let mut trace = far_trace(&[4, 5]);
            for table in trace.tables.iter_mut().filter(|table| [frames::NAME, bodies::NAME].contains(&&*table.name)) {
                table.name = table.name.replace(bodies::NAME, name);
                for column in table.columns.iter_mut().filter(|column| singles.contains(&&*column.name)) {
                    column.data = ColumnData::F32(vec![0.0; column.data.len()]);
                }
            }
            let shot = TraceRows::new(&trace).shot(0);
            shot.place_of(PositionKind::Drawn).is_some_and(|place| place.uncertainty_units > 0.0)
        };
        let own = ["own.origin.x", "own.origin.y", "origin.x"];
        assert!(is_in_doubt("bodies.tank", &own) && is_in_doubt(bodies::NAME, &own));
        assert!(!is_in_doubt("bodies.tank", &[&own[..], &["origin.y"]].concat()));
    }

    #[test]
    fn a_target_that_the_shots_tick_removed_is_gone() {
        let known_by = |ticks: &[u32]| far_shot(ticks).place_of(PositionKind::Present).map(|place| place.known_by);
        let expected = [Some("gone in that tick"), Some(bodies::NAME), Some("not known")];
        assert_eq!([known_by(&[4]), known_by(&[4, 5]), known_by(&[])], expected);
    }

    /// A replay numbers the usercmds after a gap on from those before it.
    #[test]
    fn a_usercmd_after_a_gap_is_found_by_its_time() {
        let frame = |seq: u32| {
            let input = Usercmd { seq: CommandSeq(seq), ..Usercmd::default() };
            FrameRecord { at: Micros(i64::from(seq) * 10), command: input, ..FrameRecord::default() }
        };
        let records = PlayerRecords { frames: [1, 2, 9].map(frame).to_vec(), ..PlayerRecords::default() };
        let number = |command: u32, made_us: Option<i64>| recorded_number(&records, command, made_us);
        assert_eq!([number(3, Some(90)), number(2, Some(20)), number(3, None)], [9, 2, 3]);
    }

    #[test]
    fn a_usercmd_is_lost_only_if_a_later_packet_arrived() {
        let sent = |number: u32| PacketRecord {
            number,
            at: Micros(i64::from(number)),
            newest: CommandSeq(number),
            count: 1,
            bytes: 40,
            ack: hitreg_log::units::SnapshotSeq(0),
        };
        let records = PlayerRecords {
            sent: (1..=3).map(sent).collect(),
            reached: vec![ArrivalRecord { number: 2, at: Micros(9) }],
            ..PlayerRecords::default()
        };
        let is_lost = |command| carried(&records, command).map(|path| path.is_lost);
        assert_eq!([1, 2, 3].map(is_lost), [Some(true), Some(false), Some(false)]);
    }
}
