//! The quantities that every room speaks in: times, ticks, and the numbers that name things.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in time, or a span, in whole microseconds. What its zero is depends on whose clock it was read from:
/// session times count from the start of the recording, and each field says when it means another clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// The start of a session, and the empty span.
    pub const ZERO: Micros = Micros(0);

    /// A span of whole milliseconds.
    pub const fn from_ms(ms: i64) -> Micros {
        Micros(ms * 1_000)
    }

    /// A span of whole seconds.
    pub const fn from_s(s: i64) -> Micros {
        Micros(s * 1_000_000)
    }

    /// The nearest microsecond to a span in fractional milliseconds; for values that people write.
    pub fn from_ms_f64(ms: f64) -> Micros {
        Micros(libm::round(ms * 1_000.0) as i64)
    }

    /// The span in milliseconds, for display and statistics only.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    /// The span in seconds, for display and statistics only.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1_000_000.0
    }
}

impl std::ops::Add for Micros {
    type Output = Micros;
    fn add(self, other: Micros) -> Micros {
        Micros(self.0 + other.0)
    }
}

impl std::ops::Sub for Micros {
    type Output = Micros;
    fn sub(self, other: Micros) -> Micros {
        Micros(self.0 - other.0)
    }
}

impl std::ops::AddAssign for Micros {
    fn add_assign(&mut self, other: Micros) {
        self.0 += other.0;
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.as_ms_f64())
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// One step of the server's simulation, counted from 0.
    Tick(u32)
}
number! {
    /// A player, numbered from 0 in the order of joining. A player's body is the entity of the same number.
    PlayerId(u16)
}
number! {
    /// Anything with a body: players first, then what the game spawns (projectiles, movers, ...).
    EntityId(u16)
}
number! {
    /// A usercmd's sequence number, counted per player. The first is 1, so that an ack of 0 means none yet.
    CommandSeq(u32)
}
number! {
    /// A snapshot's sequence number, counted per player. The first is 1, so that an ack of 0 means none yet.
    SnapshotSeq(u32)
}
number! {
    /// Where all of a session's random numbers start from.
    Seed(u64)
}

impl PlayerId {
    /// The entity that this player moves.
    pub const fn entity(self) -> EntityId {
        EntityId(self.0)
    }
}

impl Tick {
    /// The tick after this one.
    pub const fn next(self) -> Tick {
        Tick(self.0 + 1)
    }
}

impl CommandSeq {
    /// The command after this one.
    pub const fn next(self) -> CommandSeq {
        CommandSeq(self.0 + 1)
    }
}

impl SnapshotSeq {
    /// The snapshot after this one.
    pub const fn next(self) -> SnapshotSeq {
        SnapshotSeq(self.0 + 1)
    }
}
