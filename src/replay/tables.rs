//! Turns what happens in a session into the tables of a trace.

use super::columns::{CellRows, Names, table};
use super::corrections::Corrections;
use super::cover::{Covers, Present};
use super::effects::Effects;
use super::frames::Frames;
use super::shots::Shots;
use super::variables::Variables;
use super::views::Views;
use crate::game::{Body, Field, Game, Verdict};
use crate::packet::Snapshot;
use crate::pipeline::{Commanded, Judged, Reconciled, Ticked};
use crate::record::Execution;
use crate::session::{Observer, Shown};
use crate::trace::{Data, Trace};
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// An [`Observer`] that fills the tables.
#[derive(Debug)]
pub struct Tables {
    fields: Vec<Field>,
    ticks: (Vec<u32>, Vec<i64>, Vec<u64>),
    bodies: (Vec<u32>, Vec<u32>, CellRows),
    frames: Frames,
    corrections: Corrections,
    views: Views,
    variables: Variables,
    shots: Shots,
    effects: Effects,
    executed: (Vec<u32>, Vec<u32>, Vec<u32>, Names),
}

impl Tables {
    /// Empty tables for the bodies of a game and so many players.
    pub fn new<G: Game>(players: usize) -> Tables {
        let fields = G::Body::fields();
        Tables {
            ticks: Default::default(),
            bodies: (Vec::new(), Vec::new(), CellRows::new(fields.clone())),
            frames: Frames::new(fields.clone()),
            corrections: Corrections::new(),
            views: Views::new(players),
            variables: Variables::new(&fields),
            shots: Shots::new(),
            effects: Effects::default(),
            executed: (Vec::new(), Vec::new(), Vec::new(), Names::known(&Execution::NAMES)),
            fields,
        }
    }

    /// Says of every judged shot how its target was covered from the shooter by then. To be called at the end, when the
    /// ticks and frames before each shot are known.
    pub fn judge_covers<G: Game>(&mut self, rules: &G::Rules) {
        let present = Present { ticks: &self.bodies.0, entities: &self.bodies.1, cells: &self.bodies.2 };
        let covers = Covers::of_shots::<G>(rules, self.shots.sights(), &present, &self.frames);
        self.shots.set_covers(covers);
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
        let mut tables = vec![
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
        tables.extend(self.variables.table());
        Trace { tables, ..Trace::default() }
    }
}

impl<G: Game> Observer<G> for Tables {
    fn frame(&mut self, player: PlayerId, at: Micros, commanded: &Commanded<G>, shown: &Shown<'_, G::Body>) {
        self.frames.push(player, at, commanded);
        let command = commanded.command.seq;
        let others = shown.drawn.iter().map(|(entity, placed)| (*entity, placed));
        let mut screen: Vec<_> = commanded.own.iter().map(|own| (player.entity(), own)).chain(others).collect();
        screen.sort_by_key(|(entity, _)| *entity);
        self.views.push(player, command, shown.drawn_at, &screen);
        for (entity, placed) in screen {
            self.variables.push::<G>(player, command, entity, &self.fields, placed);
        }
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
        if let Some(Reconciled { comparison: Some(comparison), correction, .. }) = reconciled {
            self.corrections.push(&self.fields, player, at, comparison, correction.as_ref());
        }
    }
}
