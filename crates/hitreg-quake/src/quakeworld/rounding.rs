//! Compares a predicted state with the recorded one at the precision of the wire.

use glam::Vec3;

use super::body::{QuakeWorldBody, flag};
use super::demo::{ORIGIN_STEP, OriginWire, cut_cell};
use super::movement::{LEAVES_GROUND_SPEED, QuakeWorldPlayerState, Surroundings, offsets};
use hitreg_netcode::game::PredictionGrade;

/// Largest velocity difference for the grade `Near`, in units/s per axis.
const NEAR_VELOCITY: f32 = 1.5;
/// Largest origin difference for the grade `Near`, in units per axis.
const NEAR_ORIGIN: f32 = 0.2;

/// The difference of a prediction from the recorded state, predicted minus recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PredictionError {
    /// Origin in units: the full predicted origin minus the centre of the recorded one's rounding cell.
    pub(crate) origin: [f32; 3],
    /// Velocity in units/s; 0 where both have the same value on the wire.
    pub(crate) velocity: [f32; 3],
}

/// Returns predicted minus recorded, with the velocity as on the wire. The recorded origin is rounded and the predicted
/// one is not. So the predicted origin is compared with the centre of the recorded one's rounding cell.
pub(crate) fn difference(predicted: &QuakeWorldPlayerState, recorded: &QuakeWorldBody) -> PredictionError {
    let wire = recorded.origin_wire();
    let middle = |value: f32| {
        let (low, high) = wire.cell(value);
        (low + high) * 0.5
    };
    // A server truncates velocities toward zero to whole units/s.
    let is_same = |axis: usize| f32::from(predicted.velocity[axis] as i16) == recorded.velocity[axis];
    PredictionError {
        origin: [0, 1, 2].map(|axis| predicted.origin[axis] - middle(recorded.origin[axis])),
        velocity: [0, 1, 2].map(|axis| match is_same(axis) {
            true => 0.0,
            false => predicted.velocity[axis] - recorded.velocity[axis],
        }),
    }
}

/// Grades a prediction. Exact means the same velocity on the wire and an origin within 1/8 unit. Near means within 1.5
/// units/s and 0.2 units on every axis.
pub(crate) fn grade(predicted: &QuakeWorldPlayerState, recorded: &QuakeWorldBody) -> PredictionGrade {
    let PredictionError { origin, velocity } = difference(predicted, recorded);
    let within = |values: [f32; 3], limit: f32| values.iter().all(|v| v.abs() <= limit);
    if within(velocity, 0.0) && within(origin, ORIGIN_STEP) {
        PredictionGrade::Exact
    } else if within(velocity, NEAR_VELOCITY) && within(origin, NEAR_ORIGIN) {
        PredictionGrade::Near
    } else {
        PredictionGrade::Miss
    }
}

/// Returns the state to predict from after an ack: the prediction with every value moved into the recorded value's
/// rounding cell. A good prediction keeps its precision, a bad one becomes the recorded state. Values that the wire
/// does not carry stay as predicted.
fn reconcile(predicted: &QuakeWorldPlayerState, recorded: &QuakeWorldBody) -> QuakeWorldPlayerState {
    let mut state = *predicted;
    for axis in 0..3 {
        let (low, high) = cut_cell(recorded.velocity[axis], 1.0);
        state.velocity[axis] = into_cell(predicted.velocity[axis], low, high, 2.0);
        let (low, high) = recorded.origin_wire().cell(recorded.origin[axis]);
        state.origin[axis] = into_cell(predicted.origin[axis], low, high, 0.25);
    }
    if predicted.dead && recorded.alive {
        // At rest, the usercmd ran before the spawn, and the new life starts with its jump held. On servers that spawn
        // players before they run the usercmd, gravity has already acted.
        let ran_dead = recorded.velocity == Vec3::ZERO;
        let start = QuakeWorldPlayerState {
            jump_held: ran_dead && predicted.jump_held,
            ..QuakeWorldPlayerState::at(recorded.origin.to_array())
        };
        state = QuakeWorldPlayerState { origin: state.origin, velocity: state.velocity, ..start };
    }
    state.fall_speed = state.velocity[2];
    state.on_ground &= state.velocity[2] <= LEAVES_GROUND_SPEED;
    state.dead = !recorded.alive;
    state.over = recorded.over();
    state.corpse &= state.dead;
    if recorded.has(flag::JUMP_TOLD) {
        state.jump_held = recorded.has(flag::JUMP_HELD);
    }
    state.view_fixed = false;
    state
}

/// Reconciles and then moves the state out of solids. Rounding may have put it into a wall. The new position still
/// rounds to the recorded one, if such a position exists.
pub(crate) fn resume(
    world: &Surroundings<'_>,
    predicted: &QuakeWorldPlayerState,
    recorded: &QuakeWorldBody,
) -> QuakeWorldPlayerState {
    out_of_solids(world, reconcile(predicted, recorded), recorded.origin, recorded.origin_wire())
}

/// Returns a state that rounding put inside a wall, at a position near `at` where a player fits, if there is one.
pub(crate) fn out_of_solids(
    world: &Surroundings<'_>,
    mut state: QuakeWorldPlayerState,
    at: Vec3,
    wire: OriginWire,
) -> QuakeWorldPlayerState {
    const TRIES: [f32; 5] = [0.0, 0.04, -0.04, 0.09, -0.09];
    if wire == OriginWire::Float || world.has_room(Vec3::from_array(state.origin)) {
        return state;
    }
    if let Some(off) = offsets(TRIES).find(|off| world.has_room(at + *off)) {
        state.origin = (at + off).to_array();
    }
    state
}

/// Moves `value` into the cell: to its nearer edge, or to its centre from farther away than `far`.
fn into_cell(value: f32, low: f32, high: f32, far: f32) -> f32 {
    if value < low - far || value > high + far { (low + high) * 0.5 } else { value.clamp(low, high) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quakeworld::OwnState;

    fn recorded(velocity: [i16; 3], wire: OriginWire) -> QuakeWorldBody {
        let own = OwnState {
            origin: [0.125, -8.0, 0.0],
            velocity,
            dead: false,
            gib: false,
            lies: false,
            jump_held: None,
            movable: true,
            over: false,
        };
        QuakeWorldBody::of_own(&own, wire)
    }

    #[test]
    fn predictions_with_equal_wire_values_are_exact() {
        let mut state = QuakeWorldPlayerState::at([0.2, -8.1, 0.0]);
        state.velocity = [320.9, -0.9, 0.0];
        assert_eq!(grade(&state, &recorded([320, 0, 0], OriginWire::Cut)), PredictionGrade::Exact);
        assert_eq!(grade(&state, &recorded([319, 0, 0], OriginWire::Cut)), PredictionGrade::Miss);
        assert_eq!(grade(&state, &recorded([321, 0, 0], OriginWire::Cut)), PredictionGrade::Near);
        assert_eq!(reconcile(&state, &recorded([320, 0, 0], OriginWire::Cut)), state);
    }

    #[test]
    fn a_wrong_prediction_becomes_the_recorded_state() {
        let mut state = QuakeWorldPlayerState::at([500.0, 0.0, 3.0]);
        state.velocity = [0.0, 10.0, -10.0];
        let fixed = reconcile(&state, &recorded([100, -100, 0], OriginWire::Rounded));
        assert_eq!(grade(&fixed, &recorded([100, -100, 0], OriginWire::Rounded)), PredictionGrade::Exact);
    }

    #[test]
    fn rounding_into_a_wall_is_undone() {
        let map = crate::bsp::quake::QuakeMap::parse(&crate::bsp::tests::quake_bytes()).expect("good");
        let world = Surroundings { map: &map, solids: &[] };
        let mut wire = recorded([0, 0, 0], OriginWire::Rounded);
        wire.origin = Vec3::new(0.0, 0.0, 23.9375);
        let state = resume(&world, &QuakeWorldPlayerState::at([900.0; 3]), &wire);
        assert!(world.has_room(Vec3::from_array(state.origin)) && (state.origin[2] - 24.0).abs() < 0.1);
    }

    #[test]
    fn a_respawn_resets_the_state() {
        let old =
            QuakeWorldPlayerState { dead: true, jump_held: true, corpse: true, ..QuakeWorldPlayerState::at([0.0; 3]) };
        let alive = |velocity| reconcile(&old, &recorded(velocity, OriginWire::Cut));
        let [ran_alive, ran_dead] = [[0, 0, -11], [0; 3]].map(alive);
        assert!(!ran_alive.dead && !ran_alive.jump_held && !ran_alive.corpse);
        assert!(!ran_dead.dead && ran_dead.jump_held, "its usercmd ran for the dead, and jump is still held");
    }

    #[test]
    fn a_truncated_origin_is_compared_with_the_middle_of_its_range() {
        let mut state = QuakeWorldPlayerState::at([0.125, -8.0, 0.0]);
        let off = |state: &QuakeWorldPlayerState, wire| difference(state, &recorded([0; 3], wire)).origin;
        assert!(off(&state, OriginWire::Cut)[0] < -0.06 && off(&state, OriginWire::Cut)[1] > 0.06);
        assert_eq!(off(&state, OriginWire::Float), [0.0; 3]);
        state.origin[0] = 0.3;
        assert_eq!(grade(&state, &recorded([0; 3], OriginWire::Cut)), PredictionGrade::Exact);
        assert_eq!(grade(&state, &recorded([0; 3], OriginWire::Rounded)), PredictionGrade::Near);
        state.origin[0] = 0.05;
        assert_eq!(grade(&state, &recorded([0; 3], OriginWire::Cut)), PredictionGrade::Near);
    }
}
