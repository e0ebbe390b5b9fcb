//! Turns the events of a session into the tables of a trace, at once or in pieces as tables fill up.

use std::ops::Range;
use std::sync::Arc;

use glam::Vec3;
use rayon::prelude::*;

use super::corrections::Corrections;
use super::network::NetworkTables;
use super::shots::{CoverTracker, ShotKey, ShotTable};
use super::views::{DrawnScreen, Variables, ViewTable};
use super::{Part, rejudged_table};
use crate::game::{Body, CellKind, Effect, FieldSchema, Game, GameInput, RecordedShot};
use crate::history::body_of;
use crate::pipeline::{ClientFrameOutput, PredictedShot, ReconcileOutcome, TickEvent, TickOutcome};
use crate::session::{Observer, ScreenView, SessionEvent};
use hitreg_log::record::{Execution, Texts, cells_of};
use hitreg_log::trace::schema::{
    IMPACT, TableSchema, TableSet, bodies, corrections, effects, errors, executed, frames, name_missing_server,
    packets, shots, snapshots, ticks, variables, views,
};
use hitreg_log::trace::{Column, ColumnData, Table, Trace};
use hitreg_log::units::{Micros, PlayerId, SnapshotSeq};

/// All rows are passed on at least once in this much session time.
pub(super) const FLUSH_INTERVAL: Micros = Micros::from_s(16);
/// A table is full at about this many bytes of rows.
const FULL_BYTES: usize = 2 << 20;
/// The views table may grow to this multiple of [`FULL_BYTES`], because it has far more rows than the others.
const VIEWS_TIMES: usize = 4;

/// The tables whose rows [`TraceTables::flush`] passes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum FlushScope {
    /// Every table, also without rows.
    All,
    /// Every table with rows.
    NonEmpty,
    /// Tables with about [`FULL_BYTES`] of rows.
    Full,
}

/// Receives the rows of the tables in a [`FlushScope`], and passes on those of wanted tables.
struct TableOutlet<'a> {
    to: &'a mut dyn FnMut(Table),
    wanted: TableSet,
    /// The number of cells of a body.
    body_cells: usize,
    scope: FlushScope,
}

impl TableOutlet<'_> {
    /// Returns whether a table with this many rows is in the scope.
    fn is_due(&self, table: &TableSchema, rows: usize) -> bool {
        let columns = table.columns.len() + if table.fields.is_some() { self.body_cells } else { 0 };
        match self.scope {
            FlushScope::All => true,
            FlushScope::NonEmpty => rows > 0,
            FlushScope::Full => rows * columns * size_of::<u32>() >= FULL_BYTES,
        }
    }

    /// Passes on these rows if their table is wanted.
    fn pass(&mut self, table: Table) {
        if TableSchema::of(&table.name).is_none_or(|schema| self.wanted.has(schema)) {
            (self.to)(table);
        }
    }
}

/// An [`Observer`] that fills the tables of a trace.
#[derive(Debug)]
pub struct TraceTables {
    /// Whether a server judges shots.
    pub(super) has_server: bool,
    fields: Vec<FieldSchema>,
    /// The cells of one body.
    written: Vec<u32>,
    ticks: ticks::Writer,
    bodies: BodyTable,
    pub(super) frames: FrameTable,
    pub(super) corrections: Corrections,
    pub(super) views: ViewTable,
    variables: Variables,
    pub(super) shots: ShotTable,
    /// The verdicts under each of [`ReplayOptions::rejudge_added`](super::ReplayOptions::rejudge_added).
    pub(super) rejudged: Vec<ShotTable>,
    covers: CoverTracker,
    effects: effects::Writer,
    executed: executed::Writer,
    pub(super) network: Option<NetworkTables>,
    /// The tables whose rows are made.
    pub(super) wanted: TableSet,
}

/// Returns whether corrections are looked at, for either of the tables that come from them.
pub(super) fn has_corrections(wanted: TableSet) -> bool {
    wanted.has(&corrections::SCHEMA) || wanted.has(&errors::SCHEMA)
}

impl TraceTables {
    /// Returns empty tables for a game and this number of players.
    pub fn new<G: Game>(players: usize, rules: Arc<G::Rules>) -> TraceTables {
        let fields = G::Body::fields();
        TraceTables {
            has_server: true,
            ticks: ticks::Writer::default(),
            bodies: BodyTable { rows: bodies::Writer::default(), cells: CellRows::new(fields.clone()) },
            frames: FrameTable::new::<G>(),
            corrections: Corrections::default(),
            views: ViewTable::new(players),
            variables: Variables::default(),
            shots: ShotTable::new(players),
            rejudged: Vec::new(),
            covers: CoverTracker::new::<G>(players, rules),
            effects: effects::Writer::default(),
            executed: executed::Writer::default(),
            network: None,
            wanted: TableSet::ALL,
            written: vec![0; G::Body::CELLS],
            fields,
        }
    }

    /// Sets the expected numbers of players, usercmds and ticks, so that memory for their rows is reserved at once.
    pub(super) fn expect_rows(&mut self, players: usize, usercmds: usize, ticks: usize) {
        self.ticks.expect_rows(ticks);
        self.bodies.rows.expect_rows(ticks.saturating_mul(players));
        self.bodies.cells.expect_rows(ticks.saturating_mul(players));
        self.executed.expect_rows(usercmds);
        self.frames.expect_rows(usercmds);
        self.views.rows.expect_rows(usercmds.saturating_mul(players.saturating_sub(1)));
    }

    /// Adds a shot of a recording that was judged again. The shooter's screen at that usercmd must be known.
    pub fn push_rejudged<G: Game>(&mut self, shot: &RecordedShot) {
        self.shots.push_rejudged::<G>(shot, &mut self.views.of(shot.shooter, shot.command));
    }

    /// Returns the finished tables.
    pub fn finish<G: Game>(mut self) -> Trace {
        self.end_of_part::<G>(Part::WHOLE);
        self.into_trace()
    }

    /// Returns all rows as a trace. Every row must be complete.
    pub(super) fn into_trace(mut self) -> Trace {
        let mut tables = Vec::new();
        self.flush(FlushScope::All, &mut |table| tables.push(table));
        Trace { tables, ..Trace::default() }
    }

    /// Begins the part whose rows are put out. Discards the rows so far, including incomplete ones.
    pub(super) fn begin_part(&mut self) {
        self.shots.discard_waiting();
        if let Some(network) = &mut self.network {
            network.discard_waiting();
        }
        self.flush(FlushScope::All, &mut |_| {});
    }

    /// Handles the arrival of a snapshot, also after the part.
    pub(super) fn snapshot_reached(&mut self, player: PlayerId, seq: SnapshotSeq, at: Micros) {
        if let Some(network) = &mut self.network {
            network.snapshot_received(player, seq.0, at);
        }
    }

    /// Completes the rows of the part.
    pub(super) fn end_of_part<G: Game>(&mut self, part: Part) {
        self.shots.settle(Micros(i64::MAX), &self.covers);
        self.shots.end::<G>(part);
        if let Some(network) = &mut self.network {
            network.end();
        }
    }

    /// Passes on the rows of each full table.
    pub(super) fn flush_full(&mut self, to: &mut dyn FnMut(Table)) {
        self.views.forget();
        self.flush(FlushScope::Full, to);
    }

    /// Passes on the rows of the tables in this scope, in table order.
    pub(super) fn flush(&mut self, scope: FlushScope, to: &mut dyn FnMut(Table)) {
        let mut outlet = TableOutlet { to, wanted: self.wanted, body_cells: self.written.len(), scope };
        // The packing of views refers to the bodies before them, so ticks and bodies are passed on with views, and first.
        let view_rows = self.views.rows.rows();
        let are_views_due = match scope {
            FlushScope::All | FlushScope::NonEmpty => outlet.is_due(&views::SCHEMA, view_rows),
            FlushScope::Full => outlet.is_due(&views::SCHEMA, view_rows / VIEWS_TIMES),
        };
        if are_views_due || outlet.is_due(&ticks::SCHEMA, self.ticks.rows()) {
            outlet.pass(self.ticks.take(Vec::new()));
        }
        if are_views_due || outlet.is_due(&bodies::SCHEMA, self.bodies.rows.rows()) {
            outlet.pass(self.bodies.take());
        }
        if outlet.is_due(&executed::SCHEMA, self.executed.rows()) {
            outlet.pass(self.executed.take(Vec::new()));
        }
        if outlet.is_due(&frames::SCHEMA, self.frames.rows.rows()) {
            outlet.pass(self.frames.take());
        }
        let Corrections { rows, errors, .. } = &mut self.corrections;
        if outlet.is_due(&corrections::SCHEMA, rows.rows()) {
            outlet.pass(rows.take(Vec::new()));
        }
        if outlet.is_due(&errors::SCHEMA, errors.rows()) {
            outlet.pass(errors.take(Vec::new()));
        }
        if are_views_due {
            outlet.pass(self.views.rows.take(Vec::new()));
        }
        if outlet.is_due(&shots::SCHEMA, self.shots.rows()) {
            let mut shots = self.shots.rows.take(Vec::new());
            if !self.has_server {
                name_missing_server(&mut shots);
            }
            outlet.pass(shots);
        }
        for (place, table) in self.rejudged.iter_mut().enumerate() {
            if outlet.is_due(&shots::SCHEMA, table.rows()) {
                outlet.pass(Table { name: rejudged_table(place), ..table.rows.take(Vec::new()) });
            }
        }
        if outlet.is_due(&effects::SCHEMA, self.effects.rows()) {
            outlet.pass(self.effects.take(Vec::new()));
        }
        if outlet.is_due(&variables::SCHEMA, self.variables.rows.rows()) {
            self.variables.take().into_iter().for_each(|table| outlet.pass(table));
        }
        let Some(network) = &mut self.network else { return };
        if outlet.is_due(&packets::SCHEMA, network.packets.rows()) {
            outlet.pass(network.packets.take(Vec::new()));
        }
        if outlet.is_due(&snapshots::SCHEMA, network.snapshots.rows()) {
            outlet.pass(network.snapshots.take(Vec::new()));
        }
    }

    fn effect<G: Game>(&mut self, player: PlayerId, at: Micros, effect: &Effect, predicted: bool) {
        self.effects.push(effects::Row {
            player: player.0.into(),
            at_us: at.0,
            kind: G::effect_name(effect.kind),
            entity: effect.entity.0.into(),
            at: effect.at,
            predicted: predicted.into(),
        });
    }

    fn frame<G: Game>(
        &mut self,
        player: PlayerId,
        at: Micros,
        output: &ClientFrameOutput<G>,
        shown: &ScreenView<'_, G::Body>,
    ) {
        let wanted = self.wanted;
        if wanted.has(&shots::SCHEMA) {
            self.shots.settle(at, &self.covers);
        }
        let predicted = match &output.predicted {
            Some(body) if (wanted.has(&frames::SCHEMA) || wanted.has(&shots::SCHEMA)) && !body.is_absent() => {
                body.write(&mut self.written);
                Some(&self.written[..])
            }
            _ => None,
        };
        if wanted.has(&frames::SCHEMA) {
            self.frames.push(player, at, output, predicted);
        }
        if wanted.has(&shots::SCHEMA) {
            let oldest = self.shots.oldest_waiting().unwrap_or(at);
            self.covers.frame(player, at, oldest, predicted);
        }
        let command = output.command.seq;
        let own = output.own.as_ref().map(|own| (player.entity(), own));
        let screen = DrawnScreen::new(own, shown.drawn);
        if wanted.has(&views::SCHEMA) {
            self.views.push(player, command, shown.drawn_at, &screen);
        }
        if wanted.has(&variables::SCHEMA) {
            // Entities drawn without a category have no variables with a category of their own.
            for (entity, placed) in screen.iter().filter(|(_, placed)| placed.by.is_some()) {
                self.variables.push::<G>((player, at), command, entity, &self.fields, placed);
            }
        }
        if wanted.has(&effects::SCHEMA) {
            for effect in &output.effects {
                self.effect::<G>(player, at, effect, true);
            }
        }
        if wanted.has(&shots::SCHEMA) {
            self.views.remember(player, command, &screen);
            for PredictedShot { command, index, fire, verdict } in &output.shots {
                let key = ShotKey { shooter: player, command: *command, index: *index };
                self.shots.predicted(key, at, G::weapon_name(fire), verdict.clone());
            }
        }
    }

    fn ticked<G: Game>(&mut self, at: Micros, outcome: TickOutcome, world: &G::World) {
        let wanted = self.wanted;
        if wanted.has(&ticks::SCHEMA) {
            self.ticks.push(ticks::Row { tick: outcome.tick.0, at_us: at.0, hash: outcome.hash });
        }
        if wanted.has(&shots::SCHEMA) {
            self.covers.ticked(outcome.tick);
        }
        if has_corrections(wanted) {
            let is_alive = |player: PlayerId| body_of(G::entities(world), player.entity()).map(Body::is_alive);
            self.corrections.ticked(is_alive);
        }
        let present = G::entities(world).iter().filter(|(_, body)| !body.is_absent());
        for (entity, body) in present.filter(|_| wanted.has(&bodies::SCHEMA) || wanted.has(&shots::SCHEMA)) {
            body.write(&mut self.written);
            if wanted.has(&bodies::SCHEMA) {
                self.bodies.rows.push(bodies::Row { tick: outcome.tick.0, entity: entity.0.into() });
                self.bodies.cells.push(&self.written);
            }
            if wanted.has(&shots::SCHEMA) {
                self.covers.body(*entity, &self.written);
            }
        }
    }
}

impl<G: Game> Observer<G> for TraceTables {
    fn needs_drawing(&mut self, _at: Micros) -> bool {
        [&views::SCHEMA, &variables::SCHEMA, &shots::SCHEMA].into_iter().any(|table| self.wanted.has(table))
    }

    fn event(&mut self, at: Micros, event: &SessionEvent<'_, G>) {
        let wanted = self.wanted;
        if wanted == TableSet::NONE && self.network.is_none() {
            return;
        }
        match *event {
            SessionEvent::Frame { player, output, ref screen } => self.frame(player, at, output, screen),
            SessionEvent::PacketSent { player, packet, will_arrive } => {
                if let Some(network) = &mut self.network {
                    network.packet_sent(player, &packet);
                }
                if will_arrive && has_corrections(wanted) {
                    self.corrections.packet_will_arrive(player, &packet);
                }
            }
            SessionEvent::PacketReached { player, packet: received } => {
                if let Some(network) = &mut self.network {
                    network.packet_reached(player, received.packet.number, at);
                }
            }
            SessionEvent::SnapshotSent { player, snapshot, size } => {
                if let Some(network) = &mut self.network {
                    network.snapshot_sent(player, at, snapshot, size);
                }
            }
            SessionEvent::Server { tick, event } => match event {
                TickEvent::Executed { player, command, how } => {
                    if wanted.has(&executed::SCHEMA) {
                        let (player, command) = (player.0.into(), command.0);
                        self.executed.push(executed::Row { player, command, tick: tick.0, how: *how as u8 });
                    }
                    if has_corrections(wanted) {
                        self.corrections.executed(*player, *command, *how);
                    }
                    if *how == Execution::Run && wanted.has(&shots::SCHEMA) {
                        self.views.ran(*player, *command);
                        self.shots.ran(*player, *command);
                    }
                }
                TickEvent::Judged(shot) if wanted.has(&shots::SCHEMA) => {
                    let on_screen = &mut self.views.of(shot.shooter, shot.command);
                    self.shots.judged(at, tick, shot, on_screen, &self.covers);
                    for (table, verdict) in self.rejudged.iter_mut().zip(&shot.rejudged) {
                        table.push_verdict::<G>(ShotKey::of(shot), at, tick, G::weapon_name(&shot.fire), verdict);
                    }
                }
                TickEvent::Impact { shooter, command, weapon, verdict } if wanted.has(&shots::SCHEMA) => {
                    // An impact has a row of its own, after the row of the shot's launch.
                    let key = ShotKey { shooter: *shooter, command: *command, index: IMPACT };
                    self.shots.push_verdict::<G>(key, at, tick, weapon, verdict);
                }
                TickEvent::Judged(_) | TickEvent::Impact { .. } | TickEvent::Presence { .. } => {}
            },
            SessionEvent::Ticked { outcome, world } => self.ticked::<G>(at, outcome, world),
            SessionEvent::SnapshotReceived { player, snapshot, reconciled } => {
                self.snapshot_reached(player, snapshot.seq, at);
                for effect in snapshot.effects.iter().filter(|_| wanted.has(&effects::SCHEMA)) {
                    self.effect::<G>(player, at, effect, false);
                }
                if let Some(ReconcileOutcome { comparison: Some(comparison), correction, .. }) = reconciled
                    && has_corrections(wanted)
                {
                    self.corrections.push(&self.fields, player, at, comparison, correction.as_ref());
                }
            }
        }
    }
}

/// The `bodies` table.
#[derive(Debug)]
struct BodyTable {
    rows: bodies::Writer,
    cells: CellRows,
}

impl BodyTable {
    /// Takes the rows so far.
    fn take(&mut self) -> Table {
        self.rows.take(self.cells.take(bodies::SCHEMA.fields.unwrap_or_default()))
    }
}

/// Rows of cells, to become columns.
#[derive(Clone, Debug)]
pub(super) struct CellRows {
    /// The fields, each with the place of its cells in a row.
    fields: Vec<(FieldSchema, Range<usize>)>,
    /// The number of cells of a row.
    width: usize,
    cells: Vec<u32>,
    /// The expected number of cells: the greatest that were taken at once.
    expected: usize,
}

impl CellRows {
    pub(super) fn new(fields: Vec<FieldSchema>) -> CellRows {
        let fields: Vec<_> = cells_of(&fields).map(|(field, place)| (field.clone(), place)).collect();
        let width = fields.last().map_or(0, |(_, place)| place.end);
        CellRows { fields, width, cells: Vec::new(), expected: 0 }
    }

    /// Sets the expected number of rows. The first row reserves memory for them.
    fn expect_rows(&mut self, rows: usize) {
        self.expected = rows.saturating_mul(self.width);
    }

    /// Adds a row with these cells. All further cells of the row are 0.
    pub(super) fn push(&mut self, row: &[u32]) {
        if self.cells.is_empty() {
            self.cells.reserve(self.expected + self.expected / 8);
        }
        let end = self.cells.len() + self.width;
        self.cells.extend_from_slice(&row[..row.len().min(self.width)]);
        self.cells.resize(end, 0);
    }

    /// Takes the rows so far as columns.
    pub(super) fn take(&mut self, prefix: &str) -> Vec<Column> {
        let rows = std::mem::take(&mut self.cells);
        self.expected = self.expected.max(rows.len());
        let width = self.width;
        let columns = |fields: &[(FieldSchema, Range<usize>)]| {
            let capacity = |place: &Range<usize>| rows.len() / width * place.len();
            // `vec![…; n]` would clone the first one, without its capacity.
            let mut all: Vec<Vec<u32>> = fields.iter().map(|(_, place)| Vec::with_capacity(capacity(place))).collect();
            for block in rows.chunks(width * AT_ONCE_ROWS) {
                for ((_, place), cells) in fields.iter().zip(&mut all) {
                    let rows = block.chunks_exact(width);
                    match place.len() {
                        1 => cells.extend(rows.map(|row| row[place.start])),
                        _ => rows.for_each(|row| cells.extend_from_slice(&row[place.clone()])),
                    }
                }
            }
            let column = |((field, _), cells): (&(FieldSchema, Range<usize>), Vec<u32>)| {
                let data = match field.kind {
                    CellKind::F32 => ColumnData::F32(bytemuck::cast_vec(cells)),
                    CellKind::U32 => ColumnData::U32(cells),
                    kind => {
                        let numbers = cells.chunks_exact(kind.cells()).map(|cells| kind.number(cells)).collect();
                        ColumnData::of_numbers(kind, numbers, &Texts::default())
                    }
                };
                Column::new(format!("{prefix}{}", field.name), data).in_unit(field.unit())
            };
            fields.iter().zip(all).map(column).collect::<Vec<_>>()
        };
        self.fields.par_chunks(AT_ONCE_FIELDS).flat_map_iter(columns).collect()
    }
}

/// Block sizes, in rows and fields, that keep reads and writes close together in memory.
const AT_ONCE_ROWS: usize = 64;
const AT_ONCE_FIELDS: usize = 16;

/// Returns the value of a field's [number](CellKind::number), for tables with the values of several fields in one column.
pub(super) fn value(kind: CellKind, number: i64) -> f32 {
    match kind {
        CellKind::F32 => f32::from_bits(number as u32),
        CellKind::F64 => f64::from_bits(number as u64) as f32,
        CellKind::U64 => number as u64 as f32,
        _ => number as f32,
    }
}

/// The `frames` table: each client frame, with its usercmd and the predicted body of the player.
#[derive(Debug)]
pub(super) struct FrameTable {
    rows: frames::Writer,
    /// The predicted bodies, if they are wanted.
    pub(super) own: Option<CellRows>,
    /// The usercmd fields that the game declares.
    input: CellRows,
}

impl FrameTable {
    pub(super) fn new<G: Game>() -> FrameTable {
        let (own, input) = (CellRows::new(G::Body::fields()), CellRows::new(G::Input::own_fields()));
        FrameTable { rows: frames::Writer::default(), own: Some(own), input }
    }

    fn expect_rows(&mut self, rows: usize) {
        self.rows.expect_rows(rows);
        self.own.iter_mut().chain([&mut self.input]).for_each(|cells| cells.expect_rows(rows));
    }

    /// Adds a frame, with the cells of its predicted body.
    pub(super) fn push<G: Game>(
        &mut self,
        player: PlayerId,
        at: Micros,
        commanded: &ClientFrameOutput<G>,
        predicted: Option<&[u32]>,
    ) {
        self.rows.push(frames::Row {
            ran: commanded.ran,
            first_effects: commanded.effects.len() as u32,
            has_body: predicted.is_some().into(),
            drawn: commanded.drawn_origin.unwrap_or(Vec3::ZERO),
            ..frames::Row::of_usercmd(player, at, &commanded.command)
        });
        if let Some(own) = &mut self.own {
            own.push(predicted.unwrap_or_default());
        }
        self.input.push(commanded.command.input.own.stored());
    }

    /// Takes the rows so far.
    pub(super) fn take(&mut self) -> Table {
        let take_own = |own: &mut CellRows| own.take(frames::SCHEMA.fields.unwrap_or_default());
        let mut columns = self.own.as_mut().map(take_own).unwrap_or_default();
        columns.extend(self.input.take(""));
        self.rows.take(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{Category, Cause, HitResult, PlacementKind, PredictionGrade};
    use crate::pipeline::RewindLimit;

    /// The codes of the pipelines have the names that the tables declare.
    #[test]
    fn codes_have_the_same_meaning_in_tables_and_pipelines() {
        let names = |table: &TableSchema, column| table.column(column).expect("a column").names.to_vec();
        let and = |names: &[&'static str], more| [names, &[more]].concat();
        assert_eq!(names(&executed::SCHEMA, "how"), Execution::NAMES);
        assert_eq!(names(&views::SCHEMA, "how"), PlacementKind::NAMES);
        assert_eq!(names(&views::SCHEMA, "category"), Category::NAMES);
        assert_eq!(names(&variables::SCHEMA, "category"), Category::NAMES);
        assert_eq!(names(&corrections::SCHEMA, "result"), PredictionGrade::NAMES);
        assert_eq!(names(&corrections::SCHEMA, "cause"), [&["none"], Cause::NAMES].concat());
        assert_eq!(names(&shots::SCHEMA, "limit"), RewindLimit::NAMES);
        assert_eq!(names(&shots::SCHEMA, "predicted_reason"), and(HitResult::NAMES, "not predicted"));
        assert_eq!(names(&shots::SCHEMA, "reason"), and(HitResult::NAMES, "not run"));
    }
}
