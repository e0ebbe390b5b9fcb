//! Quantities that all modules share: times, rates, ticks, and the ids and sequence numbers of players, entities and
//! messages.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::named;

/// A point in time, or a span, in whole microseconds. Session times count from the start of the recording. A field that
/// uses another clock says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// The start of a session, or an empty span.
    pub const ZERO: Micros = Micros(0);

    /// Returns a span of whole milliseconds; saturates at the range of `i64`.
    pub const fn from_ms(ms: i64) -> Micros {
        Micros(ms.saturating_mul(1_000))
    }

    /// Returns a span of whole seconds; saturates at the range of `i64`.
    pub const fn from_s(s: i64) -> Micros {
        Micros(s.saturating_mul(1_000_000))
    }

    /// Returns the nearest microsecond to a span in fractional milliseconds, such as a setting that a user wrote.
    pub fn from_ms_f64(ms: f64) -> Micros {
        Micros(libm::round(ms * 1_000.0) as i64)
    }

    /// Returns the span in milliseconds, for display and statistics only.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    /// Returns the span in seconds, for display and statistics only.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1_000_000.0
    }
}

// Clients and files can claim any time, so arithmetic saturates at the ends of the range.
impl std::ops::Add for Micros {
    type Output = Micros;
    fn add(self, other: Micros) -> Micros {
        Micros(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Micros {
    type Output = Micros;
    fn sub(self, other: Micros) -> Micros {
        Micros(self.0.saturating_sub(other.0))
    }
}

impl std::ops::AddAssign for Micros {
    fn add_assign(&mut self, other: Micros) {
        *self = *self + other;
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.as_ms_f64())
    }
}

/// A rate, in thousandths of a Hz: a period of 32 ms is exactly 31.25 Hz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hz {
    /// Thousandths of a Hz; above 0.
    milli: i64,
}

impl Hz {
    /// Returns a rate of `milli` thousandths of a Hz; `None` unless `milli` is above 0.
    pub const fn from_milli(milli: i64) -> Option<Hz> {
        if milli > 0 { Some(Hz { milli }) } else { None }
    }

    /// Returns the rate in thousandths of a Hz.
    pub const fn milli(self) -> i64 {
        self.milli
    }

    /// Returns the time of the `n`-th period's start, rounded towards zero. Period 0 starts at zero.
    pub const fn period_start(self, n: i64) -> Micros {
        Micros((n as i128 * 1_000_000_000 / self.milli as i128) as i64)
    }

    /// Returns the length of one period, rounded down to a microsecond.
    pub const fn interval(self) -> Micros {
        self.period_start(1)
    }

    /// Returns the number of whole periods in a span.
    pub const fn periods_in(self, span: Micros) -> i64 {
        (span.0 as i128 * self.milli as i128).div_euclid(1_000_000_000) as i64
    }
}

/// The error for a text that is no [`Hz`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rate is above 0 Hz and has at most three decimals, such as 64 or 31.25")]
pub struct BadRate;

/// Parses `64` or `31.25`: above 0, at most three decimals and no sign.
impl std::str::FromStr for Hz {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Hz, BadRate> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || whole.len() > 12 || decimals.len() > 3 {
            return Err(BadRate);
        }
        let number = |text: &str| text.parse::<i64>().map_err(|_| BadRate);
        Hz::from_milli(number(whole)? * 1000 + number(&format!("{decimals:0<3}"))?).ok_or(BadRate)
    }
}

impl fmt::Display for Hz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.milli % 1000 {
            0 => write!(f, "{}", self.milli / 1000),
            rest => f.write_str(format!("{}.{rest:03}", self.milli / 1000).trim_end_matches('0')),
        }
    }
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

numbers! {
    /// One step of the server's simulation, counted from 1; 0 is the state before the first step.
    Tick(u32);
    /// A player, numbered from 0 in the order of joining. A player's body is the entity of the same number.
    PlayerId(u16);
    /// An entity: players first, then what the game spawns (projectiles, movers, ...).
    EntityId(u16);
    /// A usercmd's sequence number, counted per player. The first is 1, so that an ack of 0 means none yet.
    CommandSeq(u32);
    /// A snapshot's sequence number, counted per player. The first is 1, so that an ack of 0 means none yet.
    SnapshotSeq(u32);
    /// Random seed of a session.
    Seed(u64);
}

impl EntityId {
    /// Returns the name in a session with this many players: `p3` for a player, `entity 500` for another entity.
    pub fn name(self, players: usize) -> String {
        if usize::from(self.0) < players { format!("p{self}") } else { format!("entity {self}") }
    }

    /// Returns the entity with a [`name`](EntityId::name).
    pub fn named(text: &str) -> Option<EntityId> {
        let number = text.strip_prefix("entity ").or_else(|| text.strip_prefix('p'))?;
        number.parse().ok().map(EntityId)
    }
}

impl PlayerId {
    /// Returns the entity that this player controls.
    pub const fn entity(self) -> EntityId {
        EntityId(self.0)
    }
}

impl Tick {
    /// Returns the tick after this one. It saturates at `u32::MAX`, which only a crafted file reaches.
    pub const fn next(self) -> Tick {
        Tick(self.0.saturating_add(1))
    }
}

impl CommandSeq {
    /// Returns the command after this one. It saturates at `u32::MAX`, which only a client that lies about its numbers
    /// reaches.
    pub const fn next(self) -> CommandSeq {
        CommandSeq(self.0.saturating_add(1))
    }
}

impl SnapshotSeq {
    /// Returns the snapshot after this one. It saturates at `u32::MAX`, which only a crafted file reaches.
    pub const fn next(self) -> SnapshotSeq {
        SnapshotSeq(self.0.saturating_add(1))
    }
}

/// Displays a session time as minutes and seconds: `40:00`, `0:07.5`.
#[derive(Clone, Copy, Debug)]
pub struct ClockTime(pub Micros);

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, us) = (if self.0.0 < 0 { "-" } else { "" }, self.0.0.unsigned_abs());
        let (minutes, seconds, rest) = (us / 60_000_000, us / 1_000_000 % 60, us % 1_000_000);
        write!(f, "{sign}{minutes}:{seconds:02}")?;
        match rest {
            0 => Ok(()),
            _ => f.write_str(format!(".{rest:06}").trim_end_matches('0')),
        }
    }
}

// Enums whose variants have names in files and on command lines.

/// The error for a name that no variant has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is called `{0}`")]
pub struct UnknownName(pub String);

/// Declares an enum with the name of each variant, and gives it `NAMES`, `ALL`, `name()` and `FromStr`. Files store a
/// variant as its index in `NAMES`.
///
/// The short form, without `enum`, names the variants of an enum that another macro declares.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $type:ident { $( $(#[$variant_meta:meta])* $variant:ident = $name:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        $vis enum $type { $( $(#[$variant_meta])* $variant, )+ }

        $crate::named!($type { $($variant = $name),+ });
    };
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// Names of the variants, in declaration order.
            pub const NAMES: &[&str] = &[$($name),+];
            /// All variants, in declaration order.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// Returns the name in files, in reports and on command lines.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        const _: () = {
            let mut place = 0;
            while place < $type::ALL.len() {
                assert!($type::ALL[place] as usize == place, "names stand in the order of the variants");
                place += 1;
            }
        };

        impl std::str::FromStr for $type {
            type Err = $crate::units::UnknownName;

            fn from_str(name: &str) -> Result<$type, $crate::units::UnknownName> {
                match name {
                    $($name => Ok($type::$variant),)+
                    _ => Err($crate::units::UnknownName(name.to_owned())),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for text in ["64", "31.25", "0.001", "1000", "20.5"] {
            assert_eq!(text.parse::<Hz>().map(|hz| hz.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "0", "0.0", "-1", "+1", "1e3", "31.2501", "31.", ".5", "1 ", "9999999999999"] {
            assert_eq!(text.parse::<Hz>(), Err(BadRate), "{text}");
        }
    }

    #[test]
    fn times_saturate_at_the_limits_of_their_range() {
        let (first, last) = (Micros(i64::MIN), Micros(i64::MAX));
        assert_eq!([last + Micros(1), first - Micros(1), last - first], [last, first, last]);
        assert_eq!([first + first, Micros::from_ms(i64::MAX), Micros::from_s(i64::MAX)], [first, last, last]);
    }

    #[test]
    fn the_next_number_saturates() {
        assert_eq!((Tick(u32::MAX).next(), SnapshotSeq(u32::MAX).next()), (Tick(u32::MAX), SnapshotSeq(u32::MAX)));
        assert_eq!(CommandSeq(u32::MAX).next(), CommandSeq(u32::MAX));
    }

    #[test]
    fn turns_are_exact() {
        let tick: Hz = "31.25".parse().expect("a rate");
        assert_eq!((tick.interval(), tick.period_start(1000)), (Micros::from_ms(32), Micros::from_s(32)));
        assert_eq!((tick.periods_in(Micros(31_999)), tick.periods_in(Micros(32_000))), (0, 1));
        assert_eq!("64".parse().map(|hz: Hz| hz.period_start(3)), Ok(Micros(46_875)));
    }

    #[test]
    fn times_are_written_as_options_accept_them() {
        let written =
            [0, 7_500_000, 2_400_000_000, 4_211_000_001, -1_000_000].map(|at| ClockTime(Micros(at)).to_string());
        assert_eq!(written, ["0:00", "0:07.5", "40:00", "70:11.000001", "-0:01"]);
    }
}
