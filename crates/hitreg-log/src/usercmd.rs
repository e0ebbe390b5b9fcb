//! The usercmd: one client frame's input, laid out as in Bernier 2001, with the fields that the pipelines add.

use std::ops::Range;
use std::sync::Arc;

use glam::Vec3;

use crate::record::CellKind;
use crate::units::{CommandSeq, Micros};

/// The player's input of one client frame: Bernier's fields, and the cells of fields that the game declares. A replay
/// under other settings keeps this input and recomputes the other fields of [`Usercmd`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    /// Duration of the client frame, in milliseconds.
    pub msec: u8,
    /// View angles in degrees: pitch (down is positive), yaw (counter-clockwise from +x), roll.
    pub viewangles: Vec3,
    /// Intended forward speed, in units/s.
    pub forwardmove: f32,
    /// Intended speed to the right, in units/s.
    pub sidemove: f32,
    /// Intended upward speed (swimming, flying), in units/s.
    pub upmove: f32,
    /// Pressed buttons, one bit each. The game defines the bits; [`buttons`] has the usual ones.
    pub buttons: u16,
    /// A one-shot request, such as a weapon change; 0 means no request, as in Quake.
    pub impulse: u8,
    /// The cells of the usercmd fields that the game declares, in their order.
    pub own: OwnCells,
}

/// The cells of game-defined fields. Zeros at the end are not stored, so equal values are equal cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnCells(Option<Arc<[u32]>>);

impl OwnCells {
    /// Stores cells.
    pub fn new(cells: &[u32]) -> OwnCells {
        let stored = cells.iter().rposition(|cell| *cell != 0).map_or(0, |last| last + 1);
        OwnCells((stored > 0).then(|| Arc::from(&cells[..stored])))
    }

    /// Returns the cells without zeros at the end.
    pub fn stored(&self) -> &[u32] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the number of the field whose cells have these places.
    pub fn number(&self, kind: CellKind, place: Range<usize>) -> i64 {
        let stored = self.stored();
        kind.number(stored.get(place.start..place.end.min(stored.len())).unwrap_or_default())
    }

    /// Writes the first cells.
    #[inline]
    pub fn write(&self, cells: &mut [u32]) {
        let stored = self.stored();
        let (own, zeros) = cells.split_at_mut(stored.len().min(cells.len()));
        own.copy_from_slice(&stored[..own.len()]);
        zeros.fill(0);
    }
}

impl Input {
    /// Returns whether the input moves, presses a button or makes a request. View angles alone do not count.
    pub fn is_active(&self) -> bool {
        let moves = [self.forwardmove, self.sidemove, self.upmove].iter().any(|speed| *speed != 0.0);
        moves || self.buttons != 0 || self.impulse != 0 || !self.own.stored().is_empty()
    }
}

/// One input with its number and the client's times, as sent to the server. Logs and packets hold an [`Input`]; a game's
/// functions get the game's own input type.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usercmd<I = Input> {
    /// Sequence number per player, from 1.
    pub seq: CommandSeq,
    /// How far behind [`Usercmd::server_time`] the client drew the others, in milliseconds (Bernier's `lerp_msec`).
    /// Rounded down, so the server finds a time up to 1 ms after the drawn one.
    pub lerp_msec: u16,
    /// The server time that the client's clock showed when the command was made, as in Quake III's usercmd. The server
    /// checks it against the latency that the server measures. 0 before the client's first snapshot.
    pub server_time: Micros,
    /// The player's input.
    pub input: I,
}

impl<I> Usercmd<I> {
    /// Returns the server time at which the client drew other players while the command was made.
    pub fn drawn_at(&self) -> Micros {
        self.server_time - Micros::from_ms(i64::from(self.lerp_msec))
    }
}

impl Usercmd {
    /// Returns the heap memory, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(self.input.own.stored())
    }
}

/// Button bits of the built-in games; the values are Half-Life's.
pub mod buttons {
    /// Fires the active weapon.
    pub const ATTACK: u16 = 1;
    /// Jumps.
    pub const JUMP: u16 = 2;
    /// Ducks while held.
    pub const DUCK: u16 = 4;
    /// Reloads the active weapon.
    pub const RELOAD: u16 = 8;
}
