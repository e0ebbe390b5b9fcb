//! Players who run, jump and shoot with Half-Life's movement, for realistic values on the wire.

use std::sync::Arc;

use glam::Vec3;
use hitreg::arena::{ArenaBody, CollisionWorld, ConvexBrush, MoveVars, pmove};
use hitreg::game::{Body, CellRole, FieldSchema as BodyField, body};
use hitreg::history::Frame;
use hitreg::packet::Snapshot;
use hitreg::rng::Rng;
use hitreg::units::{CommandSeq, EntityId, Micros, Seed, SnapshotSeq, Tick};
use hitreg::usercmd::Input;

/// The time between two ticks.
pub(crate) const TICK: Micros = Micros(15_625);

body! {
    /// A player, with cells as in Half-Life.
    pub(crate) struct Runner {
        Movement origin: Vec3,
        Movement velocity: Vec3,
        Movement viewangles: Vec3,
        Movement on_ground: bool,
        Movement ducked: bool,
        Movement in_duck: bool,
        Movement duck_time_ms: u16,
        Movement old_buttons: u16,
        Movement fall_velocity: f32 as Velocity,
        Movement step_time_ms: u16,
        Movement step_left: bool,
        ClientOnly view_ofs_z: f32,
        Weapons weapon: u8,
        Weapons switch_ms: u16,
        Weapons next_attack_ms: u16,
        Weapons reload_ms: u16,
        Weapons clip: u8,
        Weapons reserve: u16,
        Status health: i32,
        Status frags: i32,
        Status teleports: u32,
        Status alive: bool,
        Status controller: u16,
    }
    role = role;
}

fn role(field: &BodyField) -> CellRole {
    match &*field.name {
        "on_ground" => CellRole::Ground,
        "duck_time_ms" => CellRole::Style,
        "step_time_ms" | "step_left" => CellRole::SubAction,
        "controller" => CellRole::Controller,
        _ => CellRole::by_default(field),
    }
}

/// Players on a floor with pillars.
pub(crate) struct RunnerCrowd {
    rng: Rng,
    world: CollisionWorld,
    states: Vec<ArenaBody>,
    inputs: Vec<Input>,
    pub(crate) runners: Vec<(EntityId, Runner)>,
    tick: Tick,
}

impl RunnerCrowd {
    pub(crate) fn new(seed: u64, players: u16) -> RunnerCrowd {
        let mut brushes = vec![ConvexBrush::cuboid([-4096.0, -4096.0, -64.0], [4096.0, 4096.0, 0.0])];
        for i in 0..8 {
            let x = f64::from(i) * 400.0 - 1600.0;
            brushes.push(ConvexBrush::cuboid([x, -32.0, 0.0], [x + 64.0, 32.0, 200.0]));
        }
        let at = |p: u16| Vec3::new(f32::from(p % 8) * 300.0 - 1000.0, f32::from(p / 8) * 300.0 + 150.0, 36.0);
        RunnerCrowd {
            rng: Rng::new(Seed(seed), 0),
            world: CollisionWorld::new(&brushes),
            states: (0..players).map(|p| ArenaBody::standing_at(at(p))).collect(),
            inputs: (0..players).map(|_| Input { msec: 16, ..Input::default() }).collect(),
            runners: (0..players)
                .map(|p| (EntityId(p), Runner { health: 100, alive: true, ..Runner::default() }))
                .collect(),
            tick: Tick(0),
        }
    }

    pub(crate) fn step(&mut self) {
        self.tick = self.tick.next();
        let rng = &mut self.rng;
        for (index, (_, runner)) in self.runners.iter_mut().enumerate() {
            let input = &mut self.inputs[index];
            if rng.chance(0.05) {
                input.forwardmove = [400.0, 400.0, -400.0, 0.0][rng.below(4) as usize];
                input.sidemove = [400.0, -400.0, 0.0][rng.below(3) as usize];
                input.buttons = [0, 0, 0, 1, 1, 2, 4][rng.below(7) as usize];
            }
            // A mouse moves in counts of 0.022 degrees times the sensitivity.
            if rng.chance(0.7) {
                input.viewangles.y = (input.viewangles.y + 0.066 * (rng.below(61) as f32 - 30.0)) % 360.0;
                input.viewangles.x = (input.viewangles.x + 0.066 * (rng.below(21) as f32 - 10.0)).clamp(-89.0, 89.0);
            }
            let moved = pmove(&MoveVars::default(), &self.world, &self.states[index], input, &mut |_| {});
            self.states[index] = moved;
            shoot(runner, input);
            runner.origin = moved.origin;
            runner.velocity = moved.velocity;
            runner.viewangles = input.viewangles;
            runner.on_ground = moved.on_ground;
            runner.ducked = moved.ducked;
            runner.in_duck = moved.in_duck;
            runner.duck_time_ms = moved.duck_time_ms;
            runner.old_buttons = moved.old_buttons;
            runner.fall_velocity = moved.fall_velocity;
            runner.step_time_ms = moved.step_time_ms;
            runner.step_left = moved.step_left;
        }
    }

    pub(crate) fn input(&self, player: usize) -> &Input {
        &self.inputs[player]
    }

    pub(crate) fn snapshot(&self, seq: u32) -> Snapshot<Runner> {
        snapshot(seq, self.tick, self.runners.clone())
    }
}

fn shoot(runner: &mut Runner, input: &Input) {
    runner.next_attack_ms = runner.next_attack_ms.saturating_sub(16);
    if input.buttons & 1 != 0 && runner.next_attack_ms == 0 {
        runner.next_attack_ms = 100;
        runner.clip = runner.clip.checked_sub(1).unwrap_or(50);
    }
}

pub(crate) fn snapshot(seq: u32, tick: Tick, entities: Vec<(EntityId, Runner)>) -> Snapshot<Runner> {
    // Servers are sometimes slightly late.
    let lateness = i64::from(seq.wrapping_mul(2_654_435_761) >> 24);
    let server_time = Micros(i64::from(tick.0) * TICK.0 + lateness);
    let frame = Frame { tick, server_time, entities };
    Snapshot::new(SnapshotSeq(seq), CommandSeq(tick.0), Arc::new(frame))
}

/// The bits of a frame without the parts that only clients know. NaN equals itself, and -0 does not equal 0.
pub(crate) fn bits(frame: &Frame<Runner>) -> (Tick, Micros, Vec<(EntityId, Vec<u32>)>) {
    let entities = frame.entities.iter().map(|(id, body)| (*id, cells(body))).collect();
    (frame.tick, frame.server_time, entities)
}

pub(crate) fn cells(body: &Runner) -> Vec<u32> {
    let mut body = *body;
    body.strip_client_only();
    let mut cells = vec![0; Runner::CELLS];
    body.write(&mut cells);
    cells
}
