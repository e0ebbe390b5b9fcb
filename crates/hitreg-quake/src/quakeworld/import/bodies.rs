//! Converts one packet of a demo to bodies, with the brush models that the server did not send.
//!
//! A server does not send some brush models although they are in reach: inside walls, in water, or above a limit. Between two
//! sightings a model moves evenly. A model that appears or disappears in motion comes from or goes to its rest position, at
//! the speed seen.

use crate::bsp::quake::QuakeMap;
use crate::quakeworld::body::{QuakeWorldBody, flag};
use crate::quakeworld::demo::{Mover, OwnState, QuakeWorldDemo, ServerPacket};
use crate::quakeworld::{QuakeWorldRules, entity_of_model};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::EntityId;

/// Returns the bodies of a packet, ascending by entity; of two states of one entity, the first. It omits brush models
/// that the map lacks, and includes the `unsent` ones.
pub(super) fn bodies_of(
    rules: &QuakeWorldRules,
    packet: &ServerPacket,
    own: Option<&OwnState>,
    unsent: &[Mover],
) -> Vec<(EntityId, QuakeWorldBody)> {
    let models = rules.map.models.len();
    let entity = |slot: u8| EntityId(u16::from(rules.swap_slot(packet.level, slot)));
    let others = packet.others.iter();
    let own = own.map(|own| (rules.player.entity(), QuakeWorldBody::of_own(own, rules.server.origin_wire())));
    let mut bodies: Vec<(EntityId, QuakeWorldBody)> = own.into_iter().collect();
    bodies.extend(others.map(|other| (entity(other.slot), QuakeWorldBody::of_other(other))));
    for (_, row) in &mut bodies {
        row.move_vars = packet.move_vars;
    }
    let row = |mover: &Mover, flag| {
        let entity = entity_of_model(mover.model).filter(|_| usize::from(mover.model) < models)?;
        let sent = QuakeWorldBody::of_mover(mover);
        Some((entity, QuakeWorldBody { flags: sent.flags | flag, ..sent }))
    };
    bodies.extend(packet.movers.iter().filter_map(|mover| row(mover, 0)));
    bodies.extend(unsent.iter().filter_map(|mover| row(mover, flag::UNSENT)));
    bodies.sort_by_key(|(entity, _)| *entity);
    bodies.dedup_by_key(|(entity, _)| *entity);
    bodies
}

/// The longest absence to interpolate, in milliseconds of usercmds.
const ABSENCE_MS_MAX: u32 = 1000;
/// The longest interval between two packets that show a model's speed, in milliseconds.
const NEXT_MS: u32 = 100;
/// Distance from a rest position within which a model is at rest, in units.
const AT_REST: f32 = 0.2;

/// Positions of unsent brush models, by the index of the packet that lacks them.
#[derive(Debug, Default)]
pub(super) struct UnsentMovers {
    by_packet: SortedMap<usize, Vec<Mover>>,
}

/// A brush model in one packet: packet index and displacement.
type ModelSighting = (usize, [f32; 3]);

impl UnsentMovers {
    /// Finds absences in a demo played on this map.
    pub(super) fn find(demo: &QuakeWorldDemo, map: &QuakeMap) -> UnsentMovers {
        let mut unsent = UnsentMovers::default();
        let mut sightings: SortedMap<u16, Vec<ModelSighting>> = SortedMap::new();
        for (index, packet) in demo.packets.iter().enumerate() {
            for mover in &packet.movers {
                sightings.entry(mover.model).or_default().push((index, mover.origin));
            }
        }
        for (model, seen) in &sightings {
            let rests = map.moving.iter().find(|moving| moving.model == *model).map(|moving| moving.rests);
            let mut way = MoverPath { demo, model: *model, rests, unsent: &mut unsent };
            for at in 1..seen.len() {
                let (last, next) = (seen[at - 1], seen[at]);
                if last.0 + 1 < next.0 && !way.between(last, next) {
                    if let Some(before) = at.checked_sub(2) {
                        way.on(seen[before], last, last.0 + 1..next.0);
                    }
                    if let Some(after) = seen.get(at + 1) {
                        way.on(*after, next, (last.0 + 1..next.0).rev());
                    }
                }
            }
        }
        unsent
    }

    /// Returns the models that the packet of this index lacks.
    pub(super) fn of(&self, index: usize) -> &[Mover] {
        self.by_packet.get(&index).map_or(&[], Vec::as_slice)
    }
}

struct MoverPath<'a> {
    demo: &'a QuakeWorldDemo,
    model: u16,
    rests: Option<[[f32; 3]; 2]>,
    unsent: &'a mut UnsentMovers,
}

impl MoverPath<'_> {
    /// Returns the server's time between two packets: the duration of the usercmds that it ran between them.
    fn ms(&self, one: usize, other: usize) -> Option<u32> {
        let [from, to] = [&self.demo.packets[one.min(other)], &self.demo.packets[one.max(other)]];
        (from.level == to.level).then(|| self.demo.msec_between(from.ack, to.ack))
    }

    fn add(&mut self, index: usize, origin: [f32; 3]) {
        self.unsent.by_packet.entry(index).or_default().push(Mover { model: self.model, origin });
    }

    /// Interpolates a short absence; returns false for a long one.
    fn between(&mut self, (first, was): ModelSighting, (last, now): ModelSighting) -> bool {
        let Some(long) = self.ms(first, last).filter(|ms| *ms <= ABSENCE_MS_MAX) else { return false };
        for index in first + 1..last {
            let share = self.ms(first, index).unwrap_or(0) as f32 / long.max(1) as f32;
            self.add(index, [0, 1, 2].map(|n| was[n] + share * (now[n] - was[n])));
        }
        true
    }

    /// Extends a motion from `before` to `edge` into the packets of `absent`, up to the rest position ahead.
    fn on(&mut self, before: ModelSighting, edge: ModelSighting, absent: impl Iterator<Item = usize>) {
        let Some(ms) = self.ms(before.0, edge.0).filter(|ms| (1..=NEXT_MS).contains(ms)) else { return };
        let speed = [0, 1, 2].map(|n| (edge.1[n] - before.1[n]) / ms as f32);
        let square = |v: [f32; 3]| v.iter().map(|x| x * x).sum::<f32>();
        let way_to = |rest: &[f32; 3]| [0, 1, 2].map(|n| rest[n] - edge.1[n]);
        let ahead = |rest: &[f32; 3]| (0..3).map(|n| way_to(rest)[n] * speed[n]).sum::<f32>() > 0.0;
        let Some(rest) = self.rests.and_then(|rests| rests.into_iter().find(ahead)) else { return };
        let way = way_to(&rest);
        if square(way) <= AT_REST * AT_REST {
            return;
        }
        let needed = (square(way) / square(speed)).sqrt();
        for index in absent {
            let Some(since) = self.ms(edge.0, index).filter(|ms| *ms <= ABSENCE_MS_MAX && (*ms as f32) < needed) else {
                return;
            };
            self.add(index, [0, 1, 2].map(|n| edge.1[n] + way[n] * (since as f32 / needed)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::tests::quake_bytes;
    use crate::quakeworld::QuakeWorldUsercmd;
    use crate::quakeworld::tests::DemoWriter;

    /// Builds a demo with a packet every 10 ms, each with the lift at this height or without it.
    fn heights(lifts: &[Option<u8>], rests: [[f32; 3]; 2]) -> Vec<Vec<f32>> {
        let mut writer = DemoWriter::default();
        writer.signon();
        writer.sequences(1);
        for (n, lift) in lifts.iter().enumerate() {
            let time_s = 1.0 + n as f32 * 0.5;
            writer.command(time_s, &QuakeWorldUsercmd { msec: 10, ..QuakeWorldUsercmd::default() });
            let messages = lift.map_or(vec![], |height| vec![47, 40, 0x88, 4, 2, height * 8, 0, 0, 0]);
            writer.packet(time_s, n as u32 + 2, n as u32 + 1, &messages);
        }
        let demo = QuakeWorldDemo::parse(&writer.bytes).expect("good");
        let mut map = QuakeMap::parse(&quake_bytes()).expect("good");
        map.moving[0].rests = rests;
        let unsent = UnsentMovers::find(&demo, &map);
        let height = |index: usize| unsent.of(index).iter().map(|mover| mover.origin[2]).collect();
        (1..=lifts.len()).map(height).collect()
    }

    #[test]
    fn briefly_missing_models_move_evenly() {
        let found = heights(&[Some(2), None, None, None, Some(10)], [[0.0; 3]; 2]);
        assert_eq!(found, [vec![], vec![4.0], vec![6.0], vec![8.0], vec![]], "by usercmds, whatever the stamps");
    }

    #[test]
    fn models_enter_and_leave_sight_at_their_rest_positions() {
        let long = [None; 120];
        let rests = [[0.0; 3], [0.0, 0.0, 10.0]];
        let found = heights(&[&[Some(2), Some(4)][..], &long, &[Some(4), Some(6)]].concat(), rests);
        assert_eq!(found[2..6], [vec![6.0], vec![8.0], vec![], vec![]], "until it rests");
        assert_eq!(found[119..123], [vec![], vec![], vec![2.0], vec![]], "since it left");
        let still = heights(&[&[Some(4), Some(4)][..], &long, &[Some(4), Some(4)]].concat(), rests);
        assert!(still.iter().all(Vec::is_empty), "{still:?}");
    }
}
