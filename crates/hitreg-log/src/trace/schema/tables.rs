//! The declarations.

use glam::Vec3;

use super::declare::table;
use super::{
    About, Code, ColumnSchema, Joined, Kind, OptionalBits, OptionalCode, OptionalMeasure, OptionalNumber, OptionalText,
    Role, TableSchema, Text, Unit,
};
use crate::trace::{Column, Table, Trace};

/// All tables, in the order in which a replay writes them.
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

/// Format 1.2: all of a usercmd, predictions as played, and any number of names in a column.
const WIDER: (u16, u16) = (1, 2);
/// Format 1.5: what went over the network.
const NETWORK: (u16, u16) = (1, 5);

/// Format 3.0: what the bits of snapshots are for.
const BITS: (u16, u16) = (3, 0);

/// Hits that a server gave whose judging is not this build's own came with the same format.
const GIVEN: (u16, u16) = NETWORK;

static NOTHING: Table = Table { name: String::new(), key: Vec::new(), columns: Vec::new() };

const ON_SCREEN: [&str; 6] = ["hit", "hit the world", "missed", "already dead", "launched", "not predicted"];
const ON_SERVER: [&str; 6] = ["hit", "hit the world", "missed", "already dead", "launched", "not run"];
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
    /// A tick of the server.
    ticks { key: &["tick"], joined: Joined::AtSameTime, about: About::State, rank: 3 }
    /// Its number.
    tick: u32;
    /// When it ran.
    at_us: i64, unit = Unit::Micros;
    /// Hash of the server's whole state after it.
    hash: u64;
}

table! {
    /// The state of one entity after a tick.
    bodies { key: &["tick", "entity"], series: &["entity"], about: About::State, rank: 1, fields: Some("") }
    /// After which tick.
    tick: u32;
    /// Whose state; players come first, in their order.
    entity: u32;
}

table! {
    /// A usercmd that was due on the server.
    executed { key: &["player", "command"], series: &["player"], joined: Joined::Always, about: About::Input, rank: 0 }
    /// Whose.
    player: u32;
    /// Its number.
    command: u32;
    /// The tick in which it was due.
    tick: u32;
    /// What the server did about it.
    how: Code, names = &["run", "stood_in", "missing", "late", "over_budget"];
}

table! {
    /// A client frame: its usercmd, and the own body as it was predicted.
    frames {
        key: &["player", "command"], series: &["player"], joined: Joined::AtSameTime, about: About::Input, rank: 9,
        fields: Some("own."),
    }
    /// Whose.
    player: u32;
    /// When it was.
    at_us: i64, unit = Unit::Micros;
    /// The number of its usercmd.
    command: u32;
    /// How far behind `server_time_us` the client drew the others.
    lerp_msec: u32, unit = Unit::Millis, since = WIDER;
    /// How much time the usercmd covers.
    msec: u32, unit = Unit::Millis, role = Role::Input;
    /// The server time that the client's clock showed.
    server_time_us: i64, unit = Unit::Micros;
    /// Where the player looks: up and down, down is positive.
    pitch: f32, unit = Unit::Degrees, role = Role::Input;
    /// Round, counter-clockwise from +x.
    yaw: f32, unit = Unit::Degrees, role = Role::Input;
    /// Tilted.
    roll: f32, unit = Unit::Degrees, since = WIDER, role = Role::Input;
    /// Intended speed ahead.
    forwardmove: f32, unit = Unit::UnitsPerSecond, role = Role::Input;
    /// Intended speed to the right.
    sidemove: f32, unit = Unit::UnitsPerSecond, role = Role::Input;
    /// Intended speed upwards.
    upmove: f32, unit = Unit::UnitsPerSecond, role = Role::Input;
    /// Pressed buttons, one bit each.
    buttons: u32, role = Role::Input;
    /// A request for once, such as another weapon; 0 is none.
    impulse: u32, since = WIDER, role = Role::Input;
    /// Input of the game's own.
    extra: u32, since = WIDER, role = Role::Input;
    /// How many usercmds were run for the frame.
    ran: u32;
    /// How many sounds and sights it played that it had predicted.
    first_effects: u32;
    /// Whether the client has a body yet.
    has_body: u32, unit = Unit::Flag;
    /// Where the own body was drawn.
    drawn: Vec3, unit = Unit::Units;
}

table! {
    /// An ack that was held against a prediction.
    corrections {
        key: &["player", "command"], series: &["player"], joined: Joined::Always, about: About::Corrections, rank: 4
    }
    /// Whose.
    player: u32;
    /// When it arrived.
    at_us: i64, unit = Unit::Micros;
    /// The usercmd that was acked.
    command: u32;
    /// How many usercmds were acked since the ack before.
    commands: u32;
    /// How well the prediction agrees: `near` is within 0.2 units and 1.5 units/s.
    result: Code, names = &GRADES;
    /// Whether the first of them began on the ground.
    on_ground: u32, unit = Unit::Flag;
    /// Distance between predicted and authoritative place.
    error_units: f32, unit = Unit::Units;
    /// The same of the velocities.
    velocity_error_units_per_s: f32, unit = Unit::UnitsPerSecond;
    /// How many fields had to be corrected.
    fields: u32;
    /// How many usercmds were run again.
    reran: u32;
    /// Why it was wrong.
    cause: Code, names = &[
        "none", "input_lost", "input_late", "teleport", "spawn_or_death", "knockback", "other_player", "mover",
        "water_edge", "quantisation", "unknown",
    ];
    /// What shows that.
    evidence: Text, names = &["none"];
    /// How well the usercmds agree as their player ran them, where the prediction was run again as the server ran it.
    as_played: OptionalCode, optional = true, names = &GRADES, since = WIDER;
}

table! {
    /// A field that had to be corrected.
    errors {
        key: &["player", "command", "field"], series: &["player"], joined: Joined::Always, about: About::Corrections,
        rank: 5,
    }
    /// Whose.
    player: u32;
    /// The usercmd that was acked.
    command: u32;
    /// The name of the field.
    field: Text;
    /// Its value as it was predicted.
    predicted: f32;
    /// Its value as the server has it.
    authoritative: f32;
    /// The bits of the former.
    predicted_bits: u32;
    /// The bits of the latter.
    authoritative_bits: u32;
}

table! {
    /// An entity as a client drew it.
    views {
        key: &["player", "command", "entity"], series: &["player", "entity"], about: About::Views, rank: 7
    }
    /// Who saw it.
    player: u32;
    /// In the frame of which usercmd.
    command: u32;
    /// The server time that it was drawn at.
    drawn_at_us: i64, unit = Unit::Micros;
    /// What was drawn.
    entity: u32;
    /// Where.
    origin: Vec3, unit = Unit::Units;
    /// Looking where.
    pitch: f32, unit = Unit::Degrees;
    /// The same.
    yaw: f32, unit = Unit::Degrees;
    /// How its place was found.
    how: Code, names = &["interpolated", "extrapolated", "held", "teleported"];
    /// By which category; only where drawing goes by category.
    category: OptionalCode, optional = true, names = &CATEGORIES;
}

table! {
    /// A shot, or the impact of a projectile; those that the server judged first, in its order.
    shots {
        key: &["shooter", "command", "index"], series: &["shooter"], joined: Joined::Always, about: About::Hits, rank: 2
    }
    /// Who shot.
    shooter: u32;
    /// The usercmd that fired.
    command: u32;
    /// Which shot of that usercmd; 255 for an impact.
    index: u32;
    /// Whether it is an impact.
    impact: u32, unit = Unit::Flag;
    /// When it was judged.
    at_us: i64, unit = Unit::Micros, role = Role::Judged;
    /// In which tick.
    tick: u32, role = Role::Judged;
    /// What it was fired with.
    weapon: Text;
    /// How far the others were rewound.
    rewind_us: i64, unit = Unit::Micros, role = Role::Judged;
    /// What bounded the rewind.
    limit: Code, names = &["none", "off", "max_unlag", "claim", "oldest"], role = Role::Judged;
    /// Whom it was meant for: who on the screen was nearest to its line.
    aimed_at: Text, names = &["none"], role = Role::Judged;
    /// How far off.
    aim_off_degrees: f32, unit = Unit::Degrees, role = Role::Judged;
    /// Distance between where that one was drawn and where the server judged it to be.
    view_error_units: f32, unit = Unit::Units, role = Role::Judged;
    /// What became of it on the shooter's screen.
    predicted_reason: Code, names = &ON_SCREEN, role = Role::Predicted;
    /// Whom it hit there.
    predicted_target: Text, names = &["none"], role = Role::Predicted;
    /// In which part of the body.
    predicted_hitgroup: Text, names = &["none"], role = Role::Predicted;
    /// For how much.
    predicted_damage: i64, role = Role::Predicted;
    /// With how many pellets.
    predicted_pellets: u32, role = Role::Predicted;
    /// What became of it on the server.
    reason: Code, names = &ON_SERVER, role = Role::Outcome;
    /// Whom it hit.
    target: Text, names = &["none"], role = Role::Outcome;
    /// In which part of the body.
    hitgroup: Text, names = &["none"], role = Role::Outcome;
    /// For how much.
    damage: i64, role = Role::Outcome;
    /// With how many pellets.
    pellets: u32, role = Role::Outcome;
    /// Whether the target could be seen from the muzzle where the server had it at present.
    visible_at_present: Code, names = &["unknown", "yes", "no"], role = Role::Judged;
    /// For how long the target had been in cover on its own screen.
    in_cover_ms: f32, unit = Unit::Millis, role = Role::Judged;
    /// How far it had moved there since.
    in_cover_units: f32, unit = Unit::Units, role = Role::Judged;
    /// Of a shot that another server judged: whom that server said it hit; `?` where a recording does not tell whom.
    given_target: OptionalText, optional = true, names = &["none"], since = GIVEN;
    /// For how much, where the recording tells.
    given_damage: OptionalMeasure, optional = true, since = GIVEN;
    /// Whom such a shot would have hit without going back.
    present_target: OptionalText, optional = true, names = &["none"], since = GIVEN;
    /// How far beside that server's target its nearest line passes where it is judged here.
    off_units: OptionalMeasure, optional = true, unit = Unit::Units, since = GIVEN;
    /// The same of the outermost line that the weapon's spread allows.
    beyond_spread_units: OptionalMeasure, optional = true, unit = Unit::Units, since = GIVEN;
}

table! {
    /// A sound or sight that a client played.
    effects {
        key: &["player", "at_us", "kind", "entity"], series: &["player"], joined: Joined::Always, about: About::Effects,
        rank: 6,
    }
    /// Whose client.
    player: u32;
    /// When.
    at_us: i64, unit = Unit::Micros;
    /// What.
    kind: Text;
    /// Of whom.
    entity: u32;
    /// Where.
    at: Vec3, unit = Unit::Units;
    /// Whether the client predicted it, or was told.
    predicted: u32, unit = Unit::Flag;
}

table! {
    /// A variable of another category than its body's place, when it has changed on a player's screen, or is on it again after more than
    /// 4 s; only where drawing goes by category.
    variables {
        key: &["player", "command", "entity", "variable"], series: &["player", "entity"], about: About::Views, rank: 8
    }
    /// Who saw it.
    player: u32;
    /// In the frame of which usercmd.
    command: u32;
    /// Whose variable.
    entity: u32;
    /// The name of the body's field.
    variable: Text;
    /// Its category.
    category: Code, names = &CATEGORIES;
    /// Its value.
    value: f32;
}

table! {
    /// A packet on its way from a client to the server.
    packets {
        key: &["player", "packet"], series: &["player"], about: About::Network, rank: 10, since: NETWORK
    }
    /// Whose.
    player: u32;
    /// Its number.
    packet: u32;
    /// When it left.
    at_us: i64, unit = Unit::Micros;
    /// How often it arrived; 0 is lost.
    arrived: u32;
    /// How long it was on its way.
    took_ms: f32, unit = Unit::Millis;
    /// The newest usercmd in it.
    newest: u32;
    /// How many usercmds it holds: the newest and repeats of those before it.
    usercmds: u32;
    /// The newest snapshot that the client had.
    ack: u32;
    /// How long its datagram is, where datagrams are asked for.
    bytes: OptionalNumber, optional = true;
}

table! {
    /// A snapshot on its way from the server to a client.
    snapshots {
        key: &["player", "snapshot"], series: &["player"], about: About::Network, rank: 11, since: NETWORK
    }
    /// For whom.
    player: u32;
    /// Its number.
    snapshot: u32;
    /// When it left.
    at_us: i64, unit = Unit::Micros;
    /// How often it arrived; 0 is lost.
    arrived: u32;
    /// How long it was on its way.
    took_ms: f32, unit = Unit::Millis;
    /// The newest usercmd that had run.
    ack: u32;
    /// How many entities the client has with it.
    entities: u32;
    /// How many sounds and sights it tells of.
    effects: u32;
    /// How many updates the rate held back before it.
    choked: u32;
    /// The calibration helper, where there is one.
    helper_ms: f32, unit = Unit::Millis;
    /// How many usercmds it warns of that came out of sequence.
    warnings: u32;
    /// How long its datagrams are, where datagrams are asked for.
    bytes: OptionalNumber, optional = true;
    /// Whether the client saw its avatar where the server had it after the usercmd that is acked; where datagrams are asked for.
    saw_avatar_right: OptionalCode, optional = true, names = &["no", "yes"];
    /// What its bits are for, where datagrams are asked for: values of variables by category; which entities and variables
    /// they are of; effects, warnings and notices; headers.
    bits: OptionalBits, optional = true, since = BITS;
}
