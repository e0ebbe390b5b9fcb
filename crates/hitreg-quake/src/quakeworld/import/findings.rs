//! What a demo shows about its server and its map: behaviours in which servers differ, and walls that the given map lacks.
//!
//! [`replay_acks`] replays the demo before there is a log, like a client that predicts among the bodies of the acking packets. It
//! passes on each stretch of usercmds between two acks, with its start state and the server's result. The differences show
//! in these stretches.
//!
//! The server's info string is often silent or wrong: games set their own rules, and servers of one name behave differently.
//! The demo is better evidence, because each behaviour gives other results at some landings and jumps. A recompiled map has
//! other clip hulls at some corners. Players in the recording then slide along surfaces that the given map lacks.

use glam::Vec3;
use serde::Serialize;

use super::bodies::{UnsentMovers, bodies_of};
use crate::bsp::quake::{LeaningFace, MissingWall};
use crate::quakeworld::QuakeWorldRules;
use crate::quakeworld::body::QuakeWorldBody;
use crate::quakeworld::demo::{DemoEvent, QuakeWorldDemo, ServerPacket};
use crate::quakeworld::movement::{
    Dialect, MoveOutcome, MoveRunner, PLAYER_MAXS, PLAYER_MINS, QuakeWorldMoveVars, QuakeWorldPlayerState,
    QuakeWorldUsercmd, Surroundings, WorldSolid,
};
use crate::quakeworld::rounding::{grade, out_of_solids, resume};
use crate::quakeworld::surroundings::solids;
use hitreg_log::units::EntityId;
use hitreg_netcode::game::{PredictionGrade, shown_by_either};

/// Distance beyond which an explosion has no effect, in units.
const EFFECT_REACH: f32 = 300.0;

/// The usercmds that one packet acked, with the data to compare them with.
#[derive(Clone)]
pub(crate) struct AckedUsercmds<'a> {
    /// The state before the first of them.
    pub(crate) from: QuakeWorldPlayerState,
    /// The usercmds, oldest first.
    pub(crate) commands: Vec<QuakeWorldUsercmd>,
    /// The bodies among which the server ran them, and how far they had moved.
    pub(crate) solids: Vec<WorldSolid>,
    pub(crate) vars: &'a QuakeWorldMoveVars,
    pub(crate) rules: &'a QuakeWorldRules,
    /// The server's state after the last of them.
    pub(crate) recorded: QuakeWorldBody,
    /// The bodies in the previous packet.
    pub(crate) before: &'a [(EntityId, QuakeWorldBody)],
    /// Events in the packet.
    pub(crate) events: Vec<DemoEvent>,
}

impl AckedUsercmds<'_> {
    /// Returns whether the packet has no event that could act on the player.
    fn is_quiet(&self) -> bool {
        let at = self.recorded.origin;
        self.events.iter().all(|event| match *event {
            DemoEvent::Choked(_) => true,
            DemoEvent::Effect { origin, .. } => at.distance(Vec3::from_array(origin)) > EFFECT_REACH,
            _ => false,
        })
    }

    /// Runs the usercmds with this movement code.
    pub(crate) fn run(&self, dialect: Dialect) -> MoveOutcome {
        self.runner_among(dialect, &self.solids).run(&self.from, &self.commands)
    }

    /// Runs the usercmds with one more solid. A start that rounding put inside the solid is moved out.
    fn run_with(&self, dialect: Dialect, solid: WorldSolid) -> MoveOutcome {
        let solids = [&self.solids[..], &[solid]].concat();
        let runner = self.runner_among(dialect, &solids);
        let from = out_of_solids(&runner.world, self.from, self.from.origin.into(), self.recorded.origin_wire());
        runner.run(&from, &self.commands)
    }

    /// Runs the usercmds without the walls that were added to the map.
    fn run_without_walls(&self, dialect: Dialect) -> MoveOutcome {
        let others = self.solids.iter().filter(|solid| !matches!(solid, WorldSolid::Wall(_)));
        let others: Vec<WorldSolid> = others.copied().collect();
        self.runner_among(dialect, &others).run(&self.from, &self.commands)
    }

    /// Returns the runner of the usercmds among these bodies.
    pub(crate) fn runner_among<'b>(&'b self, dialect: Dialect, solids: &'b [WorldSolid]) -> MoveRunner<'b> {
        MoveRunner { dialect, vars: self.vars, world: Surroundings { map: &self.rules.map, solids } }
    }
}

/// State kept from the last packet with an own state.
struct LastPacket {
    ack: i32,
    sequence: u32,
    bodies: Vec<(EntityId, QuakeWorldBody)>,
    state: QuakeWorldPlayerState,
}

/// Passes to `visit` the usercmds of each ack on the first level's map, with their result by the movement code of the rules,
/// until `visit` returns false.
pub(crate) fn replay_acks(
    demo: &QuakeWorldDemo,
    rules: &QuakeWorldRules,
    mut visit: impl FnMut(&AckedUsercmds<'_>, &MoveOutcome) -> bool,
) {
    let mut last: Option<LastPacket> = None;
    let mut events = Vec::new();
    let unsent = UnsentMovers::find(demo, &rules.map);
    for (index, packet) in demo.packets.iter().enumerate() {
        let is_stale = last.as_ref().is_some_and(|last| packet.sequence <= last.sequence);
        if is_stale {
            continue;
        }
        events.extend_from_slice(&packet.events);
        let Some(own) = packet.own else { continue };
        let bodies = bodies_of(rules, packet, Some(&own), unsent.of(index));
        let LastPacket { ack, bodies: before, state: from, .. } = last.take().unwrap_or_else(|| LastPacket {
            ack: packet.ack,
            sequence: packet.sequence,
            bodies: bodies.clone(),
            state: QuakeWorldPlayerState { dead: own.dead, ..QuakeWorldPlayerState::at(own.origin) },
        });
        let player = rules.player.entity();
        let own_row = |bodies: &[(EntityId, QuakeWorldBody)]| {
            bodies.iter().find(|(entity, _)| *entity == player).map_or(QuakeWorldBody::default(), |(_, body)| *body)
        };
        let recorded = own_row(&bodies);
        let start = own_row(&before).moved(&from);
        let around = shown_by_either(&before, &bodies);
        let acked = AckedUsercmds {
            from,
            commands: demo.commands[demo.commands_between(ack, packet.ack)].iter().map(|sent| sent.cmd).collect(),
            solids: solids(&rules.map, &around, &before, player, &start),
            vars: &rules.move_vars[usize::from(start.move_vars)],
            rules,
            recorded,
            before: &before,
            events: std::mem::take(&mut events),
        };
        let run = acked.run(rules.server.dialect);
        if !acked.commands.is_empty() && !visit(&acked, &run) {
            return;
        }
        let world = Surroundings { map: &rules.map, solids: &acked.solids };
        let state = resume(&world, &run.state, &recorded);
        last = Some(LastPacket { ack: packet.ack, sequence: packet.sequence, bodies, state });
    }
}

/// A behaviour in which servers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerTrait {
    /// After landing from the air, the movement code moves once more, for the velocity only.
    LandingFix,
    /// The game stops players who land hard.
    SoftLanding,
    /// The game removes the falling speed from jumps.
    SoftJump,
}

impl ServerTrait {
    const ALL: [ServerTrait; 3] = [ServerTrait::LandingFix, ServerTrait::SoftJump, ServerTrait::SoftLanding];

    /// Returns a description for display.
    pub fn label(self) -> &'static str {
        match self {
            ServerTrait::LandingFix => "landing moves twice",
            ServerTrait::SoftLanding => "hard landings stop",
            ServerTrait::SoftJump => "jumps lose the fall",
        }
    }

    /// Returns the switch for it; `None` if the movement code has none.
    fn switch(self, dialect: &mut Dialect) -> Option<&mut bool> {
        let Dialect::Classic { soft_landing, soft_jump, landing_fix } = dialect else { return None };
        Some(match self {
            ServerTrait::LandingFix => landing_fix,
            ServerTrait::SoftLanding => soft_landing,
            ServerTrait::SoftJump => soft_jump,
        })
    }

    fn toggled(self, mut dialect: Dialect) -> Dialect {
        if let Some(switch) = self.switch(&mut dialect) {
            *switch = !*switch;
        }
        dialect
    }
}

/// The result for one behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraitFinding {
    /// The behaviour.
    pub what: ServerTrait,
    /// Whether the server has it.
    pub has: bool,
    /// Whether the server's info suggested it.
    pub expected: bool,
    /// Number of stretches of usercmds that only this answer predicts exactly.
    pub agree: u32,
    /// Number of stretches that only the opposite answer predicts exactly.
    pub disagree: u32,
}

/// Number of votes that suffices; the search then skips the rest of the demo.
const VOTES_ENOUGH: u32 = 200;

/// Determines the rules of the demo's server. `rules` initially describe the server as its info does.
pub(super) fn detect_traits(demo: &QuakeWorldDemo, rules: &mut QuakeWorldRules) -> Vec<TraitFinding> {
    let expected = rules.server.dialect;
    let mut findings = Vec::new();
    for what in ServerTrait::ALL {
        let Some(expected) = what.switch(&mut expected.clone()).copied() else { continue };
        let [agree, disagree] = count_votes(demo, rules, what);
        let has = if disagree > agree { !expected } else { expected };
        if let Some(switch) = what.switch(&mut rules.server.dialect) {
            *switch = has;
        }
        let (agree, disagree) = (agree.max(disagree), agree.min(disagree));
        findings.push(TraitFinding { what, has, expected, agree, disagree });
    }
    findings
}

/// Returns the number of stretches that only the current rules predict exactly, and the number for the opposite of
/// `what`.
fn count_votes(demo: &QuakeWorldDemo, rules: &QuakeWorldRules, what: ServerTrait) -> [u32; 2] {
    let other = what.toggled(rules.server.dialect);
    let [mut agree, mut disagree] = [0; 2];
    replay_acks(demo, rules, |acked, run| {
        if acked.is_quiet() && (run.touched.jumped || acked.from.on_ground != run.state.on_ground) {
            match [*run, acked.run(other)].map(|run| grade(&run.state, &acked.recorded)) {
                [PredictionGrade::Exact, PredictionGrade::Miss] => agree += 1,
                [PredictionGrade::Miss, PredictionGrade::Exact] => disagree += 1,
                _ => {}
            }
        }
        agree + disagree < VOTES_ENOUGH
    });
    [agree, disagree]
}

/// The fewest acks that must show a wall.
const WALL_VOTES_MIN: usize = 6;
/// The fewest separate visits that must show a wall.
const WALL_VISITS_MIN: u32 = 2;
/// Largest distance between positions that belong to one wall, in units.
const NEIGHBOURS: f32 = 48.0;
/// Rounding of the wire with a margin, in units.
const ROUNDING: f32 = 0.13;
/// The most missing walls of a recompiled map. More walls mean that the map is another one.
const WALLS_MAX: usize = 32;
/// Extent of a wall for the test with a single ack, in units.
const TRIAL_REACH: [f32; 3] = [32.0, 32.0, 40.0];

/// Finds the missing walls and adds to the rules' map each that improves more predictions than it worsens.
pub(super) fn find_walls(demo: &QuakeWorldDemo, rules: &mut QuakeWorldRules) {
    let mut shown: Vec<WallEvidence> = Vec::new();
    let mut count = 0;
    let leaning = rules.map.leaning_faces(PLAYER_MINS, PLAYER_MAXS);
    replay_acks(demo, rules, |acked, run| {
        count += 1;
        if let Some(wall) = wall_shown_by(acked, run, rules, &leaning, count) {
            wall.merge_into(&mut shown);
        }
        true
    });
    shown.retain(|wall| wall.votes.len() >= WALL_VOTES_MIN && wall.visits >= WALL_VISITS_MIN);
    shown.truncate(WALLS_MAX);
    rules.map.walls = shown.iter().map(|wall| wall.trimmed_wall(demo)).collect();
    if !rules.map.walls.is_empty() {
        drop_useless_walls(demo, rules);
    }
}

/// Returns the wall that a wrong result shows: with this wall alone, the result is right.
fn wall_shown_by(
    acked: &AckedUsercmds<'_>,
    run: &MoveOutcome,
    rules: &QuakeWorldRules,
    leaning: &[LeaningFace],
    count: usize,
) -> Option<WallEvidence> {
    let is_alive = !acked.from.dead && acked.recorded.alive;
    if !acked.is_quiet()
        || !is_alive
        || run.touched.stuck
        || grade(&run.state, &acked.recorded) != PredictionGrade::Miss
    {
        return None;
    }
    let upright = [0, 1].into_iter().filter(|axis| acked.recorded.velocity[*axis] == 0.0).map(|axis| {
        let (origin, off) = (acked.recorded.origin, run.state.origin[axis] - acked.recorded.origin[axis]);
        let beyond = if off.abs() > ROUNDING { off > 0.0 } else { run.state.velocity[axis] > 0.0 };
        let near = origin[axis].round();
        let at = if (origin[axis] - near).abs() < ROUNDING { near } else { origin[axis] };
        WallFace::Upright { axis, at, beyond }
    });
    // A leaning face of the map itself, if the player ends where the face would stop it.
    let touches = |face: &&LeaningFace| face.distance(acked.recorded.origin.to_array()).abs() < ROUNDING * face.slack();
    let leaning = leaning.iter().filter(touches).map(|face| WallFace::Leaning(*face));
    upright.chain(leaning).find_map(|face| {
        let wall = WallEvidence::new(face, [acked.from.origin, acked.recorded.origin.to_array()], count);
        let met = acked.run_with(rules.server.dialect, WorldSolid::Wall(wall.as_box(TRIAL_REACH)));
        (grade(&met.state, &acked.recorded) != PredictionGrade::Miss).then_some(wall)
    })
}

/// Keeps the walls that improve the predictions near them.
fn drop_useless_walls(demo: &QuakeWorldDemo, rules: &mut QuakeWorldRules) {
    let mut gained = vec![0i32; rules.map.walls.len()];
    replay_acks(demo, rules, |acked, run| {
        let near = rules.map.walls.iter().position(|wall| wall.is_near(acked.from.origin, NEIGHBOURS));
        if let Some(index) = near.filter(|_| acked.is_quiet()) {
            let without = acked.run_without_walls(rules.server.dialect);
            let [with, without] =
                [run, &without].map(|run| grade(&run.state, &acked.recorded) == PredictionGrade::Miss);
            gained[index] += i32::from(without) - i32::from(with);
        }
        true
    });
    let mut gained = gained.into_iter();
    rules.map.walls.retain(|_| gained.next().is_some_and(|gained| gained >= WALL_VOTES_MIN as i32 / 2));
}

/// Number of stretches between two separate visits.
const VISIT_GAP: usize = 400;
/// How far a wall may extend beyond the evidence, in units: sideways, and up and down.
const REACH_MAX: [f32; 2] = [2.0, 24.0];
/// Assumed thickness of an upright wall, in units; only its face is known.
const THICKNESS: f32 = 4.0;
/// Number of positions that are checked between two packets.
const PATH_STEPS: u8 = 8;
/// A longer move along an axis, in units, is a teleport or has too many lost packets. Only its end is checked.
const MOVE_UNITS_MAX: f32 = 32.0;

/// The evidence for a missing wall.
#[derive(Clone, Debug)]
struct WallEvidence {
    face: WallFace,
    /// Lowest and highest corner of the positions where players met it.
    low: [f32; 3],
    high: [f32; 3],
    /// Player positions before and after each stretch that shows the wall.
    votes: Vec<[[f32; 3]; 2]>,
    visits: u32,
    last: usize,
}

/// A way to cut a position out of a wall: everything on one side of it, along an axis.
struct WallCut {
    axis: usize,
    from_above: bool,
    /// How much the cut removes, in units.
    depth: f32,
}

/// The face of a wall.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WallFace {
    /// A face perpendicular to an axis; the wall extends from it along the axis or against it.
    Upright {
        axis: usize,
        at: f32,
        beyond: bool,
    },
    Leaning(LeaningFace),
}

impl WallEvidence {
    /// Returns the evidence from one contact, between two positions, after `count` stretches.
    fn new(face: WallFace, ends: [[f32; 3]; 2], count: usize) -> WallEvidence {
        let low = [0, 1, 2].map(|n| ends[0][n].min(ends[1][n]));
        let high = [0, 1, 2].map(|n| ends[0][n].max(ends[1][n]));
        WallEvidence { face, low, high, votes: vec![ends], visits: 1, last: count }
    }

    /// Returns the wall, extended beyond the evidence by `reach` along each axis.
    fn as_box(&self, reach: [f32; 3]) -> MissingWall {
        let mut low = [0, 1, 2].map(|n| self.low[n] - reach[n]);
        let mut high = [0, 1, 2].map(|n| self.high[n] + reach[n]);
        match self.face {
            WallFace::Upright { axis, at, beyond } => {
                low[axis] = if beyond { at } else { at - THICKNESS };
                high[axis] = low[axis] + THICKNESS;
                MissingWall { low, high, face: None }
            }
            WallFace::Leaning(face) => MissingWall { low, high, face: Some(face) },
        }
    }

    /// Adds the contact to a known wall, or as a new one.
    fn merge_into(self, shown: &mut Vec<WallEvidence>) {
        let Some(known) = shown.iter_mut().find(|known| known.is_same_wall(&self)) else { return shown.push(self) };
        known.low = [0, 1, 2].map(|n| known.low[n].min(self.low[n]));
        known.high = [0, 1, 2].map(|n| known.high[n].max(self.high[n]));
        known.votes.extend(self.votes);
        known.visits += u32::from(self.last > known.last + VISIT_GAP);
        known.last = self.last;
    }

    fn is_same_wall(&self, other: &WallEvidence) -> bool {
        let near = |n: usize| self.low[n] - NEIGHBOURS < other.high[n] && self.high[n] + NEIGHBOURS > other.low[n];
        self.face == other.face && near(0) && near(1) && near(2)
    }

    /// Returns the wall, reduced until no living player was inside it or moved through it. It keeps as much as possible
    /// where it was met.
    fn trimmed_wall(&self, demo: &QuakeWorldDemo) -> MissingWall {
        let reach = match self.face {
            WallFace::Upright { .. } => [REACH_MAX[0], REACH_MAX[0], REACH_MAX[1]],
            // A leaning face is farther forward or back at other heights.
            WallFace::Leaning(face) => {
                [0, 1, 2].map(|n| if face.normal[n] == 0.0 { REACH_MAX[0] } else { REACH_MAX[1] })
            }
        };
        let mut wall = self.as_box(reach);
        let is_cut = |axis: &usize| !matches!(self.face, WallFace::Upright { axis: across, .. } if across == *axis);
        for at in living_positions(demo) {
            let behind = wall.face.is_none_or(|face| face.distance(at) < -ROUNDING * face.slack());
            if !behind || !(0..3).all(|n| at[n] > wall.low[n] + ROUNDING && at[n] < wall.high[n] - ROUNDING) {
                continue;
            }
            let cuts = (0..3).filter(is_cut).flat_map(|axis| {
                let depths = [(false, at[axis] - wall.low[axis]), (true, wall.high[axis] - at[axis])];
                depths.map(|(from_above, depth)| WallCut { axis, from_above, depth })
            });
            let votes_lost = |&WallCut { axis, from_above, .. }: &WallCut| {
                let lies_off =
                    |place: &[f32; 3]| if from_above { place[axis] >= at[axis] } else { place[axis] <= at[axis] };
                self.votes.iter().filter(|places| places.iter().all(lies_off)).count()
            };
            let least = |a: &WallCut, b: &WallCut| votes_lost(a).cmp(&votes_lost(b)).then(a.depth.total_cmp(&b.depth));
            if let Some(WallCut { axis, from_above, .. }) = cuts.min_by(least) {
                let side = if from_above { &mut wall.high } else { &mut wall.low };
                side[axis] = at[axis];
            }
        }
        wall
    }
}

/// Returns positions of living players: the own ones, also between packets, and the other players' as sent.
fn living_positions(demo: &QuakeWorldDemo) -> impl Iterator<Item = [f32; 3]> + '_ {
    let living_origin = |packet: &ServerPacket| packet.own.filter(|own| !own.dead).map(|own| own.origin);
    let others = demo.packets.iter().flat_map(|packet| &packet.others);
    let others = others.filter(|other| !other.dead).map(|other| other.origin);
    let mut last = None;
    let own = demo.packets.iter().filter_map(living_origin).flat_map(move |now| {
        let before = last.replace(now).unwrap_or(now);
        let is_far = (0..3).any(|n| (now[n] - before[n]).abs() > MOVE_UNITS_MAX);
        let from = if is_far { now } else { before };
        (1..=PATH_STEPS).map(move |step| {
            let share = f32::from(step) / f32::from(PATH_STEPS);
            [0, 1, 2].map(|n| from[n] + share * (now[n] - from[n]))
        })
    });
    own.chain(others)
}
