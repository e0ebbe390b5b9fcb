//! How a server's origins stand on the wire, and what values they can stand for.

use serde::{Deserialize, Serialize};

/// The wire's step of an origin, in units.
pub(crate) const ORIGIN_STEP: f32 = 0.125;

/// How an origin is cut to the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OriginWire {
    /// Toward zero, to 1/8 unit (id's servers).
    Cut,
    /// To the nearest 1/8 unit (ZQuake's children).
    Rounded,
    /// As a float.
    Float,
}

impl OriginWire {
    /// The values that `wire` can stand for.
    pub(crate) fn cell(self, wire: f32) -> (f32, f32) {
        match self {
            OriginWire::Cut => cut_cell(wire, ORIGIN_STEP),
            OriginWire::Rounded => (wire - ORIGIN_STEP * 0.499, wire + ORIGIN_STEP * 0.499),
            OriginWire::Float => (wire, wire),
        }
    }
}

/// The values that are cut toward zero to `wire` in steps of `step`.
pub(crate) fn cut_cell(wire: f32, step: f32) -> (f32, f32) {
    let inner = step * 0.999;
    match wire {
        w if w > 0.0 => (w, w + inner),
        w if w < 0.0 => (w - inner, w),
        _ => (-inner, inner),
    }
}
