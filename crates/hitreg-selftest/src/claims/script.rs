//! The format of a claim's file: the statement and its source, the way of measuring, the scene, the expected figures,
//! and how to switch off the mechanism. Each claim is one TOML file in `claims` of this crate.

use serde::Deserialize;

use super::without::ClientPart;
use hitreg_log::sorted::SortedMap;
use hitreg_netcode::link::LinkModel;

/// A claim's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    /// The statement.
    pub(super) claim: String,
    /// The document and the place in it.
    pub(super) source: String,
    /// How the claim is measured.
    pub(super) how: String,
    /// The mechanism behind the claim.
    pub(super) mechanism: String,
    /// How the mechanism is switched off.
    pub(super) off: MechanismSwitch,
    /// The scene; `None` when the claim needs no session.
    pub(super) scene: Option<ScriptedSession>,
    /// Variants of the scene, by name.
    #[serde(default)]
    pub(super) variants: SortedMap<String, SceneVariant>,
    /// The expected figures.
    pub(super) expect: Vec<ExpectedFigure>,
}

/// How the mechanism of a claim is switched off.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MechanismSwitch {
    /// A description.
    pub(super) how: String,
    /// Settings that change.
    #[serde(default)]
    pub(super) settings: SortedMap<String, String>,
    /// Rules that change.
    #[serde(default)]
    pub(super) rules: RulesChange,
    /// What player 0's client leaves out.
    pub(super) client_leaves_out: Option<ClientPart>,
}

/// The description of a session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedSession {
    /// The settings preset.
    pub(super) preset: String,
    /// The length in seconds.
    pub(super) seconds: f64,
    /// The time of the inspected frames, from and to, in ms; `None` inspects all.
    pub(super) inspect_ms: Option<[f64; 2]>,
    /// The random seed.
    #[serde(default)]
    pub(super) seed: u64,
    /// The map.
    #[serde(default)]
    pub(super) map: MapName,
    /// Settings that differ from the preset.
    #[serde(default)]
    pub(super) settings: SortedMap<String, String>,
    /// Rules that differ from Half-Life's.
    #[serde(default)]
    pub(super) rules: RulesChange,
    /// The players.
    pub(super) players: Vec<PlayerScript>,
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
    /// A floor with a teleporter whose destination is 96 units away.
    Teleporter,
    /// The built-in orchard, with an entity for each rendering category.
    Orchard,
}

/// The changes of a scene in a variant.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SceneVariant {
    /// Settings that change.
    pub(super) settings: SortedMap<String, String>,
    /// Rules that change.
    pub(super) rules: RulesChange,
    /// Connections that change, by player.
    pub(super) links: Vec<LinkScript>,
    /// Starting places that change, by player.
    pub(super) starts: SortedMap<String, [f32; 3]>,
    /// The frame jitter of all players, if it changes.
    pub(super) frame_jitter_ms: Option<f64>,
    /// Input that changes, by player.
    pub(super) input: SortedMap<String, Vec<ScriptStep>>,
    /// What player 0's client leaves out.
    pub(super) client_leaves_out: Option<ClientPart>,
}

/// Rules that change.
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
    /// The time from death to respawn, in ms.
    pub(super) respawn_ms: Option<u32>,
    /// In units/s per health point.
    pub(super) knockback_units_s: Option<f32>,
    /// Whether players block each other.
    pub(super) player_collision: Option<bool>,
    /// The time between pistol shots, in ms.
    pub(super) pistol_interval_ms: Option<u16>,
    /// Rounds in the pistol.
    pub(super) pistol_clip: Option<u16>,
    /// Health points of a pistol hit.
    pub(super) pistol_damage: Option<i32>,
    /// Rounds in the launcher.
    pub(super) launcher_clip: Option<u16>,
    /// The time between launches, in ms.
    pub(super) launcher_interval_ms: Option<u16>,
    /// The speed of rockets, in units/s.
    pub(super) rocket_speed_units_s: Option<f32>,
    /// The radius of rocket bursts, in units.
    pub(super) rocket_radius_units: Option<f32>,
    /// Whether the launcher's shots hit immediately.
    pub(super) launcher_hits_at_once: Option<bool>,
}

/// One player.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlayerScript {
    /// The starting origin in units: the middle of the hull. `None` uses the spawn point.
    pub(super) start: Option<[f32; 3]>,
    /// The connection.
    #[serde(default)]
    pub(super) link: LinkScript,
    /// The time of the first client frame; later frames follow at `client.cmd_hz`.
    #[serde(default)]
    pub(super) first_frame_ms: f64,
    /// The most that a frame is later than its regular time, in ms.
    #[serde(default)]
    pub(super) frame_jitter_ms: f64,
    /// The player's input.
    #[serde(default)]
    pub(super) input: Vec<ScriptStep>,
}

/// A player's connection.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LinkScript {
    /// The delay in each direction, in ms.
    pub(super) delay_ms: f64,
    /// The link to the server, if it differs.
    pub(super) up: Option<LinkModel>,
    /// The link to the client, if it differs.
    pub(super) down: Option<LinkModel>,
    /// Times, from and to in ms, in which all packets to the server are lost.
    pub(super) lose_up_ms: Vec<[f64; 2]>,
    /// Times, from and to in ms, in which all packets to the client are lost.
    pub(super) lose_down_ms: Vec<[f64; 2]>,
}

/// A player's input from a time until the next step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ScriptStep {
    /// The start, in ms.
    pub(super) from_ms: f64,
    /// The forward speed, in units/s.
    pub(super) forward: f32,
    /// The speed to the right, in units/s.
    pub(super) side: f32,
    /// The interval at which forward and side speed change their signs, in ms.
    pub(super) flip_ms: Option<f64>,
    /// The yaw in degrees, when there is no target to aim at.
    pub(super) yaw: f32,
    /// The pitch in degrees, positive downward, when there is no target to aim at.
    pub(super) pitch: f32,
    /// The buttons held.
    pub(super) buttons: Vec<Button>,
    /// The interval in ms at which the buttons are pressed for one frame, instead of held.
    pub(super) pulse_ms: Option<f64>,
    /// The impulse, sent in the first frame.
    pub(super) impulse: u8,
    /// The player to aim at, as drawn on the screen.
    pub(super) aim_at: Option<u16>,
    /// The lead along the target's motion, in units: from, to, and the step between pulses.
    pub(super) lead_units: [f32; 3],
    /// The aim above the target's middle, in units.
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

/// The expected value of one figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedFigure {
    /// The figure's name.
    pub(super) figure: String,
    /// The printed unit; empty for counts.
    #[serde(default)]
    pub(super) unit: String,
    /// The expected value.
    pub(super) is: Option<f64>,
    /// The tolerance around the expected value.
    #[serde(default)]
    pub(super) within: f64,
    /// The minimum.
    pub(super) at_least: Option<f64>,
    /// The maximum.
    pub(super) at_most: Option<f64>,
    /// The reason for the tolerance or the bound.
    pub(super) because: String,
}
