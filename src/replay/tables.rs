//! Turns what happens in a session into the tables of a trace.

use super::columns::{CellRows, Names, table};
use super::effects::Effects;
use super::shots::Shots;
use crate::client::{Commanded, Reconciled};
use crate::game::{Body, Cause, CellKind, Evidence, Field, Game, Grade, How, Verdict};
use crate::packet::Snapshot;
use crate::record::Execution;
use crate::server::{Judged, Ticked};
use crate::session::{Observer, Shown};
use crate::trace::{Data, Table, Trace};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use glam::Vec3;

/// An [`Observer`] that fills the tables.
#[derive(Debug)]
pub struct Tables {
    fields: Vec<Field>,
    ticks: (Vec<u32>, Vec<i64>, Vec<u64>),
    bodies: (Vec<u32>, Vec<u32>, CellRows),
    frames: Frames,
    corrections: Corrections,
    views: Views,
    shots: Shots,
    effects: Effects,
    executed: (Vec<u32>, Vec<u32>, Vec<u32>, Names),
}

#[derive(Debug)]
struct Frames {
    player: Vec<u32>,
    at_us: Vec<i64>,
    command: Vec<u32>,
    msec: Vec<u32>,
    server_time_us: Vec<i64>,
    angles: [Vec<f32>; 2],
    moves: [Vec<f32>; 3],
    buttons: Vec<u32>,
    ran: Vec<u32>,
    first_effects: Vec<u32>,
    has_body: Vec<u32>,
    drawn: [Vec<f32>; 3],
    own: CellRows,
}

#[derive(Debug)]
struct Corrections {
    player: Vec<u32>,
    at_us: Vec<i64>,
    command: Vec<u32>,
    commands: Vec<u32>,
    result: Names,
    on_ground: Vec<u32>,
    error_units: Vec<f32>,
    velocity_error: Vec<f32>,
    fields: Vec<u32>,
    reran: Vec<u32>,
    cause: Names,
    evidence: Names,
    errors: Errors,
}

#[derive(Debug, Default)]
struct Errors {
    player: Vec<u32>,
    command: Vec<u32>,
    field: Names,
    predicted: Vec<f32>,
    authoritative: Vec<f32>,
    bits: [Vec<u32>; 2],
}

#[derive(Debug)]
struct Views {
    player: Vec<u32>,
    command: Vec<u32>,
    drawn_at_us: Vec<i64>,
    entity: Vec<u32>,
    place: [Vec<f32>; 3],
    angles: [Vec<f32>; 2],
    how: Names,
    /// For each player, where the views of each of its usercmds begin and end.
    of_command: Vec<Vec<(u32, usize, usize)>>,
}

impl Tables {
    /// Empty tables for the bodies of a game and so many players.
    pub fn new<G: Game>(players: usize) -> Tables {
        let fields = G::Body::fields();
        let causes: Vec<&str> = ["none"].into_iter().chain(Cause::NAMES).collect();
        Tables {
            ticks: Default::default(),
            bodies: (Vec::new(), Vec::new(), CellRows::new(fields.clone())),
            frames: Frames {
                player: Vec::new(),
                at_us: Vec::new(),
                command: Vec::new(),
                msec: Vec::new(),
                server_time_us: Vec::new(),
                angles: Default::default(),
                moves: Default::default(),
                buttons: Vec::new(),
                ran: Vec::new(),
                first_effects: Vec::new(),
                has_body: Vec::new(),
                drawn: Default::default(),
                own: CellRows::new(fields.clone()),
            },
            corrections: Corrections {
                player: Vec::new(),
                at_us: Vec::new(),
                command: Vec::new(),
                commands: Vec::new(),
                result: Names::known(&Grade::NAMES),
                on_ground: Vec::new(),
                error_units: Vec::new(),
                velocity_error: Vec::new(),
                fields: Vec::new(),
                reran: Vec::new(),
                cause: Names::known(&causes),
                evidence: Names::known(&Evidence::NAMES),
                errors: Errors::default(),
            },
            views: Views {
                player: Vec::new(),
                command: Vec::new(),
                drawn_at_us: Vec::new(),
                entity: Vec::new(),
                place: Default::default(),
                angles: Default::default(),
                how: Names::known(&How::NAMES),
                of_command: vec![Vec::new(); players],
            },
            shots: Shots::new(),
            effects: Effects::default(),
            executed: (Vec::new(), Vec::new(), Vec::new(), Names::known(&Execution::NAMES)),
            fields,
        }
    }

    /// The finished tables.
    pub fn finish<G: Game>(self) -> Trace {
        let (tick, at_us, hash) = self.ticks;
        let ticks = vec![("tick", Data::U32(tick)), ("at_us", Data::I64(at_us)), ("hash", Data::U64(hash))];
        let (tick, entity, cells) = self.bodies;
        let bodies = vec![("tick", Data::U32(tick)), ("entity", Data::U32(entity))];
        let (player, command, tick, how) = self.executed;
        let executed = vec![
            ("player", Data::U32(player)),
            ("command", Data::U32(command)),
            ("tick", Data::U32(tick)),
            ("how", how.data()),
        ];
        let (corrections, errors) = self.corrections.tables();
        let tables = vec![
            table("ticks", ticks, Vec::new()),
            table("bodies", bodies, cells.columns("")),
            table("executed", executed, Vec::new()),
            self.frames.table(),
            corrections,
            errors,
            self.views.table(),
            self.shots.table::<G>(),
            self.effects.table(),
        ];
        Trace { tables, ..Trace::default() }
    }
}

impl<G: Game> Observer<G> for Tables {
    fn frame(&mut self, player: PlayerId, at: Micros, commanded: &Commanded<G>, shown: &Shown<'_, G::Body>) {
        self.frames.push(player, at, commanded);
        self.views.push(player, commanded.command.seq, shown);
        for effect in &commanded.effects {
            self.effects.push::<G>(player, at, effect, true);
        }
        for (command, index, fire, verdict) in &commanded.shots {
            self.shots.predicted((player, *command, *index), at, G::weapon_name(fire), verdict.clone());
        }
    }

    fn executed(&mut self, player: PlayerId, command: CommandSeq, tick: Tick, how: Execution) {
        self.executed.0.push(u32::from(player.0));
        self.executed.1.push(command.0);
        self.executed.2.push(tick.0);
        self.executed.3.push_code(how as u8);
    }

    fn judged(&mut self, at: Micros, tick: Tick, judged: &Judged<G>) {
        self.shots.judged(at, tick, judged, &mut self.views.of(judged.shooter, judged.command));
    }

    fn impact(
        &mut self,
        at: Micros,
        tick: Tick,
        shooter: PlayerId,
        command: CommandSeq,
        weapon: &'static str,
        verdict: &Verdict,
    ) {
        self.shots.impact::<G>((shooter, command), at, tick, weapon, verdict);
    }

    fn ticked(&mut self, at: Micros, ticked: Ticked, world: &G::World) {
        self.ticks.0.push(ticked.tick.0);
        self.ticks.1.push(at.0);
        self.ticks.2.push(ticked.hash);
        for (entity, body) in G::entities(world) {
            self.bodies.0.push(ticked.tick.0);
            self.bodies.1.push(u32::from(entity.0));
            body.write(self.bodies.2.next_row());
        }
    }

    fn snapshot_received(
        &mut self,
        player: PlayerId,
        at: Micros,
        snapshot: &Snapshot<G::Body>,
        reconciled: Option<&Reconciled>,
    ) {
        for effect in &snapshot.effects {
            self.effects.push::<G>(player, at, effect, false);
        }
        if let Some(reconciled) = reconciled {
            self.corrections.push(&self.fields, player, at, reconciled);
        }
    }
}

impl Frames {
    fn push<G: Game>(&mut self, player: PlayerId, at: Micros, commanded: &Commanded<G>) {
        let input = &commanded.command.input;
        self.player.push(u32::from(player.0));
        self.at_us.push(at.0);
        self.command.push(commanded.command.seq.0);
        self.msec.push(u32::from(input.msec));
        self.server_time_us.push(commanded.command.server_time.0);
        push_all(&mut self.angles, [input.viewangles.x, input.viewangles.y]);
        push_all(&mut self.moves, [input.forwardmove, input.sidemove, input.upmove]);
        self.buttons.push(u32::from(input.buttons));
        self.ran.push(commanded.ran);
        self.first_effects.push(commanded.effects.len() as u32);
        self.has_body.push(u32::from(commanded.predicted.is_some()));
        push_all(&mut self.drawn, commanded.drawn_origin.unwrap_or(Vec3::ZERO).to_array());
        let row = self.own.next_row();
        if let Some(body) = &commanded.predicted {
            body.write(row);
        }
    }

    fn table(self) -> Table {
        let [pitch, yaw] = self.angles;
        let [forward, side, up] = self.moves;
        let [x, y, z] = self.drawn;
        let columns = vec![
            ("player", Data::U32(self.player)),
            ("at_us", Data::I64(self.at_us)),
            ("command", Data::U32(self.command)),
            ("msec", Data::U32(self.msec)),
            ("server_time_us", Data::I64(self.server_time_us)),
            ("pitch", Data::F32(pitch)),
            ("yaw", Data::F32(yaw)),
            ("forwardmove", Data::F32(forward)),
            ("sidemove", Data::F32(side)),
            ("upmove", Data::F32(up)),
            ("buttons", Data::U32(self.buttons)),
            ("ran", Data::U32(self.ran)),
            ("first_effects", Data::U32(self.first_effects)),
            ("has_body", Data::U32(self.has_body)),
            ("drawn.x", Data::F32(x)),
            ("drawn.y", Data::F32(y)),
            ("drawn.z", Data::F32(z)),
        ];
        table("frames", columns, self.own.columns("own."))
    }
}

impl Corrections {
    fn push(&mut self, fields: &[Field], player: PlayerId, at: Micros, reconciled: &Reconciled) {
        let (Some(comparison), correction) = (&reconciled.comparison, &reconciled.correction) else { return };
        self.player.push(u32::from(player.0));
        self.at_us.push(at.0);
        self.command.push(comparison.command.0);
        self.commands.push(comparison.commands);
        self.result.push_code(comparison.grade as u8);
        self.on_ground.push(u32::from(comparison.on_ground));
        self.error_units.push(comparison.error_units);
        self.velocity_error.push(comparison.velocity_error);
        self.fields.push(correction.as_ref().map_or(0, |c| c.errors.len() as u32));
        self.reran.push(correction.as_ref().map_or(0, |c| c.reran));
        self.cause.push_code(correction.as_ref().map_or(0, |c| 1 + c.cause as u8));
        self.evidence.push_code(correction.as_ref().map_or(Evidence::None as u8, |c| c.evidence as u8));
        for error in correction.iter().flat_map(|c| &c.errors) {
            let field = &fields[error.field];
            self.errors.player.push(u32::from(player.0));
            self.errors.command.push(comparison.command.0);
            self.errors.field.push(&field.name);
            self.errors.predicted.push(value(field.kind, error.predicted));
            self.errors.authoritative.push(value(field.kind, error.authoritative));
            push_all(&mut self.errors.bits, [error.predicted, error.authoritative]);
        }
    }

    fn tables(self) -> (Table, Table) {
        let corrections = vec![
            ("player", Data::U32(self.player)),
            ("at_us", Data::I64(self.at_us)),
            ("command", Data::U32(self.command)),
            ("commands", Data::U32(self.commands)),
            ("result", self.result.data()),
            ("on_ground", Data::U32(self.on_ground)),
            ("error_units", Data::F32(self.error_units)),
            ("velocity_error_units_per_s", Data::F32(self.velocity_error)),
            ("fields", Data::U32(self.fields)),
            ("reran", Data::U32(self.reran)),
            ("cause", self.cause.data()),
            ("evidence", self.evidence.data()),
        ];
        let [predicted_bits, authoritative_bits] = self.errors.bits;
        let errors = vec![
            ("player", Data::U32(self.errors.player)),
            ("command", Data::U32(self.errors.command)),
            ("field", self.errors.field.data()),
            ("predicted", Data::F32(self.errors.predicted)),
            ("authoritative", Data::F32(self.errors.authoritative)),
            ("predicted_bits", Data::U32(predicted_bits)),
            ("authoritative_bits", Data::U32(authoritative_bits)),
        ];
        (table("corrections", corrections, Vec::new()), table("errors", errors, Vec::new()))
    }
}

impl Views {
    fn push<B: Body>(&mut self, player: PlayerId, command: CommandSeq, shown: &Shown<'_, B>) {
        let start = self.entity.len();
        for (entity, placed) in shown.drawn {
            self.player.push(u32::from(player.0));
            self.command.push(command.0);
            self.drawn_at_us.push(shown.drawn_at.0);
            self.entity.push(u32::from(entity.0));
            push_all(&mut self.place, placed.body.origin().to_array());
            let angles = placed.body.viewangles();
            push_all(&mut self.angles, [angles.x, angles.y]);
            self.how.push_code(placed.how as u8);
        }
        self.of_command[usize::from(player.0)].push((command.0, start, self.entity.len()));
    }

    /// Who was drawn on a player's screen while a usercmd was made, and where.
    fn of(&self, player: PlayerId, command: CommandSeq) -> impl Iterator<Item = (EntityId, Vec3)> + '_ {
        let frames = &self.of_command[usize::from(player.0)];
        let range = match frames.binary_search_by_key(&command.0, |(seq, _, _)| *seq) {
            Ok(index) => frames[index].1..frames[index].2,
            Err(_) => 0..0,
        };
        let [x, y, z] = &self.place;
        range.map(move |i| (EntityId(self.entity[i] as u16), Vec3::new(x[i], y[i], z[i])))
    }

    fn table(self) -> Table {
        let [x, y, z] = self.place;
        let [pitch, yaw] = self.angles;
        let columns = vec![
            ("player", Data::U32(self.player)),
            ("command", Data::U32(self.command)),
            ("drawn_at_us", Data::I64(self.drawn_at_us)),
            ("entity", Data::U32(self.entity)),
            ("origin.x", Data::F32(x)),
            ("origin.y", Data::F32(y)),
            ("origin.z", Data::F32(z)),
            ("pitch", Data::F32(pitch)),
            ("yaw", Data::F32(yaw)),
            ("how", self.how.data()),
        ];
        table("views", columns, Vec::new())
    }
}

fn push_all<T, const N: usize>(columns: &mut [Vec<T>; N], values: [T; N]) {
    for (column, value) in columns.iter_mut().zip(values) {
        column.push(value);
    }
}

fn value(kind: CellKind, cell: u32) -> f32 {
    match kind {
        CellKind::F32 => f32::from_bits(cell),
        CellKind::I32 => cell as i32 as f32,
        CellKind::U32 => cell as f32,
    }
}
