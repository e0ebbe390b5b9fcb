//! Structs of the C ABI. Each begins with its size, so that callers with an older header work with a newer library.
//! They contain only numbers, have no padding, and only ever grow.

use super::guard::Sized32;

/// Options of a recorder. Zero selects the default of each field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_options {
    /// `sizeof(hitreg_options)`.
    pub size: u32,
    /// Reorder window in milliseconds: how much older than the newest record a record may be; 250 by default.
    pub window_ms: u32,
    /// Capacity of each stream, in records; 4096 by default.
    pub ring: u32,
    /// 1: wait instead of dropping records or chunks, for sessions that do not run in real time.
    pub patient: u32,
    /// Seconds of session time after which a new file (`NAME-0001.hitlog` and so on) starts; 0 for no limit.
    pub rotate_s: u32,
    /// MiB after which a new file starts; 0 for no limit.
    pub rotate_mib: u32,
}

/// A client frame's input.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_usercmd {
    /// `sizeof(hitreg_usercmd)`.
    pub size: u32,
    /// Usercmd number, from 1.
    pub seq: u32,
    /// Session time of the client frame, in µs. A server that does not know it sets the arrival time.
    pub at_us: i64,
    /// The server time on the client's clock, in µs.
    pub server_time_us: i64,
    /// How far behind `server_time_us` the client drew other players, in milliseconds.
    pub lerp_ms: u32,
    /// Duration of the client frame in milliseconds, up to 255.
    pub msec: u32,
    /// Pitch in degrees; down is positive.
    pub pitch: f32,
    /// Yaw in degrees, counter-clockwise from +x.
    pub yaw: f32,
    /// Roll in degrees.
    pub roll: f32,
    /// Intended forward speed, in units/s.
    pub forwardmove: f32,
    /// Intended speed to the right, in units/s.
    pub sidemove: f32,
    /// Intended upward speed, in units/s.
    pub upmove: f32,
    /// Pressed buttons, up to 16 bits.
    pub buttons: u32,
    /// A one-shot request, up to 255; 0 for none.
    pub impulse: u32,
    /// 32 game-defined bits. `hitreg_push_usercmd_bytes` takes more data.
    pub extra: u32,
    /// Reserved; 0.
    pub reserved: u32,
}

/// A packet that a client sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_packet {
    /// `sizeof(hitreg_packet)`.
    pub size: u32,
    /// Packet number, from 1.
    pub number: u32,
    /// Send time, in µs.
    pub at_us: i64,
    /// The newest usercmd in it.
    pub newest: u32,
    /// Number of usercmds in it, up to 255.
    pub count: u32,
    /// The newest snapshot that the client had received; 0 for none.
    pub ack: u32,
    /// Total bytes of its datagrams.
    pub bytes: u32,
}

/// A snapshot that the server sent to a player.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_snapshot {
    /// `sizeof(hitreg_snapshot)`.
    pub size: u32,
    /// Snapshot number, from 1.
    pub seq: u32,
    /// Send time, in µs.
    pub at_us: i64,
    /// The server time in the snapshot, in µs.
    pub server_time_us: i64,
    /// The tick whose state it carries.
    pub tick: u32,
    /// The newest usercmd that had run; 0 for none.
    pub ack: u32,
    /// Total bytes of its datagrams.
    pub bytes: u32,
    /// Number of updates that the client's rate limit held back before this one.
    pub choked: u32,
}

/// A one-shot sound or visual effect in a snapshot.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_effect {
    /// `sizeof(hitreg_effect)`.
    pub size: u32,
    /// Number of the effect in the game's numbering, up to 255.
    pub kind: u32,
    /// The entity that causes it.
    pub entity: u32,
    /// 1: shared code causes the effect, so that its player's client can predict it.
    pub predictable: u32,
    /// Position, in units.
    pub x: f32,
    /// Position, in units.
    pub y: f32,
    /// Position, in units.
    pub z: f32,
    /// Reserved; 0.
    pub reserved: u32,
}

/// A player joined or left.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_presence {
    /// `sizeof(hitreg_presence)`.
    pub size: u32,
    /// The first tick with the player, or the first without.
    pub tick: u32,
    /// Time of the change, in µs.
    pub at_us: i64,
    /// 0: joined, 1: left.
    pub left: u32,
    /// Reserved; 0.
    pub reserved: u32,
}

/// A shot, predicted or judged.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_shot {
    /// `sizeof(hitreg_shot)`.
    pub size: u32,
    /// The usercmd that fired it.
    pub command: u32,
    /// Time of the client frame or of the server's tick, in µs.
    pub at_us: i64,
    /// Index among the shots of that usercmd, from 0.
    pub index: u32,
    /// 0: hit, 1: hit the world, 2: missed, 3: already dead, 4: launched.
    pub reason: u32,
    /// The entity that was hit; -1 for none.
    pub target: i32,
    /// The part of the body that was hit.
    pub hitgroup: u32,
    /// Damage, in health points.
    pub damage: i32,
    /// How far the server rewound the targets, in µs; 0 for a prediction.
    pub rewound_us: u32,
}

/// Counters of a recorder.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_written {
    /// `sizeof(hitreg_written)`.
    pub size: u32,
    /// Reserved; 0.
    pub reserved: u32,
    /// Records written.
    pub records: u64,
    /// Records lost because a stream was full.
    pub lost_records: u64,
    /// Chunks dropped because the disk was too slow.
    pub dropped_chunks: u64,
    /// Records refused because they were older than the reorder window.
    pub late_records: u64,
}

/// One value of a custom row or of a game-defined usercmd field. `real` is for `HITREG_F32` columns, `number` for all
/// others.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_value {
    /// 0: use `number`, 1: use `real`.
    pub is_real: u32,
    /// The value as a float.
    pub real: f32,
    /// The value as an integer.
    pub number: i64,
}

/// How the server handled a usercmd.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_execution {
    /// `sizeof(hitreg_execution)`.
    pub size: u32,
    /// Usercmd number.
    pub command: u32,
    /// The tick.
    pub tick: u32,
    /// 0: run, 1: stood in, 2: missing, 3: late, 4: over budget.
    pub how: u32,
}

/// The end of a tick.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_tick_end {
    /// `sizeof(hitreg_tick_end)`.
    pub size: u32,
    /// Tick number, from 1.
    pub tick: u32,
    /// Time of the tick, in µs.
    pub at_us: i64,
    /// Hash of the state after the tick.
    pub hash: u64,
    /// 1: `hash` is set.
    pub has_hash: u32,
    /// Reserved; 0.
    pub reserved: u32,
}

/// A state of an entity, without its cells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_state {
    /// `sizeof(hitreg_state)`.
    pub size: u32,
    /// The tick before the state.
    pub tick: u32,
    /// The only player who was sent the state; -1 for all.
    pub viewer: i32,
    /// The entity.
    pub entity: u32,
    /// Number of its class.
    pub class_number: u32,
    /// Number of cells.
    pub cells: u32,
}

/// The arrival of a packet or a snapshot.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_arrival {
    /// `sizeof(hitreg_arrival)`.
    pub size: u32,
    /// Number of the packet or the snapshot.
    pub number: u32,
    /// Arrival time, in µs.
    pub at_us: i64,
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
    hitreg_options 16;
    hitreg_usercmd 72;
    hitreg_packet 32;
    hitreg_snapshot 40;
    hitreg_shot 40;
    hitreg_effect 32;
    hitreg_presence 24;
    hitreg_written 40;
    hitreg_execution 16;
    hitreg_tick_end 32;
    hitreg_state 24;
    hitreg_arrival 16;
}
