//! Structs and enums of the C ABI.
//!
//! Structs of options and results begin with their size, so that callers with an older header work with a newer
//! library. They contain only numbers, have no padding, and only ever grow. Rows grow by columns.

use std::ffi::{c_char, c_void};

use super::guard::Sized32;

/// Options of a recorder. Zero selects the default of each field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_options {
    /// `sizeof(hitreg_options)`.
    pub size: u32,
    /// Reorder window in milliseconds: how much older than the newest row a row may be; 250 by default.
    pub window_ms: u32,
    /// Capacity of each stream, in rows; 4096 by default.
    pub ring: u32,
    /// 1: wait instead of dropping rows or chunks, for sessions that do not run in real time.
    pub patient: u32,
    /// Seconds of session time after which a new file (`NAME-0001.hitlog` and so on) starts; 0 for no limit. With both
    /// limits 0, there is one file, without a number.
    pub rotate_s: u32,
    /// MiB after which a new file starts; 0 for no limit.
    pub rotate_mib: u32,
}

/// Counters of a recorder.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_written {
    /// `sizeof(hitreg_written)`.
    pub size: u32,
    /// Reserved; 0.
    pub reserved: u32,
    /// Rows written.
    pub rows: u64,
    /// Rows lost because a stream was full.
    pub lost_rows: u64,
    /// Chunks dropped because the disk was too slow.
    pub dropped_chunks: u64,
    /// Rows refused because they were older than the reorder window. Gaps in the log mark when.
    pub late_rows: u64,
}

/// A field of an entity's state, or of a usercmd.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hitreg_field {
    /// Name, unique in its class. Components of a vector share the first part: `origin.x`, `origin.y`.
    pub name: *const c_char,
    /// A `hitreg_type`.
    pub value_type: u32,
    /// A `hitreg_scope`.
    pub scope: u32,
    /// A `hitreg_meaning`.
    pub meaning: u32,
    /// The unit; null for the default of the meaning.
    pub unit: *const c_char,
}

/// A column of a table of your own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hitreg_column {
    /// Name, unique in its table; not `at_us`.
    pub name: *const c_char,
    /// A `hitreg_type`.
    pub value_type: u32,
}

/// A table of a log, with the columns of its rows in order. Every row also has a time, `at_us`. The series of a row is
/// its player, and 0 in `TICKS`, `STATES` and `DAMAGE`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum hitreg_table {
    /// Usercmds: seq, server_time_us, lerp_ms, msec, pitch, yaw, roll, forwardmove, sidemove, upmove, buttons, impulse,
    /// bytes, fields. Angles and moves are floats. `bytes` is a list of bytes, `fields` of `hitreg_value`.
    HITREG_TABLE_FRAMES = 0,
    /// Shots as clients predicted them: usercmd, index, reason, target, hitgroup, damage, rewound_us, weapon, impact,
    /// pellets. `weapon` is a text or a number; it and `pellets` may be empty.
    HITREG_TABLE_PREDICTED = 1,
    /// Shots as the server judged them: usercmd, index, reason, target, hitgroup, damage, rewound_us, weapon, impact,
    /// pellets.
    HITREG_TABLE_JUDGED = 2,
    /// Packets that clients sent: number, newest, count, ack, bytes.
    HITREG_TABLE_SENT = 3,
    /// Packets that reached the server: number.
    HITREG_TABLE_REACHED = 4,
    /// How the server handled usercmds: usercmd, tick, how. Rows take the time of the previous push.
    HITREG_TABLE_EXECUTED = 5,
    /// Players who joined or left: tick, presence.
    HITREG_TABLE_PRESENCE = 6,
    /// Snapshots that the server sent: seq, tick, server_time_us, ack, bytes, choked, entities, effects. `entities` is
    /// a list of `uint16_t`, `effects` of `hitreg_effect`.
    HITREG_TABLE_SNAPSHOTS = 7,
    /// Snapshots that reached their client: seq.
    HITREG_TABLE_RECEIVED = 8,
    /// Ends of server ticks: tick, hash. `hash` may be empty.
    HITREG_TABLE_TICKS = 9,
    /// States of entities after a tick: tick, viewer, entity, class_number, cells. `cells` is a list of `uint32_t`.
    /// Rows take the time of the previous push.
    HITREG_TABLE_STATES = 10,
    /// Damage to entities: tick, victim, attacker, amount, weapon, armour, force_x, force_y, force_z. `weapon`, `armour`
    /// and the force may be empty.
    HITREG_TABLE_DAMAGE = 11,
    /// The first table of your own; see `hitreg_table_custom`. It has the columns of `hitreg_description_table`.
    HITREG_TABLE_CUSTOM = 256,
}

/// The state of an entity after a tick.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hitreg_state {
    /// The tick. In a log that begins inside a session, states of tick 0 say where entities were.
    pub tick: u32,
    /// The only player who was sent this state; -1 for all.
    pub viewer: i32,
    /// The entity, up to 65,535; players first.
    pub entity: u32,
    /// The class of the entity: 0 for the first `hitreg_description_class`.
    pub class_number: u32,
    /// One cell for each field of the class, floats as their bits (`memcpy`). Fields of 64 bits have two cells:
    /// `hitreg_put_64`, `hitreg_put_f64`, `hitreg_put_text`.
    pub cells: *const u32,
    /// Number of cells.
    pub cell_count: u32,
}

/// How the server handled a usercmd.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_how {
    /// The server ran it.
    HITREG_HOW_RUN = 0,
    /// It never arrived; the server ran the previous usercmd again in its place.
    HITREG_HOW_STOOD_IN = 1,
    /// It never arrived, and the server ran nothing in its place.
    HITREG_HOW_MISSING = 2,
    /// It arrived after a later usercmd had run, and the server dropped it.
    HITREG_HOW_LATE = 3,
    /// The player had used up the simulation time that the server allows.
    HITREG_HOW_OVER_BUDGET = 4,
}

/// The result of a shot.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_reason {
    /// It hit a target.
    HITREG_REASON_HIT = 0,
    /// The map blocked a shot that would have hit a target.
    HITREG_REASON_HIT_WORLD = 1,
    /// Its line meets no target.
    HITREG_REASON_MISSED = 2,
    /// It hit a target that is already dead at present; no damage.
    HITREG_REASON_ALREADY_DEAD = 3,
    /// It launched a projectile; the impact has its own row.
    HITREG_REASON_LAUNCHED = 4,
}

/// Whether a player joined or left.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_presence {
    /// The player joined.
    HITREG_PRESENCE_JOINED = 0,
    /// The player left.
    HITREG_PRESENCE_LEFT = 1,
}

/// A sound or a visual effect in a snapshot, which happens once.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_effect {
    /// Number of the effect in the game's numbering, up to 255.
    pub kind: u32,
    /// The entity that causes it, up to 65,535.
    pub entity: u32,
    /// 1: shared code causes the effect, so that its player's client can predict it; 0: it does not.
    pub predictable: u32,
    /// Position, in units.
    pub x: f32,
    /// Position, in units.
    pub y: f32,
    /// Position, in units.
    pub z: f32,
}

/// The kind of a value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_value_kind {
    /// No value.
    HITREG_VALUE_NONE = 0,
    /// An integer: `data.number`.
    HITREG_VALUE_NUMBER = 1,
    /// A float: `data.real`.
    HITREG_VALUE_REAL = 2,
    /// A list: `count` items of `item_bytes` bytes at `data.items`.
    HITREG_VALUE_LIST = 3,
    /// A 64-bit float: `data.real64`.
    HITREG_VALUE_REAL64 = 4,
    /// A text: `data.text`.
    HITREG_VALUE_TEXT = 5,
}

/// The content of a value.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hitreg_value_data {
    /// An integer; hashes as their bits.
    pub number: i64,
    /// A float.
    pub real: f32,
    /// A 64-bit float.
    pub real64: f64,
    /// A text, ended by a zero byte. Texts of a log stay valid until the log is freed.
    pub text: *const c_char,
    /// The first item of a list; null if it is empty.
    pub items: *const c_void,
}

/// One value of a row. Make it with `hitreg_number`, `hitreg_real`, `hitreg_real64`, `hitreg_text`,
/// `hitreg_list` or `hitreg_none`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hitreg_value {
    /// A `hitreg_value_kind`.
    pub kind: u16,
    /// Size of an item of a list, in bytes.
    pub item_bytes: u16,
    /// Number of items of a list.
    pub count: u32,
    /// The content.
    pub data: hitreg_value_data,
}

macro_rules! sized {
    ($($name:ident $first:literal;)*) => { $(
        // SAFETY: the struct contains only numbers, `size` first. Its size equals the sum of its fields, so there is no
        // padding.
        unsafe impl Sized32 for $name {
            const FIRST: usize = $first;
            const NAME: &'static str = stringify!($name);
        }
        const _: () = assert!(size_of::<$name>() >= $first, "a struct only grows");
    )* };
}
sized! {
    hitreg_options 24;
    hitreg_written 40;
}
