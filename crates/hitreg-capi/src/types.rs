//! The structs of the border. Each begins with its size, so that a library may know more fields than its caller's header; they are
//! numbers alone, laid out without padding, and only ever grow.

use super::guard::Sized32;

/// How a recorder goes about it. Zero is the usual value of each field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_options {
    /// `sizeof(hitreg_options)`.
    pub size: u32,
    /// How late a record may be and still be put into its place: 250 ms.
    pub window_ms: u32,
    /// How many records a stream holds that nobody has taken from it yet: 4096.
    pub ring: u32,
    /// 1: wait where otherwise records or chunks would be dropped; for sessions that do not run in real time.
    pub patient: u32,
    /// After how many seconds of the session a file gives way to the next, `NAME-0001.hitlog` and so on.
    pub rotate_s: u32,
    /// After how many MiB.
    pub rotate_mib: u32,
}

/// A client frame's input.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_usercmd {
    /// `sizeof(hitreg_usercmd)`.
    pub size: u32,
    /// Its number, from 1.
    pub seq: u32,
    /// When it was made, in µs of the session; on a server alone, when it came.
    pub at_us: i64,
    /// The server time that its client's clock showed.
    pub server_time_us: i64,
    /// How far behind that time the client drew the others.
    pub lerp_ms: u32,
    /// How much time it covers, up to 255.
    pub msec: u32,
    /// Degrees; down is positive.
    pub pitch: f32,
    /// Degrees, counter-clockwise from +x.
    pub yaw: f32,
    /// Degrees.
    pub roll: f32,
    /// Intended speed ahead, in units/s.
    pub forwardmove: f32,
    /// The same to the right.
    pub sidemove: f32,
    /// The same upwards.
    pub upmove: f32,
    /// Pressed buttons, up to 16 bits.
    pub buttons: u32,
    /// A request for once, up to 255.
    pub impulse: u32,
    /// 32 bits of the game's own; `hitreg_push_usercmd_bytes` takes more.
    pub extra: u32,
    /// Nothing yet.
    pub reserved: u32,
}

/// A packet that a client sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_packet {
    /// `sizeof(hitreg_packet)`.
    pub size: u32,
    /// Its number, from 1.
    pub number: u32,
    /// When it left.
    pub at_us: i64,
    /// The newest usercmd in it.
    pub newest: u32,
    /// How many usercmds are in it, up to 255.
    pub count: u32,
    /// The newest snapshot that the client had; 0 is none.
    pub ack: u32,
    /// The bytes of its datagrams.
    pub bytes: u32,
}

/// A snapshot that the server sent to a player.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_snapshot {
    /// `sizeof(hitreg_snapshot)`.
    pub size: u32,
    /// Its number, from 1.
    pub seq: u32,
    /// When it left.
    pub at_us: i64,
    /// The server time that it tells.
    pub server_time_us: i64,
    /// The tick whose state it carries.
    pub tick: u32,
    /// The newest usercmd that had run; 0 is none.
    pub ack: u32,
    /// The bytes of its datagrams.
    pub bytes: u32,
    /// How many updates were held back before it.
    pub choked: u32,
}

/// A sound or sight that a snapshot tells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_effect {
    /// `sizeof(hitreg_effect)`.
    pub size: u32,
    /// Which one, in the game's numbering, up to 255.
    pub kind: u32,
    /// The entity that it comes from.
    pub entity: u32,
    /// Whether its player's client plays it without being told.
    pub predictable: u32,
    /// Where.
    pub x: f32,
    /// Where.
    pub y: f32,
    /// Where.
    pub z: f32,
    /// Nothing yet.
    pub reserved: u32,
}

/// A player who came or went.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_presence {
    /// `sizeof(hitreg_presence)`.
    pub size: u32,
    /// The first tick with it, or the first without.
    pub tick: u32,
    /// When.
    pub at_us: i64,
    /// 0 joined, 1 left.
    pub left: u32,
    /// Nothing yet.
    pub reserved: u32,
}

/// A shot.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_shot {
    /// `sizeof(hitreg_shot)`.
    pub size: u32,
    /// The usercmd that fired.
    pub command: u32,
    /// The client frame, or the server's tick.
    pub at_us: i64,
    /// Which shot of that usercmd, from 0.
    pub index: u32,
    /// 0 hit, 1 hit the world, 2 missed, 3 already dead, 4 launched.
    pub reason: u32,
    /// The entity that was hit, or -1.
    pub target: i32,
    /// In which part of the body.
    pub hitgroup: u32,
    /// Health points.
    pub damage: i32,
    /// How far back the targets stood that it was judged against; 0 for a prediction.
    pub rewound_us: u32,
}

/// What became of what was recorded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_written {
    /// `sizeof(hitreg_written)`.
    pub size: u32,
    /// Nothing yet.
    pub reserved: u32,
    /// Records that were written.
    pub records: u64,
    /// Records that were lost because a stream was full.
    pub lost_records: u64,
    /// Chunks that were dropped because the disk was too slow.
    pub dropped_chunks: u64,
    /// Records that came too late.
    pub late_records: u64,
}

/// One value of a row of a kind of the game's own: `number`, or `real` where the column is `HITREG_F32`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_value {
    /// 0: it is `number`; 1: it is `real`.
    pub is_real: u32,
    /// A measure.
    pub real: f32,
    /// A whole number.
    pub number: i64,
}

/// What the server did about a usercmd.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_execution {
    /// `sizeof(hitreg_execution)`.
    pub size: u32,
    /// Its number.
    pub command: u32,
    /// In which tick.
    pub tick: u32,
    /// 0 run, 1 stood in, 2 missing, 3 late, 4 over budget.
    pub how: u32,
}

/// A tick.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_tick_end {
    /// `sizeof(hitreg_tick_end)`.
    pub size: u32,
    /// Its number, from 1.
    pub tick: u32,
    /// When it was.
    pub at_us: i64,
    /// The hash of the state after it.
    pub hash: u64,
    /// Whether there is one.
    pub has_hash: u32,
    /// Nothing yet.
    pub reserved: u32,
}

/// A state of an entity, without its cells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_state {
    /// `sizeof(hitreg_state)`.
    pub size: u32,
    /// After which tick.
    pub tick: u32,
    /// The only player who was sent it, or -1.
    pub viewer: i32,
    /// The entity.
    pub entity: u32,
    /// Its class.
    pub class_number: u32,
    /// How many cells it has.
    pub cells: u32,
}

/// A packet's way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_arrival {
    /// `sizeof(hitreg_arrival)`.
    pub size: u32,
    /// The packet.
    pub number: u32,
    /// When it arrived.
    pub at_us: i64,
}

macro_rules! sized {
    ($($name:ident $first:literal;)*) => { $(
        // SAFETY: numbers alone, `size` first. That there is no padding shows in its size, which is what its fields come to.
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
