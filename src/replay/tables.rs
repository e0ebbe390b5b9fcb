//! Turns what happens in a session into the tables of a trace.

use super::columns::CellRows;
use super::corrections::Corrections;
use super::cover::{Present, covers};
use super::frames::Frames;
use super::network::Network;
use super::shots::Shots;
use super::variables::Variables;
use super::views::Views;
use crate::game::{Body, Effect, Field, Game, ShotAgain, Verdict};
use crate::packet::Snapshot;
use crate::pipeline::{Commanded, Judged, Reconciled, Ticked};
use crate::record::{ArrivalRecord, Execution, PacketRecord};
use crate::session::{Observer, Packed, Shown};
use crate::trace::Trace;
use crate::trace::schema::{bodies, effects, executed, ticks};
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// An [`Observer`] that fills the tables.
#[derive(Debug)]
pub struct Tables {
    fields: Vec<Field>,
    ticks: ticks::Writer,
    bodies: (bodies::Writer, CellRows),
    frames: Frames,
    corrections: Corrections,
    views: Views,
    variables: Variables,
    shots: Shots,
    effects: effects::Writer,
    executed: executed::Writer,
    network: Option<Network>,
}

impl Tables {
    /// Empty tables for the bodies of a game and so many players.
    pub fn new<G: Game>(players: usize) -> Tables {
        let fields = G::Body::fields();
        Tables {
            ticks: ticks::Writer::default(),
            bodies: (bodies::Writer::default(), CellRows::new(fields.clone())),
            frames: Frames::new(fields.clone()),
            corrections: Corrections::default(),
            views: Views::new(players),
            variables: Variables::default(),
            shots: Shots::default(),
            effects: effects::Writer::default(),
            executed: executed::Writer::default(),
            network: None,
            fields,
        }
    }

    /// Fills the tables of what goes over the network, too; with sizes where datagrams are made for their sake.
    pub fn watch_network(&mut self, with_sizes: bool) {
        self.network = Some(Network::new(with_sizes));
    }

    /// Says of every judged shot how its target was covered from the shooter by then. To be called at the end, when the
    /// ticks and frames before each shot are known.
    pub fn judge_covers<G: Game>(&mut self, rules: &G::Rules) {
        let present = Present { ticks: &self.bodies.0.tick, entities: &self.bodies.0.entity, cells: &self.bodies.1 };
        let covers = covers::<G>(rules, self.shots.sights(), &present, &self.frames);
        self.shots.set_covers(&covers);
    }

    /// A shot of a recording that was judged again. To be called when what was on the shooter's screen is known.
    pub fn judged_again<G: Game>(&mut self, shot: &ShotAgain) {
        self.shots.judged_again::<G>(shot, &mut self.views.of(shot.shooter, shot.command));
    }

    /// The finished tables.
    pub fn finish<G: Game>(self) -> Trace {
        let (bodies, cells) = self.bodies;
        let [corrections, errors] = self.corrections.tables();
        let mut tables = vec![
            self.ticks.finish(Vec::new()),
            bodies.finish(cells.columns(bodies::SCHEMA.fields.unwrap_or_default())),
            self.executed.finish(Vec::new()),
            self.frames.table(),
            corrections,
            errors,
            self.views.table(),
            self.shots.table::<G>(),
            self.effects.finish(Vec::new()),
        ];
        tables.extend(self.variables.table());
        tables.extend(self.network.map(Network::tables).into_iter().flatten());
        Trace { tables, ..Trace::default() }
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
            self.effect::<G>(player, at, effect, true);
        }
        for (command, index, fire, verdict) in &commanded.shots {
            self.shots.predicted((player, *command, *index), at, G::weapon_name(fire), verdict.clone());
        }
    }

    fn packet_sent(&mut self, player: PlayerId, packet: PacketRecord) {
        if let Some(network) = &mut self.network {
            network.packet_sent(player, &packet);
        }
    }

    fn packet_reached(&mut self, player: PlayerId, arrival: ArrivalRecord) {
        if let Some(network) = &mut self.network {
            network.packet_reached(player, arrival.number, arrival.at);
        }
    }

    fn snapshot_sent(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<G::Body>, packed: Packed) {
        if let Some(network) = &mut self.network {
            network.snapshot_sent(player, at, snapshot, packed);
        }
    }

    fn executed(&mut self, player: PlayerId, command: CommandSeq, tick: Tick, how: Execution) {
        self.executed.push(executed::Row { player: player.0.into(), command: command.0, tick: tick.0, how: how as u8 });
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
        self.ticks.push(ticks::Row { tick: ticked.tick.0, at_us: at.0, hash: ticked.hash });
        for (entity, body) in G::entities(world) {
            self.bodies.0.push(bodies::Row { tick: ticked.tick.0, entity: entity.0.into() });
            body.write(self.bodies.1.next_row());
        }
    }

    fn snapshot_received(
        &mut self,
        player: PlayerId,
        at: Micros,
        snapshot: &Snapshot<G::Body>,
        reconciled: Option<&Reconciled>,
    ) {
        if let Some(network) = &mut self.network {
            network.snapshot_received(player, snapshot.seq.0, at);
        }
        for effect in &snapshot.effects {
            self.effect::<G>(player, at, effect, false);
        }
        if let Some(Reconciled { comparison: Some(comparison), correction, .. }) = reconciled {
            self.corrections.push(&self.fields, player, at, comparison, correction.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::game::{Category, Cause, Grade, How, Reason};
    use crate::pipeline::Limit;
    use crate::record::Execution;
    use crate::trace::schema::{TableSchema, corrections, executed, shots, variables, views};

    /// What a replay pushes as codes has the names that the tables declare.
    #[test]
    fn codes_mean_in_the_tables_what_they_mean_in_the_pipelines() {
        let names = |table: &TableSchema, column| table.column(column).expect("a column").names.to_vec();
        let and = |names: &[&'static str], more| [names, &[more]].concat();
        assert_eq!(names(&executed::SCHEMA, "how"), Execution::NAMES);
        assert_eq!(names(&views::SCHEMA, "how"), How::NAMES);
        assert_eq!(names(&views::SCHEMA, "category"), Category::NAMES);
        assert_eq!(names(&variables::SCHEMA, "category"), Category::NAMES);
        assert_eq!(names(&corrections::SCHEMA, "result"), Grade::NAMES);
        assert_eq!(names(&corrections::SCHEMA, "cause"), [&["none"], Cause::NAMES].concat());
        assert_eq!(names(&shots::SCHEMA, "limit"), Limit::NAMES);
        assert_eq!(names(&shots::SCHEMA, "predicted_reason"), and(Reason::NAMES, "not predicted"));
        assert_eq!(names(&shots::SCHEMA, "reason"), and(Reason::NAMES, "not run"));
    }
}
