//! Players with scripted input.

use std::sync::Arc;

use glam::Vec3;

use super::script::{Button, PlayerScript, ScriptStep, ScriptedSession};
use hitreg_arena::{Arena, ArenaBody};
use hitreg_log::rng::Rng;
use hitreg_log::units::{Hz, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, buttons};
use hitreg_netcode::session::{InputSource, LateFrames, PlayerScreen};
use hitreg_netcode::settings::Settings;

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
        let at = player.phase + player.cmd_hz.turn(player.frames) + Micros(late as i64);
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
