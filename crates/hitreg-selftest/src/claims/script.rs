//! What a claim's file says: the statement and where it stands, how it is measured, the scene that is played, what is
//! expected, and how the claimed mechanism is switched off. Written in TOML, one file a claim, in `fixtures/claims`.

use std::collections::BTreeMap;

use serde::Deserialize;

use hitreg_netcode::link::LinkModel;

/// A claim's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    /// The statement.
    pub(super) claim: String,
    /// The document, and where in it.
    pub(super) source: String,
    /// How it is measured.
    pub(super) how: String,
    /// What brings the claimed about.
    pub(super) mechanism: String,
    /// How that is switched off.
    pub(super) off: Off,
    /// What is played; none where no session is needed.
    pub(super) scene: Option<Scene>,
    /// The scene played otherwise, by name.
    #[serde(default)]
    pub(super) variants: BTreeMap<String, Variant>,
    /// What must come out.
    pub(super) expect: Vec<Expect>,
}

/// How the mechanism of a claim is switched off.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Off {
    /// In words.
    pub(super) how: String,
    /// Settings that differ then.
    #[serde(default)]
    pub(super) settings: BTreeMap<String, String>,
    /// Rules that differ then.
    #[serde(default)]
    pub(super) rules: RulesChange,
}

/// A session before it is played.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scene {
    /// The settings' preset.
    pub(super) preset: String,
    /// How long, in seconds.
    pub(super) seconds: f64,
    /// The frames that are inspected, from and to; all, if it does not say.
    pub(super) inspect_ms: Option<[f64; 2]>,
    /// Where all chances start from.
    #[serde(default)]
    pub(super) seed: u64,
    /// Where it is played.
    #[serde(default)]
    pub(super) map: MapName,
    /// Settings that differ from the preset.
    #[serde(default)]
    pub(super) settings: BTreeMap<String, String>,
    /// Rules that differ from Half-Life's.
    #[serde(default)]
    pub(super) rules: RulesChange,
    /// Who plays.
    pub(super) players: Vec<Player>,
}

/// The maps of the claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MapName {
    /// An endless floor.
    #[default]
    Plain,
    /// A floor with one long wall.
    Corner,
    /// A floor with a teleporter that leads 96 units on.
    Teleporter,
    /// The built-in orchard, with something for each rendering category.
    Orchard,
}

/// What a scene changes when it is played as a variant.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Variant {
    /// Settings that differ.
    pub(super) settings: BTreeMap<String, String>,
    /// Rules that differ.
    pub(super) rules: RulesChange,
    /// Connections that differ, by player.
    pub(super) links: Vec<Connection>,
    /// Where players start, by player; the others where the scene has them.
    pub(super) starts: BTreeMap<String, [f32; 3]>,
    /// How irregular all players' frames are, if they differ.
    pub(super) frame_jitter_ms: Option<f64>,
    /// The input of players that differs, by player; no entry leaves it as it is.
    pub(super) input: BTreeMap<String, Vec<Step>>,
}

/// Rules that differ.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RulesChange {
    /// In units/s.
    pub(super) maxspeed: Option<f32>,
    /// Per second.
    pub(super) accelerate: Option<f32>,
    /// Per second.
    pub(super) friction: Option<f32>,
    /// Health points at the start.
    pub(super) health: Option<i32>,
    /// From death to the next life.
    pub(super) respawn_ms: Option<u32>,
    /// In units/s per health point.
    pub(super) knockback_units_s: Option<f32>,
    /// Whether players stop each other.
    pub(super) player_collision: Option<bool>,
    /// From one pistol shot to the next.
    pub(super) pistol_interval_ms: Option<u16>,
    /// Rounds in the pistol.
    pub(super) pistol_clip: Option<u16>,
    /// Health points of a pistol hit.
    pub(super) pistol_damage: Option<i32>,
    /// Rounds in the launcher.
    pub(super) launcher_clip: Option<u16>,
    /// From one launch to the next.
    pub(super) launcher_interval_ms: Option<u16>,
    /// How fast rockets fly, in units/s.
    pub(super) rocket_speed_units_s: Option<f32>,
    /// How far their bursts reach, in units.
    pub(super) rocket_radius_units: Option<f32>,
    /// What the launcher shoots hits at once.
    pub(super) launcher_hits_at_once: Option<bool>,
}

/// One player.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Player {
    /// The middle of the hull at the start, in units; where the map has it, if nobody's is said.
    pub(super) start: Option<[f32; 3]>,
    /// The connection.
    #[serde(default)]
    pub(super) link: Connection,
    /// When the first client frame is; the others follow at `client.cmd_hz`.
    #[serde(default)]
    pub(super) first_frame_ms: f64,
    /// Each frame is later than its regular time by up to so much.
    #[serde(default)]
    pub(super) frame_jitter_ms: f64,
    /// What the player does.
    #[serde(default)]
    pub(super) input: Vec<Step>,
}

/// A player's connection.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Connection {
    /// Each way.
    pub(super) delay_ms: f64,
    /// To the server, where it differs.
    pub(super) up: Option<LinkModel>,
    /// To the client, where it differs.
    pub(super) down: Option<LinkModel>,
    /// Spans of time from and to, in ms; what leaves the client within one is lost.
    pub(super) lose_up_ms: Vec<[f64; 2]>,
    /// The same of what leaves the server.
    pub(super) lose_down_ms: Vec<[f64; 2]>,
}

/// What a player does from a time on, until the next step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Step {
    /// From then on.
    pub(super) from_ms: f64,
    /// In units/s.
    pub(super) forward: f32,
    /// In units/s, to the right.
    pub(super) side: f32,
    /// Forward and side change their signs each so often.
    pub(super) flip_ms: Option<f64>,
    /// In degrees; where there is nobody to aim at.
    pub(super) yaw: f32,
    /// In degrees, down is positive; where there is nobody to aim at.
    pub(super) pitch: f32,
    /// Buttons held.
    pub(super) buttons: Vec<Button>,
    /// Buttons are pressed for one frame each so often, instead of held.
    pub(super) pulse_ms: Option<f64>,
    /// Pressed in the first frame.
    pub(super) impulse: u8,
    /// Aims at what the screen shows of this player.
    pub(super) aim_at: Option<u16>,
    /// How far before the target, along its motion, in units: from, to, and the step from one pulse to the next.
    pub(super) lead_units: [f32; 3],
    /// How far above the target's middle, in units.
    pub(super) above_units: f32,
}

/// A button.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Button {
    /// Fires.
    Attack,
    /// Jumps.
    Jump,
    /// Ducks.
    Duck,
    /// Reloads.
    Reload,
}

/// What one figure must be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// Which figure.
    pub(super) figure: String,
    /// Its unit, as it is printed; none for counts.
    #[serde(default)]
    pub(super) unit: String,
    /// What it is.
    pub(super) is: Option<f64>,
    /// And by how much it may differ.
    #[serde(default)]
    pub(super) within: f64,
    /// Or the least that it may be.
    pub(super) at_least: Option<f64>,
    /// Or the most.
    pub(super) at_most: Option<f64>,
    /// Why it may differ by so much, or why it is so much.
    pub(super) because: String,
}
