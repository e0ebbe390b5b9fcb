//! Declarations of all trace tables. The doc comments in `table!` are also the text of docs/tables.md.

use glam::Vec3;

use super::kinds::table;
use super::{
    CellType, Code, ColumnRole, ColumnSchema, JoinRule, NONE, OptionalBits, OptionalCode, OptionalMeasure,
    OptionalNumber, OptionalText, TableSchema, TableSubject, TextColumn, Unit,
};
use crate::trace::{Column, ColumnData, NameColumn, Table, Trace};

/// All declared tables, in the order in which a replay writes them.
pub const TABLES: [&TableSchema; 12] = [
    &ticks::SCHEMA,
    &bodies::SCHEMA,
    &executed::SCHEMA,
    &frames::SCHEMA,
    &corrections::SCHEMA,
    &errors::SCHEMA,
    &views::SCHEMA,
    &shots::SCHEMA,
    &effects::SCHEMA,
    &variables::SCHEMA,
    &packets::SCHEMA,
    &snapshots::SCHEMA,
];

static NOTHING: Table = Table { name: String::new(), key: Vec::new(), columns: Vec::new() };

const ON_SCREEN: [&str; 6] = ["hit", "hit the world", "missed", "already dead", "launched", NOT_PREDICTED];
const ON_SERVER: [&str; 6] = ["hit", "hit the world", "missed", "already dead", "launched", NOT_RUN];
/// The beginning of the names of tables with the states of one class, besides `bodies`.
pub const BODIES_OF_CLASS: &str = "bodies.";

/// Returns whether a table holds the states of entities, of the first class or another one.
pub fn is_bodies(table: &str) -> bool {
    table == bodies::NAME || table.starts_with(BODIES_OF_CLASS)
}

/// The tables of traces that a game may record itself, as kinds of records.
const RECORDABLE: [&str; 2] = [corrections::NAME, errors::NAME];

/// The table of the bytes of usercmds, in exports of logs.
pub const USERCMD_BYTES: &str = "usercmd_bytes";

/// Returns whether only hitreg may give a table this name.
pub fn is_reserved(table: &str) -> bool {
    let is_declared = TABLES.iter().map(|schema| schema.name).chain([USERCMD_BYTES]).any(|name| name == table);
    table.starts_with(BODIES_OF_CLASS) || is_declared && !RECORDABLE.contains(&table)
}

/// The hash of a tick without one.
pub const NO_HASH: u64 = 0;
/// The reason of a shot that the server never ran.
pub const NOT_RUN: &str = "not run";
/// The predicted reason of a shot that the client did not predict.
pub const NOT_PREDICTED: &str = "not predicted";
/// The reason of a shot in a trace without a server.
pub const NO_SERVER: &str = "no server";

/// Returns whether a server judged a shot with this reason.
pub fn is_judged(reason: &str) -> bool {
    ![NOT_RUN, NO_SERVER].contains(&reason)
}

impl shots::Columns<'_> {
    /// Returns whether a row has a hit that only the recorded server reported: the replay has no shot or projectile to
    /// judge.
    pub fn is_reported(&self, row: usize) -> bool {
        let is_named = |names: NameColumn<'_>| !matches!(names.get(row), "" | NONE);
        let is_rejudged = self.rewind_us.get(row).is_some_and(|rewind_us| *rewind_us != 0)
            || is_named(self.present_target)
            || self.off_units.get(row).is_some_and(|off_units| !off_units.is_nan());
        is_named(self.given_target) && !is_rejudged
    }

    /// Returns whether the server of the trace judged the shot in a row. No other shot has a known rewind.
    pub fn is_judged(&self, row: usize) -> bool {
        is_judged(self.reason.get(row)) && !self.is_reported(row)
    }

    /// Returns how far the server rewound the targets of a shot; `None` if it is not known.
    pub fn known_rewind_us(&self, row: usize) -> Option<i64> {
        self.rewind_us.get(row).copied().filter(|_| self.is_judged(row))
    }

    /// Returns the damage of a shot to its target; `None` if it is not known.
    pub fn known_damage(&self, row: usize) -> Option<i64> {
        let is_given = || self.given_damage.get(row).is_some_and(|damage| !damage.is_nan());
        self.damage.get(row).copied().filter(|_| !self.is_reported(row) || is_given())
    }

    /// Returns the damage of a shot to all targets.
    pub fn whole_damage(&self, row: usize) -> i64 {
        // Such as `p3 torso 20; p4 arm 16 by 2 pellets`.
        let others = self.also_hit.get(row).split("; ");
        let without_pellets = others.map(|other| other.split_once(" by ").map_or(other, |(hit, _)| hit));
        let further = without_pellets.filter_map(|hit| hit.rsplit(' ').next()?.parse::<i64>().ok());
        further.fold(self.damage.get(row).copied().unwrap_or_default(), i64::saturating_add)
    }

    /// Returns whether a column has no value in a row, although its type has no missing values.
    fn is_missing(&self, column: &str, row: usize) -> bool {
        match column {
            "rewind_us" | "limit" => !self.is_judged(row),
            "damage" => self.known_damage(row).is_none(),
            _ => false,
        }
    }
}

/// The cells of a table without a value. Every output of rows shows them as missing.
#[derive(Clone, Copy, Debug)]
pub struct MissingCells<'t> {
    /// The columns of a table of shots.
    shots: Option<shots::Columns<'t>>,
}

impl<'t> MissingCells<'t> {
    /// Returns those of a table.
    pub fn of(table: &'t Table) -> MissingCells<'t> {
        MissingCells { shots: (table.name == shots::NAME).then(|| shots::Columns::read(table)) }
    }

    /// Returns whether a row of one of the table's columns has no value.
    pub fn has(&self, column: &Column, row: usize) -> bool {
        column.is_missing(row) || self.shots.is_some_and(|shots| shots.is_missing(&column.name, row))
    }

    /// Returns whether rows of one of the table's columns may have no value.
    pub fn may_have(&self, column: &Column) -> bool {
        match column.data {
            ColumnData::F32(_) | ColumnData::F64(_) => true,
            ColumnData::U64(_) => column.is_hash(),
            _ => self.shots.is_some() && ["rewind_us", "limit", "damage"].contains(&&*column.name),
        }
    }
}

/// Makes a table of shots that of a trace without a server.
pub fn name_missing_server(shots: &mut Table) {
    let reason = shots.columns.iter_mut().find(|column| column.name == "reason");
    if let Some(ColumnData::Name { names, .. }) = reason.map(|column| &mut column.data) {
        names.iter_mut().filter(|name| *name == NOT_RUN).for_each(|name| NO_SERVER.clone_into(name));
    }
}
/// The field of a correction because one of the bodies is absent.
pub const ABSENT: &str = "absent";
const GRADES: [&str; 3] = ["exact", "near", "miss"];
const CATEGORIES: [&str; 8] = [
    "constant",
    "self-contained",
    "authoritative",
    "controlled",
    "simulated",
    "deterministic-ai",
    "reactive",
    "inverted",
];

table! {
    /// One tick of the server.
    ticks { key: &["tick"], joined: JoinRule::AtSameTime, about: TableSubject::State, rank: 3 }
    /// Number of the tick, from 1.
    tick: u32;
    /// Time of the tick.
    at_us: i64, unit = Unit::Micros;
    /// Hash of the server's complete state after the tick; 0 for a tick without a hash, which no command compares.
    hash: u64;
}

table! {
    /// State of one entity after a tick.
    bodies { key: &["tick", "entity"], series: &["entity"], about: TableSubject::State, rank: 1, fields: Some("") }
    /// The tick.
    tick: u32;
    /// The entity; players come first, in their order.
    entity: u32;
}

table! {
    /// One usercmd that was due on the server, and that its client had time to make (at most 1,000 a second). One that was
    /// missing and arrives later has a second row, `late`, if its number is at most 2,048 below the newest.
    executed {
        key: &["player", "command"], repeats: true, series: &["player"], joined: JoinRule::Always, about: TableSubject::Input,
        rank: 0,
    }
    /// The player.
    player: u32;
    /// Number of the usercmd.
    command: u32;
    /// The tick in which it was due; in a row `late`, the tick in which it arrived.
    tick: u32;
    /// How the server handled it.
    how: Code, names = &["run", "stood_in", "missing", "late", "over_budget"];
}

table! {
    /// One client frame: its usercmd and the player's own predicted body.
    frames {
        key: &["player", "command"], series: &["player"], joined: JoinRule::AtSameTime, about: TableSubject::Input, rank: 9,
        fields: Some("own."),
    }
    /// The player.
    player: u32;
    /// Time of the client frame.
    at_us: i64, unit = Unit::Micros;
    /// Number of its usercmd.
    command: u32;
    /// How far behind `server_time_us` the client drew other players, rounded down to whole ms.
    lerp_msec: u32, unit = Unit::Millis;
    /// Duration that the usercmd covers.
    msec: u32, unit = Unit::Millis, role = ColumnRole::Input;
    /// Server time on the client's clock.
    server_time_us: i64, unit = Unit::Micros;
    /// View pitch; down is positive.
    pitch: f32, unit = Unit::Degrees, role = ColumnRole::Input;
    /// View yaw, counter-clockwise from +x.
    yaw: f32, unit = Unit::Degrees, role = ColumnRole::Input;
    /// View roll.
    roll: f32, unit = Unit::Degrees, role = ColumnRole::Input;
    /// Intended forward speed.
    forwardmove: f32, unit = Unit::UnitsPerSecond, role = ColumnRole::Input;
    /// Intended speed to the right.
    sidemove: f32, unit = Unit::UnitsPerSecond, role = ColumnRole::Input;
    /// Intended upward speed.
    upmove: f32, unit = Unit::UnitsPerSecond, role = ColumnRole::Input;
    /// Pressed buttons, one bit each.
    buttons: u32, role = ColumnRole::Input;
    /// One-shot request, such as a weapon change; 0 for none.
    impulse: u32, role = ColumnRole::Input;
    /// Number of usercmds that the client ran for the frame.
    ran: u32;
    /// Number of predicted effects that it played for the first time.
    first_effects: u32;
    /// Whether the client has a body yet.
    has_body: u32, unit = Unit::Flag;
    /// Where the client drew its own body.
    drawn: Vec3, unit = Unit::Units;
}

table! {
    /// One ack, compared with its prediction. A snapshot that repeats an ack has a row only if it corrects the body. An ack
    /// has no row if the client had not predicted its usercmd (`prediction.push_latency_ms`), or had dropped it, which
    /// happens with more than 2,048 in flight.
    corrections {
        key: &["player", "command"], repeats: true, series: &["player"], joined: JoinRule::Always,
        about: TableSubject::Corrections, rank: 4,
    }
    /// The player.
    player: u32;
    /// Arrival time of the ack.
    at_us: i64, unit = Unit::Micros;
    /// The acked usercmd.
    command: u32;
    /// Number of usercmds acked since the previous ack; 0 for a repeated ack.
    commands: u32;
    /// Agreement of the prediction, within limits that `replay` prints for the game.
    result: Code, names = &GRADES;
    /// Whether the first of these usercmds started on the ground.
    on_ground: u32, unit = Unit::Flag;
    /// Distance between predicted and authoritative position, including a recording's rounding.
    error_units: f32, unit = Unit::Units;
    /// Difference between predicted and authoritative velocity, including a recording's rounding.
    velocity_error_units_per_s: f32, unit = Unit::UnitsPerSecond;
    /// Number of corrected fields.
    fields: u32;
    /// Number of usercmds that the client ran again.
    reran: u32;
    /// Cause of the error.
    cause: Code, names = &[
        "none", "input_lost", "input_late", "input_refused", "teleport", "spawn_or_death", "knockback", "other_player", "mover",
        "water_edge", "quantisation", "unknown",
    ];
    /// Evidence for the cause: `snapshot`, `touched`, `reproduced`, `executed`, or a word of the game.
    evidence: TextColumn, names = &["none"];
    /// Agreement with the usercmds as their player ran them, if the prediction ran them as the server did.
    as_played: OptionalCode, optional = true, names = &GRADES;
}

table! {
    /// One corrected field.
    errors {
        key: &["player", "command", "field"], repeats: true, series: &["player"], joined: JoinRule::Always,
        about: TableSubject::Corrections, rank: 5,
    }
    /// The player.
    player: u32;
    /// The acked usercmd.
    command: u32;
    /// Name of the field; `absent` if one of the bodies belongs to no entity, with the value 1 for that body.
    field: TextColumn;
    /// Predicted value.
    predicted: f32;
    /// Authoritative value.
    authoritative: f32;
    /// Bits of the predicted value, of 64 the low 32.
    predicted_bits: u32;
    /// Bits of the authoritative value, of 64 the low 32.
    authoritative_bits: u32;
}

table! {
    /// One entity as a client drew it.
    views {
        key: &["player", "command", "entity"], series: &["player", "entity"], about: TableSubject::Views, rank: 7
    }
    /// The player who saw it.
    player: u32;
    /// Usercmd of the client frame.
    command: u32;
    /// Server time for which it was drawn.
    drawn_at_us: i64, unit = Unit::Micros;
    /// The drawn entity.
    entity: u32;
    /// Its drawn position.
    origin: Vec3, unit = Unit::Units;
    /// Its drawn pitch.
    pitch: f32, unit = Unit::Degrees;
    /// Its drawn yaw.
    yaw: f32, unit = Unit::Degrees;
    /// How the client determined the position.
    how: Code, names = &["interpolated", "extrapolated", "held", "teleported"];
    /// Its category; only if drawing depends on the category.
    category: OptionalCode, optional = true, names = &CATEGORIES;
    /// The drawn body's count of spawns and teleports, or launch id; only if a player draws others without a delay.
    teleports: OptionalNumber, optional = true;
}

table! {
    /// One shot or projectile impact; judged shots come first, in the server's order.
    shots {
        key: &["shooter", "command", "index"], series: &["shooter"], joined: JoinRule::Always, about: TableSubject::Hits, rank: 2
    }
    /// The player who fired.
    shooter: u32;
    /// The usercmd that fired.
    command: u32;
    /// Index among the shots of that usercmd; from 255 down for impacts.
    index: u32;
    /// Whether it is an impact.
    impact: u32, unit = Unit::Flag;
    /// Time of the server's judgement.
    at_us: i64, unit = Unit::Micros, role = ColumnRole::Judged;
    /// Tick of the server's judgement.
    tick: u32, role = ColumnRole::Judged;
    /// The weapon.
    weapon: TextColumn;
    /// How far the server rewound the targets; missing if it did not judge the shot.
    rewind_us: i64, unit = Unit::Micros, role = ColumnRole::Judged;
    /// The limit on the rewind; missing if the server did not judge the shot.
    limit: Code, names = &["none", "off", "max_unlag", "claim", "oldest"], role = ColumnRole::Judged;
    /// The target: the entity that was hit; for a miss the one that `aimed_by` chose. Players are `p3`, others `entity 500`.
    aimed_at: TextColumn, names = &["none"], role = ColumnRole::Judged;
    /// How the target was chosen: hit on the server, hit on the shooter's screen alone, or drawn nearest to the line.
    aimed_by: Code, names = &["none", "hit", "predicted_hit", "nearest"], role = ColumnRole::Judged;
    /// Angle between the line of the shot and the drawn target.
    aim_off_degrees: f32, unit = Unit::Degrees, role = ColumnRole::Judged;
    /// Distance between drawn and judged target; none for projectiles, teleports and spawns.
    view_error_units: f32, unit = Unit::Units, role = ColumnRole::Judged;
    /// Result on the shooter's screen; not predicted before the client's first snapshot.
    predicted_reason: Code, names = &ON_SCREEN, role = ColumnRole::Predicted;
    /// Target that was hit there.
    predicted_target: TextColumn, names = &["none"], role = ColumnRole::Predicted;
    /// Part of the body that was hit there.
    predicted_hitgroup: TextColumn, names = &["none"], role = ColumnRole::Predicted;
    /// Damage there, in health points.
    predicted_damage: i64, role = ColumnRole::Predicted;
    /// Number of pellets that hit there; 1 for a hit without a count.
    predicted_pellets: u32, role = ColumnRole::Predicted;
    /// Other targets that were hit there, as in `also_hit`.
    predicted_also_hit: OptionalText, optional = true, names = &["none"], role = ColumnRole::Predicted;
    /// Result on the server; `no server` in a trace without a server.
    reason: Code, names = &ON_SERVER, role = ColumnRole::Outcome;
    /// Target that was hit; of several, the one with the most damage.
    target: TextColumn, names = &["none"], role = ColumnRole::Outcome;
    /// Part of that target's body that was hit.
    hitgroup: TextColumn, names = &["none"], role = ColumnRole::Outcome;
    /// Damage to that target, in health points; missing if it is not known of a reported hit.
    damage: i64, role = ColumnRole::Outcome;
    /// Number of pellets that hit that target; 1 for a hit without a count.
    pellets: u32, role = ColumnRole::Outcome;
    /// Other targets that were hit: `p3 torso 20; p4 arm 16 by 2 pellets` has 20 and 16 health points of damage.
    also_hit: OptionalText, optional = true, names = &["none"], role = ColumnRole::Outcome;
    /// Whether the target's present server position was visible from the muzzle.
    visible_at_present: Code, names = &["unknown", "yes", "no"], role = ColumnRole::Judged;
    /// How long the target had been in cover on its own screen.
    in_cover_ms: f32, unit = Unit::Millis, role = ColumnRole::Judged;
    /// How far it had moved since it went into cover.
    in_cover_units: f32, unit = Unit::Units, role = ColumnRole::Judged;
    /// Target according to another server that judged the shot; `?` if the recording does not name it.
    given_target: OptionalText, optional = true, names = &["none"];
    /// Damage according to that server, if the recording has it.
    given_damage: OptionalMeasure, optional = true;
    /// Target of such a shot without a rewind.
    present_target: OptionalText, optional = true, names = &["none"];
    /// Distance by which the nearest line of fire misses that server's target here.
    off_units: OptionalMeasure, optional = true, unit = Unit::Units;
    /// The same distance for the outermost line within the weapon's spread.
    beyond_spread_units: OptionalMeasure, optional = true, unit = Unit::Units;
}

table! {
    /// One sound or visual effect that a client played. A teleport has one at each end, both at the same time.
    effects {
        key: &["player", "at_us", "kind", "entity"], repeats: true, series: &["player"], joined: JoinRule::Always,
        about: TableSubject::Effects, rank: 6,
    }
    /// The player.
    player: u32;
    /// Time of the effect.
    at_us: i64, unit = Unit::Micros;
    /// Kind of effect.
    kind: TextColumn;
    /// The entity that caused it.
    entity: u32;
    /// Position of the effect.
    at: Vec3, unit = Unit::Units;
    /// Whether the client predicted it; otherwise a snapshot carried it.
    predicted: u32, unit = Unit::Flag;
}

table! {
    /// One body variable of another category than its body's position, when its drawn value has changed or it reappears
    /// after over 4 s. Only if drawing depends on the category.
    variables {
        key: &["player", "command", "entity", "variable"], series: &["player", "entity"], about: TableSubject::Views, rank: 8
    }
    /// The player who saw it.
    player: u32;
    /// Usercmd of the client frame.
    command: u32;
    /// The entity.
    entity: u32;
    /// Name of the body's field.
    variable: TextColumn;
    /// Category of the variable.
    category: Code, names = &CATEGORIES;
    /// Value of the variable.
    value: f32;
}

table! {
    /// One packet from a client to the server.
    packets {
        key: &["player", "packet"], series: &["player"], about: TableSubject::Network, rank: 10, in_digest: false
    }
    /// The player.
    player: u32;
    /// Number of the packet.
    packet: u32;
    /// Send time.
    at_us: i64, unit = Unit::Micros;
    /// Number of arrivals; 0 is a loss if a later packet of the same player arrived, and in flight otherwise.
    arrived: u32;
    /// Transit time.
    took_ms: f32, unit = Unit::Millis;
    /// The newest usercmd in it.
    newest: u32;
    /// Number of usercmds in it: the newest and repeats of those before it.
    usercmds: u32;
    /// The newest snapshot that the client had received.
    ack: u32;
    /// Size of its datagram in bytes, if the replay encodes datagrams; nominal with `wire.sizes=nominal`.
    bytes: OptionalNumber, optional = true;
}

table! {
    /// One snapshot from the server to a client.
    snapshots {
        key: &["player", "snapshot"], series: &["player"], about: TableSubject::Network, rank: 11, in_digest: false
    }
    /// The player.
    player: u32;
    /// Number of the snapshot.
    snapshot: u32;
    /// Send time.
    at_us: i64, unit = Unit::Micros;
    /// Number of arrivals without repeats; 0 is a loss, or in flight if no later snapshot of the player arrived.
    arrived: u32;
    /// Transit time.
    took_ms: f32, unit = Unit::Millis;
    /// The newest usercmd that had run, was refused or was given up.
    ack: u32;
    /// Number of entities in the server's frame for the client.
    entities: u32;
    /// Number of effects in it, also effects that had no room in an earlier one.
    effects: u32;
    /// Number of updates that the rate limit held back before it.
    choked: u32;
    /// The calibration helper, if there is one.
    helper_ms: f32, unit = Unit::Millis;
    /// Number of warnings in it about usercmds out of sequence.
    warnings: u32;
    /// Size of its datagrams in bytes, if the replay encodes datagrams; nominal with `wire.sizes=nominal`.
    bytes: OptionalNumber, optional = true;
    /// Number of changed entities, effects and warnings without room in it, if the replay encodes datagrams.
    left_out: OptionalNumber, optional = true;
    /// Whether the client saw its avatar where the server had it after the acked usercmd, if the replay encodes
    /// datagrams.
    saw_avatar_right: OptionalCode, optional = true, names = &["no", "yes"];
    /// Its bits by use, if the replay encodes datagrams: variable values by category; identifiers of entities and
    /// variables; effects and warnings; headers.
    bits: OptionalBits, optional = true;
}
