//! QuakeWorld's usercmd: as a client sends it, as a server's message about another player contains it, and the steps
//! into which the server splits it.

/// The jump button; under water it swims upwards.
pub(crate) const BUTTON_JUMP: u8 = 2;

/// Longest step in ms. Servers halve longer commands (public server sources, `SV_RunCmd`).
const LONGEST_STEP_MSEC: u8 = 50;

/// The input of one client frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuakeWorldUsercmd {
    /// Duration in milliseconds.
    pub msec: u8,
    /// Pitch, yaw and roll in degrees, in steps of 360/65536 from -180 on, as a server decodes them.
    pub angles: [f32; 3],
    /// Wished speed forward, in units/s.
    pub forward: i16,
    /// Wished speed to the right, in units/s.
    pub side: i16,
    /// Wished speed upwards, in units/s; only swimming uses it.
    pub up: i16,
    /// `BUTTON_ATTACK`, `BUTTON_JUMP` and game-defined buttons.
    pub buttons: u8,
    /// Weapon or other request; 0 for none.
    pub impulse: u8,
}

impl QuakeWorldUsercmd {
    /// Returns the steps that the server runs for this command. A command over 50 ms becomes two halves, each halved
    /// again while it is too long. Odd milliseconds are lost.
    pub fn steps(&self) -> impl Iterator<Item = QuakeWorldUsercmd> + use<> {
        let mut step = *self;
        let mut count = 1;
        while step.msec > LONGEST_STEP_MSEC {
            step.msec /= 2;
            count *= 2;
        }
        std::iter::repeat_n(step, count)
    }

    /// Returns the command that a server repeats when more packets are lost than there are backups. It is this command
    /// with its buttons released, so that one press does not fire several shots.
    pub fn repeated_by_server(&self) -> QuakeWorldUsercmd {
        QuakeWorldUsercmd { buttons: 0, ..*self }
    }
}

/// Returns an angle as the wire carries it: 16 bits of a turn, rounded to the nearest, decoded as a signed number.
pub(crate) fn wire_angle_degrees(degrees: f32) -> f32 {
    let turns = libm::rint(f64::from(degrees) * (65_536.0 / 360.0));
    let wrapped = (turns.clamp(-1e15, 1e15) as i64 & 0xffff) as u16 as i16;
    decode_angle16(wrapped)
}

pub(crate) fn decode_angle16(wire: i16) -> f32 {
    (f64::from(wire) * (360.0 / 65_536.0)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_is_halved_until_it_is_short() {
        let msecs = |msec| {
            QuakeWorldUsercmd { msec, ..QuakeWorldUsercmd::default() }.steps().map(|s| s.msec).collect::<Vec<_>>()
        };
        assert_eq!(msecs(50), [50]);
        assert_eq!(msecs(51), [25, 25]);
        assert_eq!(msecs(200), [50; 4]);
        assert_eq!(msecs(255), [31; 8]);
    }

    #[test]
    fn angles_keep_sixteen_bits() {
        assert_eq!(wire_angle_degrees(0.0), 0.0);
        assert_eq!(wire_angle_degrees(270.0), -90.0);
        assert_eq!(wire_angle_degrees(360.0 / 65_536.0), (360.0f64 / 65_536.0) as f32);
        assert_eq!(wire_angle_degrees(f32::NAN), 0.0);
    }
}
