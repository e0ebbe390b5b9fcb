//! The format of a claim's file: the statement and its source, the way of measuring, the scene, the expected figures,
//! and how to switch off the mechanism. Each claim is one TOML file in `claims` of this crate. Also the scripted input of
//! a scene's players.

use std::sync::Arc;

use glam::Vec3;
use serde::Deserialize;

use crate::claims::partial::ClientPart;
use hitreg_arena::{Arena, ArenaBody};
use hitreg_log::rng::Rng;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Hz, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, buttons};
use hitreg_netcode::link::LinkModel;
use hitreg_netcode::session::{InputSource, LateFrames, PlayerScreen};
use hitreg_netcode::settings::Settings;

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

/// The scripted input of all players of a scene.
pub(super) struct ScriptedInput {
    players: Vec<ScriptedPlayer>,
    /// The intention of each frame's player, in the order of frames.
    pub(super) meant: Vec<IntendedFrame>,
}

/// A player's intention in one frame.
#[derive(Clone, Debug)]
pub(super) struct IntendedFrame {
    /// The own body before the frame's usercmd.
    pub(super) own_before: Option<ArenaBody>,
    /// The player's lead before its target, in units.
    pub(super) lead_units: f32,
}

struct ScriptedPlayer {
    steps: Vec<ScriptStep>,
    cmd_hz: Hz,
    jitter: Micros,
    rng: Rng,
    late: LateFrames,
    /// The time at which the first frame would have been if all frames since were on time.
    phase: Micros,
    frames: i64,
    /// The end of the last frame, in whole milliseconds.
    last_ms: i64,
    /// The step whose impulse has been sent.
    begun: Option<usize>,
    /// The last pulse pressed, with its step.
    pulsed: Option<(usize, i64)>,
}

impl ScriptedInput {
    /// Creates the input of a scene's players.
    pub(super) fn new(scene: &ScriptedSession, settings: &Arc<Settings>) -> ScriptedInput {
        let player = |(index, player): (u16, &PlayerScript)| {
            let own = settings.of_player(PlayerId(index));
            let cmd_hz = own.client.cmd_hz;
            let phase = Micros::from_ms_f64(player.first_frame_ms);
            ScriptedPlayer {
                steps: player.input.clone(),
                cmd_hz,
                jitter: Micros::from_ms_f64(player.frame_jitter_ms),
                rng: Rng::new(Seed(scene.seed), 0x6672_616d_6500_0000 | u64::from(index)),
                late: LateFrames::new(own.client.frames, Seed(scene.seed), PlayerId(index)),
                phase,
                frames: 0,
                last_ms: (phase - cmd_hz.interval()).0 / 1000,
                begun: None,
                pulsed: None,
            }
        };
        ScriptedInput { players: (0..).zip(&scene.players).map(player).collect(), meant: Vec::new() }
    }
}

impl InputSource<Arena> for ScriptedInput {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        let player = self.players.get_mut(usize::from(player.0))?;
        if player.frames > 0 {
            player.phase += player.late.next_delay();
        }
        let late = player.rng.below(player.jitter.0.unsigned_abs() + 1);
        let at = player.phase + player.cmd_hz.period_start(player.frames) + Micros(late as i64);
        player.frames += 1;
        Some(at)
    }

    fn input(&mut self, at: Micros, screen: &PlayerScreen<'_, Arena>) -> Input {
        let player = &mut self.players[usize::from(screen.player.0)];
        let (input, lead_units) = player.input(at, screen);
        self.meant.push(IntendedFrame { own_before: screen.own.copied(), lead_units });
        input
    }
}

impl ScriptedPlayer {
    fn input(&mut self, at: Micros, screen: &PlayerScreen<'_, Arena>) -> (Input, f32) {
        let now_ms = at.0 / 1000;
        let msec = (now_ms - self.last_ms).clamp(0, 255) as u8;
        self.last_ms = now_ms;
        let resting = Input { msec, ..Input::default() };
        let Some(index) = self.steps.iter().rposition(|step| Micros::from_ms_f64(step.from_ms) <= at) else {
            return (resting, 0.0);
        };
        let step = &self.steps[index];
        let since = at - Micros::from_ms_f64(step.from_ms);
        let pulse = step.pulse_ms.map(|ms| since.0 / Micros::from_ms_f64(ms).0.max(1));
        let is_pressed = pulse.is_none_or(|pulse| self.pulsed != Some((index, pulse)));
        self.pulsed = pulse.map(|pulse| (index, pulse));
        let sign = match step.flip_ms {
            Some(ms) if (since.0 / Micros::from_ms_f64(ms).0.max(1)) % 2 == 1 => -1.0,
            _ => 1.0,
        };
        let lead_units = lead_of(step, pulse.unwrap_or(0));
        let impulse = if self.begun == Some(index) { 0 } else { step.impulse };
        self.begun = Some(index);
        let input = Input {
            viewangles: aim(step, screen, lead_units).unwrap_or(Vec3::new(step.pitch, step.yaw, 0.0)),
            forwardmove: step.forward * sign,
            sidemove: step.side * sign,
            buttons: if is_pressed { step.buttons.iter().map(|b| b.bit()).fold(0, |all, bit| all | bit) } else { 0 },
            impulse,
            ..resting
        };
        (input, lead_units)
    }
}

impl Button {
    fn bit(self) -> u16 {
        match self {
            Button::Attack => buttons::ATTACK,
            Button::Jump => buttons::JUMP,
            Button::Duck => buttons::DUCK,
            Button::Reload => buttons::RELOAD,
        }
    }
}

/// Returns the lead at a pulse; it cycles from the first value to the last.
fn lead_of(step: &ScriptStep, pulse: i64) -> f32 {
    let [from, to, by] = step.lead_units;
    if by <= 0.0 || to <= from {
        return from;
    }
    let leads = ((to - from) / by) as i64 + 1;
    from + by * (pulse % leads) as f32
}

/// Returns the view towards the target as drawn, with the lead added; `None` when the target is not drawn.
fn aim(step: &ScriptStep, screen: &PlayerScreen<'_, Arena>, lead_units: f32) -> Option<Vec3> {
    let target = step.aim_at?;
    let own = screen.own?;
    let (_, shown) = screen.others.iter().find(|(id, _)| id.0 == target)?;
    let ahead = (shown.body.velocity * Vec3::new(1.0, 1.0, 0.0)).normalize_or_zero() * lead_units;
    let line = shown.body.origin + ahead + Vec3::Z * step.above_units - own.eye();
    let pitch = -libm::atan2f(line.z, line.truncate().length()).to_degrees();
    Some(Vec3::new(pitch, libm::atan2f(line.y, line.x).to_degrees(), 0.0))
}
