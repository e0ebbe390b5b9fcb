//! Evaluates trajectories. An entityState has a position, a velocity and a rule for how the position changes
//! (OpenArena's bg_misc.c).

use glam::Vec3;

use super::protocol::{EntityCells, entity};

const LINEAR: u32 = 2;
const LINEAR_STOP: u32 = 3;
const SINE: u32 = 4;
const GRAVITY: u32 = 5;
const GRAVITY_UNITS: f32 = 800.0;

/// Returns position and velocity at a server time in ms.
pub(crate) fn place(cells: &EntityCells, server_time: i32) -> (Vec3, Vec3) {
    let read = |at: [usize; 3]| Vec3::from_array(at.map(|cell| f32::from_bits(cells[cell])));
    let base = read([entity("pos.base.x"), entity("pos.base.y"), entity("pos.base.z")]);
    let delta = read([entity("pos.delta.x"), entity("pos.delta.y"), entity("pos.delta.z")]);
    let time = (cells[entity("pos.time")], cells[entity("pos.duration")]);
    at(cells[entity("pos.kind")], time, base, delta, server_time)
}

/// Returns the angles at a server time in ms, in degrees.
pub(crate) fn angles(cells: &EntityCells, server_time: i32) -> Vec3 {
    let read = |at: [usize; 3]| Vec3::from_array(at.map(|cell| f32::from_bits(cells[cell])));
    let base = read([entity("apos.base.x"), entity("apos.base.y"), entity("apos.base.z")]);
    let delta = read([entity("apos.delta.x"), entity("apos.delta.y"), entity("apos.delta.z")]);
    let time = (cells[entity("apos.time")], cells[entity("apos.duration")]);
    at(cells[entity("apos.kind")], time, base, delta, server_time).0
}

fn at(kind: u32, (start, duration): (u32, u32), base: Vec3, delta: Vec3, server_time: i32) -> (Vec3, Vec3) {
    let passed_ms = server_time.wrapping_sub(start as i32);
    let passed_s = passed_ms as f32 * 0.001;
    match kind {
        LINEAR => (base + delta * passed_s, delta),
        LINEAR_STOP => {
            let whole_ms = duration as i32;
            let gone_s = passed_ms.min(whole_ms).max(0) as f32 * 0.001;
            let still = passed_ms >= whole_ms;
            (base + delta * gone_s, if still { Vec3::ZERO } else { delta })
        }
        SINE => {
            let turn = std::f32::consts::TAU * passed_ms as f32 / (duration as i32).max(1) as f32;
            let rate = std::f32::consts::TAU * 1000.0 / (duration as i32).max(1) as f32;
            (base + delta * libm::sinf(turn), delta * libm::cosf(turn) * rate)
        }
        GRAVITY => {
            let fallen = Vec3::new(0.0, 0.0, 0.5 * GRAVITY_UNITS * passed_s * passed_s);
            (base + delta * passed_s - fallen, delta - Vec3::new(0.0, 0.0, GRAVITY_UNITS * passed_s))
        }
        // At rest, or updated by each snapshot, as for players.
        _ => (base, delta),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_follow_from_trajectories() {
        let (base, delta) = (Vec3::new(1.0, 2.0, 3.0), Vec3::new(10.0, 0.0, -20.0));
        let at = |kind, ms| at(kind, (1000, 2000), base, delta, ms).0;
        assert_eq!(at(0, 9000), base);
        assert_eq!(at(LINEAR, 1500), Vec3::new(6.0, 2.0, -7.0));
        assert_eq!(at(LINEAR_STOP, 9000), Vec3::new(21.0, 2.0, -37.0), "it stops after its time");
        assert_eq!(at(GRAVITY, 2000), Vec3::new(11.0, 2.0, -417.0));
        assert!((at(SINE, 1500).x - 11.0).abs() < 1e-4, "a quarter of the way is its end");
    }
}
