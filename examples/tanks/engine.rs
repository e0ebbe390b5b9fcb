//! The game: tanks that drive, shoot shells, and lay mines. Positions are doubles, and y points down, as on a screen.

#[path = "records.rs"]
mod records;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use hitreg::record::{
    DamageRecord, Execution, ExecutionRecord, HitResult, Presence, PresenceRecord, Record, ShotRecord, TextCode,
};
use hitreg::recorder::{Playback, PlaybackError, PlaybackStep, PushError, Recorder, RecorderOptions, Stream};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg::usercmd::{Input, Usercmd};

pub(crate) const PLAYERS: u16 = 6;
const HZ: i64 = 50;
const FIRE: u16 = 1;
const MINE: u16 = 2;
const WEAPONS: [&str; 3] = ["cannon", "howitzer", "railgun"];
/// Server ticks between making a usercmd and running it.
const DELAY: u32 = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tank {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) vx: f64,
    pub(crate) vy: f64,
    pub(crate) turret_degrees: f64,
    pub(crate) health: i32,
    /// The account, which does not fit into 32 bits.
    pub(crate) id: u64,
    pub(crate) weapon: usize,
    pub(crate) is_present: bool,
    refire_ticks: u32,
}

/// A shell, mine, crate or flag.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) entity: u16,
    pub(crate) kind: ThingKind,
    pub(crate) x: f64,
    pub(crate) y: f64,
    vx: f64,
    vy: f64,
    pub(crate) owner: u16,
    command: u32,
    pub(crate) ticks_left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThingKind {
    Shell,
    Mine,
    Crate,
    Flag,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) tick: u32,
    pub(crate) tanks: Vec<Tank>,
    pub(crate) things: Vec<Thing>,
    next_entity: u16,
    friction: f64,
    has_bug: bool,
}

impl World {
    fn new(friction: f64, has_bug: bool) -> World {
        let tank = |player: u16| Tank {
            x: 100.0 * f64::from(player),
            y: 50.0 * f64::from(player % 2),
            health: 100,
            id: 0xface_0000_0000_0000 + u64::from(player),
            ..Tank::default()
        };
        let mut world = World {
            tick: 0,
            tanks: (0..PLAYERS).map(tank).collect(),
            things: Vec::new(),
            next_entity: PLAYERS,
            friction,
            has_bug,
        };
        world.add(ThingKind::Flag, (250.0, 25.0), (0.0, 0.0), (0, 0));
        for place in 0..4 {
            world.add(ThingKind::Crate, (130.0 * f64::from(place), -40.0), (0.0, 0.0), (0, 0));
        }
        world
    }

    fn add(&mut self, kind: ThingKind, place: (f64, f64), velocity: (f64, f64), (owner, command): (u16, u32)) {
        let ((x, y), (vx, vy), entity) = (place, velocity, self.next_entity);
        self.next_entity += 1;
        let ticks_left = if kind == ThingKind::Shell { 40 } else { u32::MAX };
        self.things.push(Thing { entity, kind, x, y, vx, vy, owner, command, ticks_left });
    }

    /// Runs one usercmd. `aim_degrees` is the game's own field.
    fn run(&mut self, player: u16, command: &Usercmd, aim_degrees: f64) {
        let (seconds, input) = (f64::from(command.input.msec) / 1000.0, &command.input);
        let tank = &mut self.tanks[usize::from(player)];
        tank.turret_degrees = aim_degrees;
        let (ahead_x, ahead_y) = heading(aim_degrees);
        let push = f64::from(input.forwardmove) * seconds;
        tank.vx += ahead_x * push - tank.vx * self.friction * seconds;
        tank.vy += ahead_y * push - tank.vy * self.friction * seconds;
        tank.x += tank.vx * seconds;
        tank.y += tank.vy * seconds;
        if input.impulse > 0 {
            tank.weapon = usize::from(input.impulse) % WEAPONS.len();
        }
        let (x, y) = (tank.x, tank.y);
        tank.refire_ticks = tank.refire_ticks.saturating_sub(1);
        if tank.refire_ticks > 0 {
            return;
        }
        if input.buttons & FIRE != 0 {
            tank.refire_ticks = 12;
            let place = (x + 20.0 * ahead_x, y + 20.0 * ahead_y);
            self.add(ThingKind::Shell, place, (400.0 * ahead_x, 400.0 * ahead_y), (player, command.seq.0));
        } else if input.buttons & MINE != 0 {
            tank.refire_ticks = 30;
            self.add(ThingKind::Mine, (x, y), (0.0, 0.0), (player, command.seq.0));
        }
    }

    /// Moves shells, sets off mines, and records what they do.
    fn end_tick(&mut self, stream: &mut Stream, at: Micros) -> Result<(), PushError> {
        let seconds = 1.0 / HZ as f64;
        let mut things = std::mem::take(&mut self.things);
        for thing in &mut things {
            thing.x += thing.vx * seconds;
            thing.y += thing.vy * seconds;
            thing.ticks_left = thing.ticks_left.saturating_sub(1);
            let reach = match thing.kind {
                ThingKind::Shell => 14.0,
                ThingKind::Mine if self.has_bug => 24.0,
                ThingKind::Mine => 18.0,
                ThingKind::Crate | ThingKind::Flag => continue,
            };
            for (victim, tank) in (0..).zip(&mut self.tanks) {
                let (dx, dy) = (tank.x - thing.x, tank.y - thing.y);
                let is_hit = tank.is_present && victim != thing.owner && dx * dx + dy * dy < reach * reach;
                if !is_hit || thing.ticks_left == 0 {
                    continue;
                }
                (thing.ticks_left, tank.health) = (0, tank.health - 25);
                let (target, tick) = (Some(EntityId(victim)), Tick(self.tick));
                let command = CommandSeq(thing.command);
                let weapon = stream.text(if thing.kind == ThingKind::Mine { "mine" } else { "cannon" })?;
                let shot = ShotRecord {
                    command,
                    at,
                    reason: HitResult::Hit,
                    target,
                    damage: 25,
                    weapon,
                    ..ShotRecord::default()
                };
                stream.push(Record::Judged(PlayerId(thing.owner), shot))?;
                let attacker = Some(PlayerId(thing.owner));
                let victim = EntityId(victim);
                stream.push(Record::Damage(DamageRecord {
                    tick,
                    at,
                    victim,
                    attacker,
                    amount: 25,
                    weapon,
                    ..Default::default()
                }))?;
                if tank.health <= 0 {
                    (tank.x, tank.y, tank.vx, tank.vy, tank.health) = (tank.y * 2.0, tank.x / 2.0, 0.0, 0.0, 100);
                }
            }
        }
        things.retain(|thing| thing.ticks_left > 0);
        self.things = things;
        records::push_tick(stream, self, at)
    }
}

/// The direction of an angle, without trigonometry: results are the same on every machine.
fn heading(degrees: f64) -> (f64, f64) {
    let turns = degrees / 360.0 - (degrees / 360.0).floor();
    let quarter = |t: f64| 1.0 - 4.0 * (t - 0.5).abs();
    let (x, y) = (2.0 * quarter((turns + 0.5) % 1.0) - 1.0, 2.0 * quarter((turns + 0.25) % 1.0) - 1.0);
    let length = (x * x + y * y).sqrt().max(1e-9);
    (x / length, y / length)
}

/// A bot's usercmd and its aim.
fn think(world: &World, player: u16, seq: u32) -> (Usercmd, f64) {
    let me = &world.tanks[usize::from(player)];
    let them = &world.tanks[usize::from((player + 1 + (seq / 90) as u16) % PLAYERS)];
    let (dx, dy) = (them.x - me.x, them.y - me.y);
    let part = dx / (dx.abs() + dy.abs()).max(1e-9);
    let aim = (if dy >= 0.0 { 90.0 - 90.0 * part } else { 270.0 + 90.0 * part }) + f64::from(seq % 7) - 3.0;
    let buttons = match (seq + u32::from(player) * 11) % 60 {
        0..=9 => FIRE,
        40 => MINE,
        _ => 0,
    };
    let impulse = if seq.is_multiple_of(100) { (seq / 100) as u8 } else { 0 };
    let viewangles = [0.0, aim as f32, 0.0].into();
    let input = Input { msec: 20, viewangles, forwardmove: 120.0, buttons, impulse, ..Input::default() };
    (Usercmd { seq: CommandSeq(seq), input, ..Usercmd::default() }, aim)
}

fn record(path: &Path, seconds: u32) -> Result<(), Box<dyn Error>> {
    let recorder = Recorder::create(path, records::describe(), RecorderOptions::patient())?;
    let mut stream = recorder.stream();
    let mut world = World::new(records::FRICTION, false);
    let mut sent: Vec<Vec<(Usercmd, f64)>> = vec![Vec::new(); usize::from(PLAYERS)];
    for tick in 1..=seconds * HZ as u32 {
        let at = Micros(i64::from(tick) * 1_000_000 / HZ);
        world.tick = tick;
        for player in 0..PLAYERS {
            let joins_at = 1 + 25 * u32::from(player);
            if tick == joins_at {
                world.tanks[usize::from(player)].is_present = true;
                let presence = PresenceRecord { tick: Tick(tick), at, change: Presence::Joined };
                stream.push(Record::Presence(PlayerId(player), presence))?;
            }
            if tick < joins_at {
                continue;
            }
            let sent = &mut sent[usize::from(player)];
            let (command, aim) = think(&world, player, sent.len() as u32 + 1);
            let taunt = stream.text(if tick.is_multiple_of(200) { "wait for it" } else { "" })?;
            stream.usercmd_with(PlayerId(player), at, command.clone(), &[aim.into(), taunt.into()])?;
            sent.push((command, aim));
            let Some(due) = (sent.len() as u32).checked_sub(DELAY + 1) else { continue };
            let (command, aim) = sent[due as usize].clone();
            let done = ExecutionRecord { command: command.seq, tick: Tick(tick), how: Execution::Run };
            stream.push(Record::Executed(PlayerId(player), done))?;
            world.run(player, &command, aim);
        }
        world.end_tick(&mut stream, at)?;
    }
    drop(stream);
    recorder.finish()?;
    Ok(())
}

fn replay(has_bug: bool) -> Result<(), PlaybackError> {
    let mut play = Playback::from_args(std::env::args_os().skip(1), records::GAME)?;
    let friction = play.setting("tanks.friction").and_then(|text| text.parse().ok()).unwrap_or(records::FRICTION);
    let mut world = World::new(friction, has_bug);
    let mut stream = play.begin(records::describe())?;
    while let Some(step) = play.next(&mut stream)? {
        let session = play.session();
        match step {
            PlaybackStep::Restore(state) => records::restore(&mut world, session, state),
            PlaybackStep::Join(player) => world.tanks[usize::from(player.0)].is_present = true,
            PlaybackStep::Leave(player) => world.tanks[usize::from(player.0)].is_present = false,
            PlaybackStep::Input { player, frame, .. } => {
                let command = &session.players[usize::from(player.0)].frames[frame].command;
                world.run(player.0, command, records::aim(command));
            }
            PlaybackStep::Tick => {
                let end = play.now();
                world.tick = end.tick.0;
                world.end_tick(&mut stream, end.at)?;
            }
            _ => {}
        }
    }
    drop(stream);
    play.finish()
}

pub(crate) fn weapon(tank: &Tank, stream: &mut Stream) -> Result<TextCode, PushError> {
    stream.text(WEAPONS[tank.weapon])
}

pub(crate) fn weapon_of(name: &str) -> usize {
    WEAPONS.iter().position(|weapon| *weapon == name).unwrap_or_default()
}

pub(crate) fn main(has_bug: bool) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (outcome, code) = match &args[..] {
        [command, path, rest @ ..] if command == "record" => {
            let seconds = rest.first().and_then(|text| text.parse().ok()).unwrap_or(20);
            (record(Path::new(path), seconds).map_err(|error| error.to_string()), 128)
        }
        _ => match replay(has_bug) {
            Ok(()) => (Ok(()), 0),
            Err(error) => (Err(error.to_string()), error.exit_code()),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("tanks: {message}");
            ExitCode::from(code)
        }
    }
}
