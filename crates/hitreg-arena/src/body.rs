//! The state of one entity, as snapshots carry it and prediction advances it. Players, projectiles and props share one
//! type.

use glam::Vec3;

use crate::pmove::{VIEW_HEIGHT_STANDING_UNITS, eye_height_units};
use crate::rules::WeaponId;
use crate::solid::SolidHull;
use hitreg_netcode::game::{CellMeaning, CellRole, Cells, FieldSchema, Scope, body, cells};

cells! {
    /// The kind of an entity. Fields that a kind does not use keep their defaults.
    pub enum BodyKind {
        /// A player.
        Player,
        /// A rocket in flight. It uses origin, velocity and `teleports`, which distinguishes it from earlier rockets
        /// with the same entity id. All other fields keep their defaults.
        Rocket,
        /// An arrow, whose target is decided at launch.
        Arrow,
        /// A tree, which never moves.
        Tree,
        /// An apple, which hangs, falls and lies. It hangs when it neither moves nor is on the ground.
        Apple,
        /// A bell. Each ringing increments `teleports`.
        Bell,
        /// A character that the server moves from post to post.
        Walker,
    }
}

/// A walker's decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The post that it leaves, from 0 in the map's order.
    pub from: u8,
    /// The post that it walks to, passing the posts in between.
    pub to: u8,
}

cells! {
    /// The rounds of each weapon.
    #[derive(Eq)]
    pub struct Ammunition {
        /// Rounds of the pistol.
        pub pistol: u16,
        /// Rounds of the shotgun.
        pub shotgun: u16,
        /// Rounds of the launcher.
        pub launcher: u16,
    }
}

body! {
    /// A player, a projectile, or a prop.
    pub struct ArenaBody {
        /// The kind.
        Status kind: BodyKind,
        /// The middle of the hull, in units.
        Movement origin: Vec3,
        /// The velocity in units/s.
        Movement velocity: Vec3,
        /// Pitch, yaw and roll of the last usercmd, in degrees.
        Movement viewangles: Vec3,
        /// Whether it stands on ground or on an object.
        Movement on_ground: bool,
        /// Whether it has the small hull.
        Movement ducked: bool,
        /// Whether it is ducking but does not have the small hull yet.
        Movement in_duck: bool,
        /// The duck timer in ms; runs down from 1,000 when ducking begins.
        Movement duck_time_ms: u16 as Time,
        /// Held buttons whose press has already been handled.
        Movement old_buttons: u16 as Flag,
        /// Speed downward at the start of the last step in the air, in units/s.
        Movement fall_velocity: f32 as Velocity,
        /// The time until the next footstep, in ms.
        Movement step_time_ms: u16 as Time,
        /// Whether the next footstep is the left foot's.
        Movement step_left: bool,
        /// The height of the eyes above the origin, in units. It is Bernier's example of a client-only field. The
        /// server computes it too, but no rule reads it.
        ClientOnly view_ofs_z: f32 as Position,
        /// The weapon in hand.
        Weapons weapon: WeaponId,
        /// The requested weapon. It equals the weapon in hand, except while that one is being holstered.
        Weapons next_weapon: WeaponId,
        /// The time until the weapon in hand is holstered or deployed, in ms.
        Weapons switch_ms: u16 as Time,
        /// The time until the weapon can fire again, in ms.
        Weapons next_attack_ms: u16 as Time,
        /// The time until the clip is full, in ms; 0 when not reloading.
        Weapons reload_ms: u16 as Time,
        /// Rounds in the clips.
        Weapons clip: Ammunition,
        /// Rounds outside the clips.
        Weapons reserve: Ammunition,
        /// Health points; the player dies at 0.
        Status health: i32,
        /// Whether the player is alive.
        Status alive: bool,
        /// The time until a dead player respawns, in µs.
        Status respawn_us: u32 as Time("us"),
        /// Kills of others, minus suicides.
        Status frags: i32,
        /// The number of teleports and respawns. In a projectile, it is the launch id: the player's number in the upper
        /// 8 bits, the usercmd's number in the others.
        Movement teleports: u32,
        /// A walker's last decision.
        Status decision: Decision,
        /// The time until the entity's event in µs; negative after it. The event is a walker's decision taking effect,
        /// an arrow reaching its goal, or a bell starting to ring. For a bell, the negated value is the position in its
        /// sound; it stays constant at the end.
        Status event_in_us: i32 as Time("us"),
        /// The goal of an arrow, in units.
        Status goal: Vec3 as Position,
    }
    role = role;
}

fn role(field: &FieldSchema) -> CellRole {
    match field.name.split('.').next().unwrap_or_default() {
        "on_ground" => CellRole::Ground,
        "duck_time_ms" => CellRole::Style,
        "old_buttons" => CellRole::Movement,
        "step_time_ms" | "step_left" => CellRole::SubAction,
        "respawn_us" | "event_in_us" => CellRole::Event,
        "decision" => CellRole::Controller,
        "goal" => CellRole::Value,
        // With "current timestamp into the action": the remaining time.
        "weapon" | "next_weapon" | "switch_ms" | "next_attack_ms" | "reload_ms" => CellRole::Action,
        _ => CellRole::by_default(field),
    }
}

impl ArenaBody {
    /// Returns the player's hull.
    pub fn hull(&self) -> SolidHull {
        if self.ducked { SolidHull::Ducked } else { SolidHull::Standing }
    }

    /// Returns the origin of this player's bullets and of a bot's view. It uses replicated state only, so that server
    /// and client agree.
    pub fn eye(&self) -> Vec3 {
        self.origin + Vec3::Z * eye_height_units(self)
    }

    /// Returns true for a living player, who is solid and can be shot.
    pub fn is_target(&self) -> bool {
        self.kind == BodyKind::Player && self.alive
    }

    /// Creates a standing player at `origin`. The first step finds the ground.
    pub fn standing_at(origin: Vec3) -> ArenaBody {
        ArenaBody { origin, view_ofs_z: VIEW_HEIGHT_STANDING_UNITS, ..ArenaBody::default() }
    }
}

impl Ammunition {
    /// Returns the rounds of one weapon.
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

/// Encodes a decision as one cell: 256 times `from`, plus `to`.
impl Cells for Decision {
    const COUNT: usize = 1;
    fn fields(name: &str, scope: Scope, said: CellMeaning) -> Vec<FieldSchema> {
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
