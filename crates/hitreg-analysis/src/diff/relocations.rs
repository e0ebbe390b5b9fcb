//! When entities changed their place at once: by a spawn, a death or a teleport.

use super::clock::TickTimes;
use super::owners::OwnerMap;
use hitreg_log::trace::schema::bodies;
use hitreg_log::trace::{TraceSource, body_tables, each_part};

/// For each entity of a trace: the times of its spawns and teleports, ascending. Empty for a trace without bodies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relocations(OwnerMap<Vec<i64>>);

impl Relocations {
    /// Reads the relocations from the rows of all bodies, which count them.
    pub(crate) fn of(trace: &dyn TraceSource, clock: &TickTimes) -> Result<Relocations, String> {
        let mut changes: OwnerMap<Vec<(u32, u32)>> = OwnerMap::default();
        for table in body_tables(trace) {
            each_part(trace, &table, (&["tick", "entity", TELEPORTS], None), &mut |rows| {
                let read = bodies::Columns::read(rows);
                let counts = rows.u32s(TELEPORTS);
                for ((tick, entity), count) in read.tick.iter().zip(read.entity).zip(counts) {
                    let known = changes.or_insert_with((*entity).into(), Vec::new);
                    if known.last().is_none_or(|(_, last)| last != count) {
                        known.push((*tick, *count));
                    }
                }
                Ok(())
            })?;
        }
        let times = |known: &Vec<(u32, u32)>| {
            let mut known = known.clone();
            known.sort_unstable();
            known.dedup_by_key(|(_, count)| *count);
            // The first row is where the entity begins.
            known.iter().skip(1).filter_map(|(tick, _)| clock.of_tick(*tick)).collect::<Vec<i64>>()
        };
        let mut relocations = OwnerMap::default();
        changes.iter().for_each(|(entity, known)| relocations.set(entity, times(known)));
        Ok(Relocations(relocations))
    }

    /// A search for the relocations of many rows.
    pub(crate) fn search(&self) -> RelocationSearch<'_> {
        RelocationSearch { of: self, near: OwnerMap::default() }
    }
}

/// Finds relocations. Rows of one entity mostly follow each other in time.
pub(crate) struct RelocationSearch<'r> {
    of: &'r Relocations,
    /// For each entity: the last answer, and the times from which and before which it holds.
    near: OwnerMap<(i64, i64, Option<i64>)>,
}

impl RelocationSearch<'_> {
    /// The time of an entity's last relocation up to a time; `None` before the first one.
    #[inline]
    pub(crate) fn last(&mut self, entity: u32, at_us: i64) -> Option<i64> {
        let near = self.near.or_insert_with(entity.into(), || (0, 0, None));
        if !(near.0..near.1).contains(&at_us) {
            let times = self.of.0.get(entity.into()).map_or(&[][..], |times| times);
            let next = times.partition_point(|time| *time <= at_us);
            let last = next.checked_sub(1).map(|last| times[last]);
            *near = (last.unwrap_or(i64::MIN), times.get(next).copied().unwrap_or(i64::MAX), last);
        }
        near.2
    }
}

/// The field of a body that counts its spawns and teleports.
const TELEPORTS: &str = "teleports";

#[cfg(test)]
mod tests {
    use crate::diff::{DiffOptions, diff};
    use crate::report::diff_page;
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};

    /// A player draws one entity, which spawns at x = 1000 in tick 2 of B alone.
    fn trace(spawns: bool) -> Trace {
        let x = if spawns { [0.0, 1000.0, 1010.0, 1020.0] } else { [0.0, 10.0, 20.0, 30.0] };
        let u32s = |name: &str, values: [u32; 4]| Column::new(name, ColumnData::U32(values.to_vec()));
        let i64s = |name: &str, values: [i64; 4]| Column::new(name, ColumnData::I64(values.to_vec()));
        let place = |x: [f32; 4]| {
            [("origin.x", x), ("origin.y", [0.0; 4]), ("origin.z", [0.0; 4])]
                .map(|(name, values)| Column::new(name, ColumnData::F32(values.to_vec())))
        };
        let (number, times) = ([1, 2, 3, 4], [10_000, 20_000, 30_000, 40_000]);
        let how = ColumnData::Name { names: vec!["interpolated".to_owned()], codes: vec![0; 4] };
        let ticks = vec![u32s("tick", number), i64s("at_us", times)];
        let mut bodies = vec![u32s("tick", number), u32s("entity", [1; 4])];
        bodies.extend(place(x));
        bodies.push(u32s("teleports", [0, spawns.into(), spawns.into(), spawns.into()]));
        let frames = vec![u32s("player", [0; 4]), u32s("command", number), i64s("at_us", times)];
        let mut views = vec![u32s("player", [0; 4]), u32s("command", number), i64s("drawn_at_us", times)];
        views.push(u32s("entity", [1; 4]));
        views.extend(place(x));
        views.push(Column::new("how", how));
        let tables = [("ticks", ticks), ("bodies", bodies), ("frames", frames), ("views", views)];
        Trace { tables: tables.map(|(name, columns)| Table::new(name, columns)).into(), ..Trace::default() }
    }

    #[test]
    fn views_of_an_entity_that_spawned_in_one_trace_have_no_distance() {
        let found = diff(&trace(false), &trace(true), &DiffOptions::default()).expect("no tolerance");
        let drawn = &found.interpolation;
        assert_eq!((drawn.compared, drawn.moved, drawn.relocated, drawn.distance_max_units), (4, 0, 3, Some(0.0)));
        let page = diff_page(&found).text();
        assert!(page.contains("excluded: 3 views of entities that spawned or teleported"), "{page}");
        let same = diff(&trace(true), &trace(true), &DiffOptions::default()).expect("no tolerance");
        assert_eq!((same.interpolation.compared, same.interpolation.relocated), (4, 0));
    }

    /// Equal views are counted like other views, whether the table is compared in memory or streamed.
    #[test]
    fn equal_views_of_an_entity_that_spawned_in_one_trace_have_no_distance() {
        let (a, mut b) = (trace(false), trace(false));
        b.tables[1].columns.pop();
        b.tables[1].columns.push(Column::new("teleports", ColumnData::U32(vec![0, 1, 1, 1])));
        let found = diff(&a, &b, &DiffOptions::default()).expect("no tolerance").interpolation;
        assert_eq!((found.compared, found.moved, found.relocated), (4, 0, 3));
    }
}
