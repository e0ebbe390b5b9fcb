//! How servers encode origins, and the range of values that an encoded origin can stand for.

/// Step of an encoded origin, in units.
pub(crate) const ORIGIN_STEP: f32 = 0.125;

/// How a server rounds an origin before it sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginWire {
    /// Truncated toward zero, to 1/8 unit (id's servers).
    Cut,
    /// Rounded to the nearest 1/8 unit (ZQuake and its descendants).
    Rounded,
    /// Sent as a float.
    Float,
}

impl OriginWire {
    /// Returns the range of values that `wire` can stand for.
    pub(crate) fn cell(self, wire: f32) -> (f32, f32) {
        match self {
            OriginWire::Cut => cut_cell(wire, ORIGIN_STEP),
            OriginWire::Rounded => (wire - ORIGIN_STEP * 0.499, wire + ORIGIN_STEP * 0.499),
            OriginWire::Float => (wire, wire),
        }
    }
}

/// Returns the range of values that truncate toward zero to `wire` in steps of `step`.
pub(crate) fn cut_cell(wire: f32, step: f32) -> (f32, f32) {
    let inner = step * 0.999;
    match wire {
        w if w > 0.0 => (w, w + inner),
        w if w < 0.0 => (w - inner, w),
        _ => (-inner, inner),
    }
}
