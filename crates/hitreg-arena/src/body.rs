//! What snapshots carry and prediction advances: one kind of row for players, what they shoot, and the props of a map.

use glam::Vec3;

use super::pmove::{MoveInput, MoveState};
use super::solid::Hull;
use super::weapon::WeaponId;
use hitreg_log::usercmd::Input;
use hitreg_netcode::game::{Cells, Field, Role, Said, Scope, body, cells};

cells! {
    /// What an entity is. All that a kind does not speak of stays at its default.
    pub enum BodyKind {
        /// Somebody.
        Player,
        /// A rocket in flight. It uses the place and motion of its row, and `teleports`, which tells it from an earlier
        /// rocket of the same entity; everything else stays at its default.
        Rocket,
        /// An arrow: where it is going to hit is decided when it leaves.
        Arrow,
        /// A tree. It stands.
        Tree,
        /// An apple: hangs, falls, lies. It hangs while it neither moves nor lies on the ground.
        Apple,
        /// A bell, which rings now and then. Each ringing counts in `teleports`.
        Bell,
        /// Somebody whom the server moves: walks from post to post.
        Walker,
    }
}

/// What a walker decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The post that it leaves, from 0 in the order of the map.
    pub from: u8,
    /// The post that it walks to, along those in between.
    pub to: u8,
}

cells! {
    /// Rounds per weapon.
    #[derive(Eq)]
    pub struct Rounds {
        /// For the pistol.
        pub pistol: u16,
        /// For the shotgun.
        pub shotgun: u16,
        /// For the launcher.
        pub launcher: u16,
    }
}

body! {
    /// A player, a projectile, or a prop.
    pub struct ArenaBody {
        /// What it is.
        Status kind: BodyKind,
        /// The middle of the hull, in units.
        Movement origin: Vec3,
        /// In units/s.
        Movement velocity: Vec3,
        /// Pitch, yaw and roll of the last usercmd, in degrees.
        Movement viewangles: Vec3,
        /// Standing on something.
        Movement on_ground: bool,
        /// Has the small hull.
        Movement ducked: bool,
        /// On the way down into the small hull.
        Movement in_duck: bool,
        /// Runs down from 1,000 as ducking begins, in ms.
        Movement duck_time_ms: u16 as Time,
        /// Buttons whose press has been acted on.
        Movement old_buttons: u16 as Flag,
        /// Speed downward at the start of the last step in the air, in units/s.
        Movement fall_velocity: f32 as Velocity,
        /// Until the next footstep, in ms.
        Movement step_time_ms: u16 as Time,
        /// The next footstep is the left foot's.
        Movement step_left: bool,
        /// How high the eyes are above the origin, in units: Bernier's example of what is never sent. The server moves
        /// it too, but no rule reads it.
        ClientOnly view_ofs_z: f32 as Position,
        /// The weapon in hand.
        Weapons weapon: WeaponId,
        /// The weapon that is asked for; the one in hand, unless that is being holstered.
        Weapons next_weapon: WeaponId,
        /// Until the weapon in hand is holstered, or deployed, in ms.
        Weapons switch_ms: u16 as Time,
        /// Until the weapon can fire again, in ms.
        Weapons next_attack_ms: u16 as Time,
        /// Until the clip is full, in ms; 0 while nobody reloads.
        Weapons reload_ms: u16 as Time,
        /// Rounds in the clips.
        Weapons clip: Rounds,
        /// Rounds besides.
        Weapons reserve: Rounds,
        /// Health points; none left is death.
        Status health: i32,
        /// Not dead.
        Status alive: bool,
        /// Until the dead come back, in µs.
        Status respawn_us: u32 as Time("us"),
        /// Others killed, less own deaths by own hand.
        Status frags: i32,
        /// How often it was put somewhere else at once, or begun anew. In a projectile, which launch it is: the player's
        /// number in the upper 8 bits, and in the others that of the usercmd.
        Movement teleports: u32,
        /// What a walker decided last.
        Status decision: Decision,
        /// Until its event, in µs, and negative since: a walker's decision applies, an arrow is at its goal, a bell began
        /// to ring (so this is, negative, how far its sound has played; it stays where the sound is over).
        Status event_in_us: i32 as Time("us"),
        /// Where an arrow is going to be, in units.
        Status goal: Vec3 as Position,
    }
    role = role;
}

fn role(field: &Field) -> Role {
    match field.name.split('.').next().unwrap_or_default() {
        "on_ground" => Role::Ground,
        "duck_time_ms" => Role::Style,
        "old_buttons" => Role::Movement,
        "step_time_ms" | "step_left" => Role::SubAction,
        "respawn_us" | "event_in_us" => Role::Event,
        "decision" => Role::Controller,
        "goal" => Role::Value,
        // With "current timestamp into the action": how long it still takes.
        "weapon" | "next_weapon" | "switch_ms" | "next_attack_ms" | "reload_ms" => Role::Action,
        _ => Role::by_default(field),
    }
}

impl ArenaBody {
    /// The hull that this player has.
    pub fn hull(&self) -> Hull {
        if self.ducked { Hull::Ducked } else { Hull::Standing }
    }

    /// Where this player's bullets leave, and what bots see from. Made from replicated state alone, so that server and
    /// client agree whatever the client keeps to itself.
    pub fn eye(&self) -> Vec3 {
        self.origin + Vec3::Z * self.move_state().eye_height_units()
    }

    /// True for a living player: solid, and worth shooting at.
    pub fn is_target(&self) -> bool {
        self.kind == BodyKind::Player && self.alive
    }

    pub(crate) fn move_state(&self) -> MoveState {
        MoveState {
            origin: self.origin,
            velocity: self.velocity,
            on_ground: self.on_ground,
            ducked: self.ducked,
            in_duck: self.in_duck,
            duck_time_ms: self.duck_time_ms,
            view_ofs_z: self.view_ofs_z,
            old_buttons: self.old_buttons,
            fall_velocity: self.fall_velocity,
            step_time_ms: self.step_time_ms,
            step_left: self.step_left,
        }
    }

    pub(crate) fn set_move_state(&mut self, moved: &MoveState) {
        self.origin = moved.origin;
        self.velocity = moved.velocity;
        self.on_ground = moved.on_ground;
        self.ducked = moved.ducked;
        self.in_duck = moved.in_duck;
        self.duck_time_ms = moved.duck_time_ms;
        self.view_ofs_z = moved.view_ofs_z;
        self.old_buttons = moved.old_buttons;
        self.fall_velocity = moved.fall_velocity;
        self.step_time_ms = moved.step_time_ms;
        self.step_left = moved.step_left;
    }
}

/// The part of a usercmd that moves a player.
pub(crate) fn move_input(input: &Input) -> MoveInput {
    MoveInput {
        msec: input.msec,
        viewangles: input.viewangles,
        forwardmove: input.forwardmove,
        sidemove: input.sidemove,
        upmove: input.upmove,
        buttons: input.buttons,
    }
}

impl Rounds {
    /// The rounds for one weapon.
    pub fn of(&self, weapon: WeaponId) -> u16 {
        match weapon {
            WeaponId::Pistol => self.pistol,
            WeaponId::Shotgun => self.shotgun,
            WeaponId::Launcher => self.launcher,
        }
    }

    pub(crate) fn of_mut(&mut self, weapon: WeaponId) -> &mut u16 {
        match weapon {
            WeaponId::Pistol => &mut self.pistol,
            WeaponId::Shotgun => &mut self.shotgun,
            WeaponId::Launcher => &mut self.launcher,
        }
    }
}

/// One cell: 256 times the post that it leaves and the post that it walks to.
impl Cells for Decision {
    const COUNT: usize = 1;
    fn fields(name: &str, scope: Scope, said: Said) -> Vec<Field> {
        u16::fields(name, scope, said)
    }
    fn put(&self, cells: &mut [u32]) {
        cells[0] = u32::from(u16::from_be_bytes([self.from, self.to]));
    }
    fn get(cells: &[u32]) -> Result<Self, u32> {
        let [from, to] = u16::get(cells)?.to_be_bytes();
        Ok(Decision { from, to })
    }
}
